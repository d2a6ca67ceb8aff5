#!/bin/sh
# Prints the path of a Python 3.10 to 3.13 that can create .venv, or says what to install.
#
# It tries $PYTHON first. It runs every candidate, because version managers put programs on the PATH that
# only print an error.
set -eu

supported='import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))'

for name in "${PYTHON:-}" python3 python3.13 python3.12 python3.11 python3.10 python; do
    [ -n "$name" ] || continue
    if "$name" -c "$supported" >/dev/null 2>&1; then
        # The base interpreter: `python3` may belong to another virtual environment.
        "$name" -c 'import sys; print(getattr(sys, "_base_executable", sys.executable))'
        exit 0
    fi
done

found=$(python3 -V 2>/dev/null || true)
cat >&2 <<HELP
No Python 3.10 to 3.13 found${found:+ (python3 is $found)}.
dbt-core 1.11 and PySpark 4.1 need one of these versions. Fix: install one, then run the same command again.
  Debian or Ubuntu: sudo apt-get install python3 python3-venv
  Fedora or RHEL:   sudo dnf install python3.12
  macOS:            brew install python@3.12
  Windows:          work in WSL and install as on Ubuntu
If Python has another name or is not on the PATH, pass it: make setup PYTHON=/path/to/python3.12
HELP
exit 1
