#!/bin/sh
# Recreates the lock files from pyproject.toml, all versions with hashes: requirements.txt of the development
# environment, requirements-connect.txt of an image or a client, requirements-build.txt of what builds PySpark,
# requirements-uv.txt of the installer, requirements-site.txt of what builds the site of docs/.
#
# Locked versions stay as long as pyproject.toml allows them; pass --upgrade or --upgrade-package NAME for
# newer versions. The same lock serves Python 3.10 to 3.13 on every operating system.
set -eu

cd -- "$(dirname -- "$0")/.."
if command -v uv >/dev/null 2>&1; then
    uv=uv
else
    # The environment may have none: scripts/setup.sh installs with pip where uv has no wheel.
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    .venv/bin/python -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check uv
    uv="$folder/bin/uv"
fi

# The lock must not contain anything from this machine, such as an index address or a path.
compile() {
    "$uv" pip compile --quiet --universal --python-version 3.10 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' "$@"
}

compile --output-file requirements.txt --extra read --extra connect --extra java --extra kafka --extra dev pyproject.toml "$@"
compile --output-file requirements-connect.txt --extra connect --constraint requirements.txt pyproject.toml
compile --output-file requirements-build.txt --group build "$@"
compile --output-file requirements-uv.txt --group uv "$@"
compile --output-file requirements-site.txt --group site "$@"
