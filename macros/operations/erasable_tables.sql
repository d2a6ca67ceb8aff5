{#
    Passes to `afterimage erase` which tables hold data of one source table, and how the marts depend on them. Only dbt
    knows that; the keys to erase stay out of macros, because dbt writes the arguments of a macro to its log.

    Arguments:
      table  the table, its change log without `_changes`
#}
{% macro erasable_tables(table) %}
    {%- set log_node = afterimage._change_log_named(table) -%}
    {%- set settings = afterimage._settings_of(log_node) -%}
    {%- set log_relation = load_relation(afterimage._relation_of(log_node)) -%}
    {%- if log_relation is none -%}
        {{ exceptions.raise_compiler_error(
            "`erase`: the change log " ~ afterimage._relation_of(log_node) ~ " does not exist. Nothing was erased."
            ~ " Fix: run dbt build, or choose another --target."
        ) }}
    {%- endif -%}
    {%- set found = {
        'change_log': afterimage._progress_name(log_relation),
        'selected_as': log_node.name,
        'log': log_relation | string,
        'rejected': afterimage._rejected_relation(log_relation) | string,
        'progress': afterimage._progress_relation() | string,
        'erasures': afterimage._erasures_relation() | string,
        'table_format': adapter.afterimage.table_format(),
        'settings': settings,
        'data_columns': afterimage._data_columns(log_relation, settings) | map(attribute='name') | list,
        'beginning_of_time': afterimage._var('beginning_of_time'),
        'is_published': afterimage._var('published_schema') is not none,
        'marts': [],
        'decoded': [],
        'raw_tables': [],
        'downstream': [],
    } -%}
    {%- for id in afterimage._upstream_ids(log_node) -%}
        {%- set node = graph.sources.get(id) or graph.nodes[id] -%}
        {%- if node.resource_type == 'source' -%}
            {%- do found.raw_tables.append(node.relation_name | replace('`', '')) -%}
        {%- elif node.config.materialized == 'staging_log' -%}
            {%- set staging = graph.nodes[log_node.depends_on.nodes[0]] -%}
            {%- do found.decoded.append({
                'name': afterimage._progress_name(afterimage._relation_of(node)),
                'table': afterimage._relation_of(node) | string,
                'staging': staging.relation_name,
                'records': afterimage._decoded_records_of(staging, settings),
            }) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set ours = [log_node.unique_id] -%}
    {%- for kind in ['scd2_history', 'current_state', 'field_changes'] -%}
        {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.config.materialized == kind -%}
            {%- if node.depends_on.nodes | select('in', ours) | list -%}
                {%- do ours.append(node.unique_id) -%}
                {%- set relation = load_relation(afterimage._relation_of(node)) -%}
                {%- if relation is not none -%}
                    {%- do found.marts.append(afterimage._erasable_mart(node, relation, log_relation, settings)) -%}
                    {%- set feed = load_relation(afterimage._feed_relation(relation)) if kind == 'scd2_history' else none -%}
                    {%- if feed is not none -%}
                        {%- do found.marts.append({
                            'kind': 'history_feed', 'model': node.alias, 'name': afterimage._progress_name(feed), 'table': feed | string,
                            'history': relation | string, 'select': none,
                        }) -%}
                    {%- endif -%}
                {%- endif -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do found.update({'downstream': afterimage._downstream_of_others(ours)}) -%}
    {%- do adapter.afterimage.hand_over_erasable_tables(found) -%}
{% endmacro %}


{# The node of the change log of a table. #}
{% macro _change_log_named(table) %}
    {%- set known = [] -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.config.materialized == 'change_log' -%}
        {%- if node.name == table ~ '_changes' -%}
            {{ return(node) }}
        {%- endif -%}
        {%- do known.append(modules.re.sub('_changes$', '', node.name)) -%}
    {%- endfor -%}
    {{ exceptions.raise_compiler_error(
        "`erase`: the project has no change log `" ~ table ~ "_changes`. Allowed: " ~ (known | sort | join(', ') or 'none')
        ~ ". Nothing was erased. Fix: name a table that has a change log, without `_changes`."
    ) }}
{% endmacro %}


{# Everything upstream of a change log, down to its sources: ids of nodes. #}
{% macro _upstream_ids(node) %}
    {%- set ids = [] -%}
    {%- for id in node.depends_on.nodes if id in graph.sources or id in graph.nodes -%}
        {%- do ids.append(id) -%}
        {%- if id in graph.nodes -%}
            {%- do ids.extend(afterimage._upstream_ids(graph.nodes[id])) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(ids | unique | list) }}
{% endmacro %}


{# Condition for the decoded records of a table; records of solidDB are known by their address. #}
{% macro _decoded_records_of(staging, settings) %}
    {%- if settings.system != 'qlik_messages' -%}
        {{ return('true') }}
    {%- endif -%}
    {%- set conditions = [] -%}
    {%- for id in staging.depends_on.nodes if id in graph.sources and graph.sources[id].name == staging.sources[0][1] -%}
        {%- set table = settings.message_table or graph.sources[id].identifier -%}
        {%- do conditions.append('table_name = ' ~ afterimage._text(table)) -%}
    {%- endfor -%}
    {%- if afterimage._schema_in_messages(settings) -%}
        {%- do conditions.append('table_schema = ' ~ afterimage._text(settings.table_schema)) -%}
    {%- endif -%}
    {{ return(conditions | join(' and ')) }}
{% endmacro %}


{# A mart: its table, and the statement that yields all of its rows, which a history has none of. #}
{% macro _erasable_mart(node, relation, log_relation, settings) %}
    {%- set kind = node.config.materialized -%}
    {%- set history_node = afterimage._upstream_of_kind(node, 'scd2_history') -%}
    {%- set history = afterimage._relation_of(history_node) if history_node else none -%}
    {%- set select = none -%}
    {%- if kind == 'current_state' -%}
        {%- set select = afterimage._current_rows(history, settings, afterimage._current_columns(history, settings)) -%}
    {%- elif kind == 'field_changes' -%}
        {%- set columns = afterimage._data_columns(log_relation, settings) -%}
        {%- if settings.before_images -%}
            {%- set select = afterimage._field_changes_by_images(log_relation, settings, columns) -%}
        {%- else -%}
            {%- set select = afterimage._field_changes_by_versions("select * from " ~ history, settings, columns) -%}
        {%- endif -%}
    {%- endif -%}
    {{ return({
        'kind': kind,
        'model': node.alias,
        'name': afterimage._progress_name(relation),
        'table': relation | string,
        'history': history | string if history else none,
        'select': select,
    }) }}
{% endmacro %}


{# Tables and snapshots that a project makes by itself from some models: names. #}
{% macro _downstream_of_others(ours) %}
    {%- set ids = ours | list -%}
    {%- set names = [] -%}
    {#- a model may come before the one that it reads -#}
    {%- for round in graph.nodes -%}
        {%- set found = [] -%}
        {%- for node in graph.nodes.values()
            if node.resource_type in ('model', 'snapshot') and node.unique_id not in ids
            and node.depends_on.nodes | select('in', ids) | list -%}
            {%- do found.append(node.unique_id) -%}
            {%- if node.config.materialized in ('table', 'incremental', 'snapshot', 'joined_history') -%}
                {%- do names.append(node.name) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- if not found -%}
            {{ return(names | sort) }}
        {%- endif -%}
        {%- do ids.extend(found) -%}
    {%- endfor -%}
    {{ return(names | sort) }}
{% endmacro %}
