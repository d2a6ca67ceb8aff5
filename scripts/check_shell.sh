#!/bin/sh
# Checks the shell scripts with shellcheck or, if it is not installed, only their syntax.
set -eu

cd -- "$(dirname -- "$0")/.."
if command -v shellcheck >/dev/null 2>&1; then
    shellcheck scripts/*.sh .ci/run
    echo 'shellcheck: no findings'
else
    for script in scripts/*.sh; do
        sh -n "$script"
    done
    bash -n .ci/run
    echo 'shellcheck is not installed: checked only the syntax of the shell scripts'
fi
