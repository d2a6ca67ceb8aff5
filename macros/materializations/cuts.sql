{#
    Materialization of `afterimage_cuts`: appends the rows of the model's statement, if there are any. Why not dbt-spark's
    incremental: it commits an append of no rows.
#}
{% materialization cuts, adapter='spark' %}
    {%- set existing = load_cached_relation(this) -%}
    {%- set target_relation = this.incorporate(type='table') -%}
    {{ run_hooks(pre_hooks) }}
    {%- if existing is none or should_full_refresh() -%}
        {%- do adapter.afterimage.create_table(
            target_relation, sql, afterimage._column_descriptions(), [], {'comment': afterimage._relation_description()}
        ) -%}
        {%- call noop_statement('main', 'OK, built') -%}{{ sql }}{%- endcall -%}
    {%- elif run_query("select count(*) from (" ~ sql ~ ") as cuts").rows[0][0] | int == 0 -%}
        {%- call noop_statement('main', 'OK, nothing new') -%}{%- endcall -%}
    {%- else -%}
        {%- call statement('main') -%}
            insert into {{ target_relation }} by name {{ sql }}
        {%- endcall -%}
        {%- do adapter.afterimage.compact_at_end(target_relation) -%}
    {%- endif -%}
    {%- do afterimage._persist_descriptions(target_relation) -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
