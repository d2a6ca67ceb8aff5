#!/bin/sh
# Lints all SQL of the project: the files as they are written, then what dbt and the macros made of them.
#
# Run by `make lint-sql` in the folder where the demos were built: models are compiled against its
# tables, and target/ holds the statements of a first and of a second run.
# A model here is one line that calls a macro. sqlfluff does not judge what a macro puts into a file,
# so linting the files alone would say nothing about nearly all SQL of the project.
set -eu

cd -- "$(dirname -- "$0")/.."

status=0

echo '+ sqlfluff: models and tests, compiled by dbt (.sqlfluff)'
sqlfluff lint --disable-progress-bar models tests/singular || status=1

echo '+ sqlfluff: what the macros rendered (.sqlfluff_rendered)'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Left out is SQL that dbt's own macros write: its four generic tests, and what it puts around the
# compiled SQL of a test or a view to run it. Of run/ that leaves the statements of the marts.
# Nor marts and tests of shipments: its 75 columns give the lines that other tables have, ten times over.
# Nor marts of the bank and the shop: nothing in a mart depends on the system that its changes come from.
{
    find "$DBT_TARGET_PATH/compiled/afterimage" -name '*.sql' ! -path '*_unit_tests.yml/*' \
        \( ! -name 'unique_*' -o -name 'unique_version_*' \) ! -name 'not_null_*' ! -name 'accepted_values_*' \
        ! -path '*.yml/*shipments*'
    find "$DBT_TARGET_PATH/run/afterimage/models/marts" -name '*.sql' ! -path '*.yml/*'
} | grep -v -e '/shipments_[^/]*$' -e '/marts/bank_branch/' -e '/marts/web_shop/' >"$folder/all"
# A model that had nothing to do leaves an empty file.
while read -r file; do
    if grep -q '[^[:space:]]' "$file"; then
        printf '%s\n' "$file"
    fi
done <"$folder/all" >"$folder/filled"
if [ ! -s "$folder/filled" ]; then
    echo 'There is nothing to lint in the target folder: was the demo built?' >&2
    exit 1
fi
# shellcheck disable=SC2046 # one argument per line: dbt's file names hold no white space
sqlfluff lint --disable-progress-bar --processes 2 --disregard-sqlfluffignores \
    --config .sqlfluff_rendered $(cat "$folder/filled") || status=1

exit "$status"
