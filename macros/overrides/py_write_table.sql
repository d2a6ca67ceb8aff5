{#
    Overrides dbt-spark's writer of Python models (materialized: table), which imports pandas-on-Spark for nothing
    and ignores partitioning. Used by a user's own Python models; the change logs have a materialization of theirs.
#}
{% macro py_write_table(compiled_code, target_relation) %}
{{ compiled_code }}

# --- written by the materialization table ---
_writer = model(dbtObj(spark.table), spark).writeTo("{{ target_relation }}").using("{{ adapter.afterimage.table_format() }}")
{%- set partition_by = config.get('partition_by') or [] %}
{%- if partition_by %}
from pyspark.sql.functions import col

_writer = _writer.partitionedBy(*[col(name) for name in {{ [partition_by] if partition_by is string else partition_by }}])
{%- endif %}
_writer.createOrReplace()
{% endmacro %}
