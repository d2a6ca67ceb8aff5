#!/bin/sh
# Recreates requirements.txt and requirements-build.txt from pyproject.toml: all versions, with hashes.
#
# Versions that are locked already stay, as far as pyproject.toml allows: pass --upgrade, or
# --upgrade-package NAME, for newer ones. One lock serves Python 3.10 to 3.13 on every system.
set -eu

cd -- "$(dirname -- "$0")/.."
if command -v uv >/dev/null 2>&1; then
    uv=uv
else
    # Only this script needs uv, so it is not part of the environment.
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    .venv/bin/python -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check uv
    uv="$folder/bin/uv"
fi

# Nothing of this machine may end up in the lock: no index address, no path.
compile() {
    "$uv" pip compile --quiet --universal --python-version 3.10 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' "$@"
}

compile --output-file requirements.txt --extra read --extra dev pyproject.toml "$@"
compile --output-file requirements-build.txt --group build "$@"
