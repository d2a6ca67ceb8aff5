#!/bin/sh
# Lints all SQL of the project: first the models and tests, then the SQL that the macros rendered.
#
# `make lint-sql` runs it in the folder where the demos were built: dbt compiles the models against the
# tables of the demos, and target/ holds the statements of a first and of a second run.
# Most models are one line that calls a macro, and sqlfluff does not report findings in what a macro
# renders. So linting the files alone would miss nearly all SQL of the project.
set -eu

cd -- "$(dirname -- "$0")/.."

folder_of_demos=$(dirname -- "$DBT_TARGET_PATH")
if [ ! -s "$folder_of_demos/demos" ]; then
    echo "No SQL to lint in $folder_of_demos: no demo is built. Fix: run \`make lint-sql\`, which builds them." >&2
    exit 1
fi
AFTERIMAGE_DEMOS=$(cat "$folder_of_demos/demos")
export AFTERIMAGE_DEMOS

status=0

echo '+ sqlfluff: models and tests, compiled by dbt (.sqlfluff)'
sqlfluff lint --disable-progress-bar --processes 2 demo/models demo/tests || status=1

echo '+ sqlfluff: what the macros rendered (.sqlfluff_rendered)'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Excluded:
# - SQL that dbt's own macros render: its generic tests, and the statements that wrap the compiled SQL of
#   a test or a view. What remains of run/ is the statements of the marts.
# - Marts and tests of shipments: its 75 columns only repeat the lines of other tables many times.
# - Marts of the bank, the web shop, pgbench and the parcel service: a mart does not depend on its source system.
# - Histories: each is `select * from <log>`, whose columns sqlfluff does not know.
{
    find "$DBT_TARGET_PATH/compiled/afterimage" -name '*.sql' ! -path '*_unit_tests.yml/*' \
        ! -name 'unique_*' ! -name 'not_null_*' ! -name 'accepted_values_*' \
        ! -path '*.yml/*shipments*'
    find "$DBT_TARGET_PATH/run/afterimage/demo/models/marts" -name '*.sql' ! -path '*.yml/*'
} | grep -v -e '/shipments_[^/]*$' -e '/marts/bank_branch/' -e '/marts/web_shop/' -e '/marts/pgbench/' -e '/marts/parcel_service/' -e '_history\.sql$' >"$folder/all"
# A model without new changes leaves an empty file.
while read -r file; do
    if grep -q '[^[:space:]]' "$file"; then
        printf '%s\n' "$file"
    fi
done <"$folder/all" >"$folder/filled"
# shellcheck disable=SC2046 # one argument per line: dbt's file names contain no whitespace
sqlfluff lint --disable-progress-bar --processes 2 --disregard-sqlfluffignores \
    --config .sqlfluff_rendered $(cat "$folder/filled") || status=1

exit "$status"
