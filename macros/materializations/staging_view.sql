{#
    Materialization of a staging model: a view that is written again only when its text or its descriptions changed, and
    only if change masks are still read as they were (`_check_mask_places`).
    Why not dbt-spark's view: it replaces the view in every run, which is a commit to the catalog each time.
#}
{% materialization staging_view, adapter='spark' %}
    {%- set existing = load_cached_relation(this) -%}
    {%- set target_relation = this.incorporate(type='view') -%}
    {%- set description = afterimage._relation_description() -%}
    {%- set definition = local_md5(sql ~ description ~ tojson(afterimage._column_descriptions())) -%}
    {{ run_hooks(pre_hooks) }}

    {%- if existing is not none and not existing.is_view -%}
        {%- do adapter.drop_relation(existing) -%}
        {%- set existing = none -%}
    {%- endif -%}
    {%- set made = afterimage._own_properties(existing) if existing is not none else {} -%}
    {%- if made.get('afterimage.definition') == definition and 'afterimage.mask_places' in made -%}
        {%- call noop_statement('main', 'OK, unchanged') -%}{{ sql }}{%- endcall -%}
    {%- else -%}
        {%- set places = afterimage._mask_places() -%}
        {%- if places and made and afterimage._has_recorded_masks() -%}
            {%- do afterimage._check_mask_places(fromjson(made.get('afterimage.mask_places', 'null')), places, afterimage._settings_of(model)) -%}
        {%- endif -%}
        {%- set create_view -%}
            create or replace view {{ target_relation }} (
                {{ afterimage._described(get_columns_in_query(sql), afterimage._column_descriptions()) }}
            )
            comment {{ afterimage._text(description) }}
            tblproperties (
                'afterimage.definition' = '{{ definition }}',
                'afterimage.mask_places' = {{ afterimage._text(tojson(places)) }}
            )
            as
            {{ afterimage._without_indentation(sql) }}
        {%- endset -%}
        {%- do adapter.afterimage.make_room_for_view(create_view) -%}
        {%- call statement('main') -%}
            {{ create_view }}
        {%- endcall -%}
    {%- endif -%}

    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


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
