{#
    Materialization of a staging model whose decoding needs Python: a table that grows by what a run decodes.
    Append-only and exempt from --full-refresh, as change logs are: the raw table may be purged by then.
    `rebuild_changes` decodes it again, where the raw table still holds all of it.
#}
{% materialization staging_log, adapter='spark', supported_languages=['python'] %}
    {%- set target_relation = this.incorporate(type='table') -%}
    {{ run_hooks(pre_hooks) }}
    {%- call statement('main', language='python') -%}
{{ compiled_code }}

# --- written by the materialization staging_log ---
{{ afterimage._run_context() }}
from dbt_afterimage.sources.decoded_log import write_decoded_log
from dbt_afterimage.change_log.reading.raw_version import raw_tables
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.storage.missing_relation import existing_table

# before the raw table is resolved: what is committed in between counts as not read
config_dict["afterimage"]["raw_tables"] = raw_tables(spark, RunContext(**config_dict["afterimage"]))
batch = model(dbtObj(existing_table(spark)), spark)
write_decoded_log(spark, RunContext(**config_dict["afterimage"]), batch)
    {%- endcall -%}
    {%- do afterimage._persist_descriptions(target_relation) -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
