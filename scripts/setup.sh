#!/bin/sh
# Sets up what the other commands need: Java, .venv with the locked packages, profiles.yml.
#
# `make setup` runs it if the lock or pyproject.toml is newer than .venv. It is safe to run again: it
# installs only what is missing.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
log=logs/setup.log
mkdir -p logs
: >"$log"

say() { printf '[setup %s/4] %s\n' "$1" "$2"; }

die() {
    printf '%s\n' "$@" >&2
    exit 1
}

# Runs a command with its output in the log, and prints progress every ten seconds.
run() {
    "$@" >>"$log" 2>&1 </dev/null &
    id=$!
    trap 'kill "$id" 2>/dev/null; exit 130' INT TERM
    seconds=0
    while kill -0 "$id" 2>/dev/null; do
        sleep 1
        seconds=$((seconds + 1))
        if [ $((seconds % 10)) -eq 0 ]; then
            printf '            %s s: %s\n' "$seconds" "$(current_step)"
        fi
    done
    trap - INT TERM
    wait "$id"
}

# Prints the current step: the last line of the log that names a package, without addresses.
current_step() {
    sed -n -e 's/^ *\(Building wheel\)s* for collected packages: \(.*\)/\1 of \2/p' \
        -e 's/^Collecting \([^ ;]*\).*/reading \1/p' \
        -e 's/^\(Installing\) collected packages.*/\1/p' "$log" | tail -n 1
}

pip() { run .venv/bin/python -m pip --disable-pip-version-check --no-input "$@"; }

# With uv, which takes a third of pip's time, where it can be had; else with pip.
install() {
    if [ -n "$uv" ]; then
        run "$uv" pip install --python .venv/bin/python "$@" && return
        uv=
    fi
    pip install "$@" && return
    tail -n 25 "$log" >&2
    die '' "pip failed. The whole output is in $log. Fix: if the network failed, run the same command again."
}

if [ -x .venv/bin/python ] &&
    .venv/bin/python -c 'import pip, sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' \
        2>>"$log"; then
    say 1 ".venv exists, with $(.venv/bin/python -V)"
else
    python=$(scripts/python_for_venv.sh)
    if ! "$python" -c 'import ensurepip, venv' 2>>"$log"; then
        # Debian and Ubuntu ship Python without ensurepip, which installs pip into an environment.
        package="python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
        if [ -z "${AFTERIMAGE_NO_INSTALL:-}" ] && [ "$(id -u)" -eq 0 ] &&
            command -v apt-get >/dev/null 2>&1; then
            say 1 "installing $package with apt-get (log: $log)"
            export DEBIAN_FRONTEND=noninteractive
            apt-get update >>"$log" 2>&1 </dev/null || true
            apt-get install -y "$package" >>"$log" 2>&1 </dev/null || true
        fi
        "$python" -c 'import ensurepip, venv' 2>>"$log" || die \
            "$python cannot create virtual environments: its modules venv and ensurepip are missing." \
            "Fix: on Debian or Ubuntu, run: sudo apt-get install $package" \
            "Then run the same command again."
    fi
    say 1 "creating .venv with $("$python" -V) ($python)"
    "$python" -m venv --clear .venv >>"$log" 2>&1 || {
        tail -n 25 "$log" >&2
        die '' "Creating .venv failed. The whole output is in $log."
    }
fi

say 2 'installing the locked packages into .venv (the first time: a download of about 500 MB, a minute or two)'
uv=$(command -v uv || true)
if [ -z "$uv" ] && pip install --only-binary :all: --no-deps --require-hashes -r requirements-uv.txt; then
    uv=.venv/bin/uv
fi
# uv does not read pip's configuration, nor by default the machine's certificates
export UV_SYSTEM_CERTS=1
UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-${PIP_INDEX_URL:-$(.venv/bin/python -m pip config get global.index-url 2>>"$log" || true)}}
[ -z "$UV_DEFAULT_INDEX" ] || export UV_DEFAULT_INDEX
# In two steps, because PySpark is built from source and its build backend must come from the lock too:
# with --no-build-isolation, nothing is downloaded without a hash.
install --no-deps --require-hashes -r requirements-build.txt
install --no-deps --require-hashes --no-build-isolation -r requirements.txt
install --no-deps --no-build-isolation -e . -e ./demo

java=$(scripts/java_home.sh)
say 3 "Java found in $java"

if [ -f profiles.yml ]; then
    say 4 'profiles.yml exists'
elif [ -f profiles.yml.example ]; then
    cp profiles.yml.example profiles.yml
    say 4 'profiles.yml created from profiles.yml.example'
fi

touch .venv/.setup_done
