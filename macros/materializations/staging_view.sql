{#
    Materialization of a staging model: a view that is written again only when its text or its descriptions changed, and
    only if change masks are still read as they were (`_check_mask_places`).
    Why not dbt-spark's view: it replaces the view in every run, which is a commit to the catalog each time.
    Where the catalog has no views, an empty table keeps the statement (src/dbt_afterimage/storage/stored_view.py).
#}
{% materialization staging_view, adapter='spark' %}
    {%- set existing = load_cached_relation(this) -%}
    {%- set description = afterimage._relation_description() -%}
    {%- set definition = local_md5(sql ~ description ~ tojson(afterimage._column_descriptions())) -%}
    {{ run_hooks(pre_hooks) }}

    {%- set made = afterimage._own_properties(existing) if existing is not none else {} -%}
    {%- set is_stored = 'afterimage.statement' in made -%}
    {%- if existing is not none and not existing.is_view and not is_stored -%}
        {%- do adapter.drop_relation(existing) -%}
        {%- set made = {} -%}
    {%- endif -%}
    {%- set target_relation = this.incorporate(type='table' if is_stored else 'view') -%}
    {%- if made.get('afterimage.definition') == definition and 'afterimage.mask_places' in made -%}
        {%- call noop_statement('main', 'OK, unchanged') -%}{{ sql }}{%- endcall -%}
    {%- else -%}
        {%- set places = afterimage._mask_places() -%}
        {%- if places and made and afterimage._has_recorded_masks() -%}
            {%- do afterimage._check_mask_places(fromjson(made.get('afterimage.mask_places', 'null')), places, afterimage._settings_of(model)) -%}
        {%- endif -%}
        {%- set properties = {'afterimage.definition': definition, 'afterimage.mask_places': tojson(places)} -%}
        {%- set select = afterimage._without_indentation(sql) -%}
        {%- set create_view -%}
            create or replace view {{ target_relation }} (
                {{ afterimage._described(get_columns_in_query(sql), afterimage._column_descriptions()) }}
            )
            comment {{ afterimage._text(description) }}
            tblproperties (
                {%- for name, value in properties.items() %}
                '{{ name }}' = {{ afterimage._text(value) }}{{ ',' if not loop.last }}
                {%- endfor %}
            )
            as
            {{ select }}
        {%- endset -%}
        {%- if is_stored or not adapter.afterimage.create_view(create_view) -%}
            {%- set target_relation = this.incorporate(type='table') -%}
            {%- do properties.update({'comment': description}) -%}
            {%- set reads = afterimage._staging_views_read_by(model) -%}
            {%- do adapter.afterimage.store_view(target_relation, select, afterimage._column_descriptions(), properties, reads) -%}
        {%- endif -%}
        {%- call noop_statement('main', 'OK') -%}{{ create_view }}{%- endcall -%}
    {%- endif -%}

    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{# The names of the staging models that a staging model reads. #}
{% macro _staging_views_read_by(node) %}
    {%- set names = [] -%}
    {%- for id in node.depends_on.nodes if id in graph.nodes and graph.nodes[id].config.materialized == 'staging_view' -%}
        {%- do names.append(graph.nodes[id].relation_name) -%}
    {%- endfor -%}
    {{ return(names) }}
{% endmacro %}


{#
    The columns of a view, with descriptions of up to 255 characters. A Hive metastore rejects longer comments: it tries
    ten times in 20 seconds, and then the view is stored in a way that only Spark reads. dbt docs shows the whole text.
#}
{% macro _described(names, descriptions) %}
    {%- set described = [] -%}
    {%- for name in names -%}
        {%- set text = descriptions.get(name, '') | trim -%}
        {%- set text = text if text | length <= 255 else text[:252] ~ '...' -%}
        {%- do described.append(afterimage._quoted(name) ~ (' comment ' ~ afterimage._text(text) if text else '')) -%}
    {%- endfor -%}
    {{ return(described | join(', ')) }}
{% endmacro %}


{#
    SQL without the blanks before its lines; text literals over several lines stay as they are.
    Listing tables and planning a query of a view read its text: a third of it were blanks at 75 columns.
#}
{% macro _without_indentation(sql) %}
    {%- set state = namespace(in_text=false) -%}
    {%- set lines = [] -%}
    {%- for line in sql.split('\n') -%}
        {%- do lines.append(line if state.in_text else line.lstrip()) -%}
        {%- if not line.lstrip().startswith('--') and line.replace("\\'", '').count("'") % 2 -%}
            {%- set state.in_text = not state.in_text -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(lines | join('\n')) }}
{% endmacro %}
