#!/bin/sh
# Checks the shell scripts: with shellcheck where it is installed, else their syntax alone.
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
    echo 'shellcheck is not installed: only the syntax of the shell scripts was checked'
fi
