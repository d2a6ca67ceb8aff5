{#
    Materialization of `<table>_changes`: append-only, exempt from --full-refresh, written by the package.
    Why not dbt-spark's incremental: it writes the rows of a Python model twice (a temporary table, then an
    insert), replaces the table's schema, and ignores partitioning. Here a batch is one append, or nothing.
#}
{% materialization change_log, adapter='spark', supported_languages=['python'] %}
    {%- set target_relation = this.incorporate(type='table') -%}
    {{ run_hooks(pre_hooks) }}
    {%- call statement('main', language='python') -%}
{{ compiled_code }}

# --- written by the materialization change_log ---
{{ afterimage._run_context() }}
from dbt_afterimage.change_log.reading.raw_version import raw_tables
from dbt_afterimage.change_log.writing.write import write_batch
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.storage.missing_relation import existing_table

# before staging is resolved: what is committed in between counts as not read
config_dict["afterimage"]["raw_tables"] = raw_tables(spark, RunContext(**config_dict["afterimage"]))
batch = model(dbtObj(existing_table(spark)), spark)
write_batch(spark, RunContext(**config_dict["afterimage"]), batch)
    {%- endcall -%}
    {%- do afterimage._persist_descriptions(target_relation) -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
