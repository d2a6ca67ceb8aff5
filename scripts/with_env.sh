#!/bin/sh
# Runs a command with the project's Java, Python and warehouse, for example: scripts/with_env.sh dbt build
#
# With --scratch as first argument, the warehouse, dbt's target and log folders and profiles.yml are in a
# new folder, which is removed afterwards. The tests use it, so they never use your warehouse.
# With --scratch-in FOLDER, they are in that folder, which is kept.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
scratch=''
case ${1:-} in
    --scratch)
        scratch=new
        shift
        ;;
    --scratch-in)
        mkdir -p "$2"
        scratch=$(CDPATH='' cd -- "$2" && pwd)
        shift 2
        ;;
esac
if [ $# -eq 0 ]; then
    echo 'usage: scripts/with_env.sh [--scratch | --scratch-in FOLDER] command [argument ...]' >&2
    exit 2
fi
if [ ! -x "$root/.venv/bin/python" ]; then
    echo 'There is no .venv yet. Fix: run "make setup" first.' >&2
    exit 1
fi

JAVA_HOME=$("$root/scripts/java_home.sh")
PATH="$root/.venv/bin:$JAVA_HOME/bin:$PATH"
# Spark's workers must run the same Python as the driver, whatever python3 is on the PATH.
PYSPARK_PYTHON="$root/.venv/bin/python"
PYSPARK_DRIVER_PYTHON="$PYSPARK_PYTHON"
AFTERIMAGE_WAREHOUSE=${AFTERIMAGE_WAREHOUSE:-$root/warehouse}
export JAVA_HOME PATH PYSPARK_PYTHON PYSPARK_DRIVER_PYTHON AFTERIMAGE_WAREHOUSE
# With SPARK_HOME set, the PySpark of .venv would run another Spark.
unset SPARK_HOME

if [ -z "$scratch" ]; then
    exec "$@"
fi

if [ "$scratch" = new ]; then
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/afterimage.XXXXXX")
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
fi
cp "$root/profiles.yml.example" "$scratch/profiles.yml"
AFTERIMAGE_WAREHOUSE="$scratch/warehouse"
DBT_PROFILES_DIR="$scratch"
DBT_TARGET_PATH="$scratch/target"
DBT_LOG_PATH="$scratch/logs"
export DBT_PROFILES_DIR DBT_TARGET_PATH DBT_LOG_PATH
unset DBT_PROFILE DBT_TARGET AFTERIMAGE_TARGET
"$@"
