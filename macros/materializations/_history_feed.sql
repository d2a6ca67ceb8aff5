{# The feed of a history (`history(..., feed=true)`): its table, and what Python needs to write it (src/dbt_afterimage/history/feed.py). #}

{% macro _feed_relation(history) %}
    {{ return(history.incorporate(path={'identifier': history.identifier ~ '_feed'}, type='table')) }}
{% endmacro %}


{# Fields of `Feed`, of the history that is being built. #}
{% macro _feed_of(history) %}
    {%- set feed = afterimage._feed_relation(history) -%}
    {%- set settings = afterimage._settings_of(model) -%}
    {%- set taken = adapter.afterimage.feed_columns() | list -%}
    {%- for column in afterimage._data_columns(afterimage._mart_inputs()[0], settings) if column.name | lower in taken -%}
        {{ exceptions.raise_compiler_error(
            "`history`: the source table " ~ settings.source_table ~ " has a column `" ~ column.name ~ "`, a name that the feed of "
            ~ model.name ~ " adds; it adds " ~ taken | join(', ') ~ ". Nothing was written. Fix: "
            ~ adapter.afterimage.way_to_rename(settings) ~ " Or leave `feed=true` out."
        ) }}
    {%- endfor -%}
    {%- set properties = afterimage._table_properties('history') -%}
    {%- do properties.update({'comment': 'What each publication did to ' ~ history.identifier ~ ': one row per image of a version'}) -%}
    {{ return({
        'table': feed | string,
        'name': afterimage._progress_name(feed),
        'history': history | string,
        'version_id': model.alias ~ '_id',
        'progress': afterimage._progress_relation() | string,
        'descriptions': afterimage._column_descriptions(),
        'properties': properties,
    }) }}
{% endmacro %}


{# Brings the feed up to date where the batch that was published, if any, is not known. #}
{% macro _update_feed(history) %}
    {%- do afterimage._check_feed(history) -%}
    {%- do adapter.afterimage.update_feed(afterimage._feed_of(history)) -%}
{% endmacro %}


{# Adds the columns to an existing feed that its history has gained, and widens types. #}
{% macro _check_feed(history) %}
    {%- set feed = afterimage._feed_relation(history) -%}
    {%- if load_relation(feed) is not none -%}
        {%- do adapter.afterimage.evolve_mart_schema(feed, history, {
            'model': model.name,
            'settings': afterimage._settings_of(model),
            'is_tracking': false,
            'own': adapter.afterimage.feed_columns() | list,
            'left_out': [],
            'only': none,
            'copies': {},
            'rebuild_hint': 'drop the feed, which then begins again: afterimage spark-sql -e "drop table ' ~ feed ~ '"',
        }) -%}
    {%- endif -%}
{% endmacro %}
