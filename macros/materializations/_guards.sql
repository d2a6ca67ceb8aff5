{#
    Preflight checks of the marts, above all the schema contract with a table that an earlier run created. The contract is
    Python (src/dbt_afterimage/storage/schema_contract.py), shared with the change log.
#}

{#
    Stops if a mart was built with other settings or has incompatible columns; adds new columns, widens types. True if it has altered
    the table.
#}
{% macro _check_mart(target_relation, mart, inputs) %}
    {%- if mart == 'current' -%}
        {%- do afterimage._check_keep_deleted(target_relation, inputs[0], afterimage._settings_of(model)) -%}
    {%- endif -%}
    {%- if not afterimage._is_of_one_table(mart) -%}
        {{ return(false) }}
    {%- endif -%}
    {%- set is_altered = adapter.afterimage.evolve_mart_schema(target_relation, inputs[0], afterimage._mart_expectations(mart, inputs)) -%}
    {%- do afterimage._check_feed(target_relation) if mart == 'history' and config.get('feed') -%}
    {{ return(is_altered) }}
{% endmacro %}


{# The table properties that record the layout, key and tracked columns a mart was built with. #}
{% macro _mart_properties(mart) %}
    {%- if not afterimage._is_of_one_table(mart) -%}
        {{ return({}) }}
    {%- endif -%}
    {{ return(adapter.afterimage.mart_properties(afterimage._settings_of(model), afterimage._is_tracking(mart))) }}
{% endmacro %}


{# Whether a mart has a single source table, whose settings govern it. #}
{% macro _is_of_one_table(mart) %}
    {{ return(mart in ('history', 'current', 'field_changes')) }}
{% endmacro %}


{#
    What a mart must look like: {model, settings, is_tracking, own, left_out, only, copies}.

    own       columns that every mart of its kind has
    left_out  columns of its input that it does not take
    only      the columns that it takes from its input; none for all others
    copies    struct column -> columns that it repeats
#}
{% macro _mart_expectations(mart, inputs) %}
    {%- set settings = afterimage._settings_of(model) -%}
    {%- set expected = {
        'model': model.name,
        'settings': settings,
        'is_tracking': afterimage._is_tracking(mart),
        'left_out': afterimage._without(afterimage._log_columns(settings), settings.get('history_metadata', []) if mart == 'history' else []),
        'only': none,
        'copies': {},
    } -%}
    {%- if mart == 'history' -%}
        {%- do expected.update({'own': [model.alias ~ '_id'] + settings.key + afterimage._history_own_columns()}) -%}
    {%- elif mart == 'current' -%}
        {%- do expected.update({
            'own': settings.key + afterimage._current_own_columns(settings),
            'left_out': [inputs[0].identifier ~ '_id'] + afterimage._history_own_columns() + settings.get('optional_columns', {}) | list,
        }) -%}
    {%- else -%}
        {%- do expected.update({
            'own': afterimage._field_changes_columns(settings.key),
            'only': settings.key,
            'copies': {'previous_key': settings.key} if settings.key else {},
        }) -%}
    {%- endif -%}
    {{ return(expected) }}
{% endmacro %}


{# Whether `track` and `ignore` shape a mart: its rows are versions. Before images show changes of any column. #}
{% macro _is_tracking(mart) %}
    {{ return(mart != 'field_changes' or not afterimage._settings_of(model).before_images) }}
{% endmacro %}


{# Stops at an inner join on columns of another side: its new matches are of keys that the table does not have. #}
{% macro _check_joined_sides(sides) %}
    {%- set of_sides = [] -%}
    {%- for side in sides[1:] -%}
        {%- set chained = side.on | select('in', of_sides) | list -%}
        {%- if chained and not side.is_left -%}
            {%- do afterimage._wrong_argument(
                'joined_history', side.relation, "it is an inner join on columns of another side (" ~ chained | join(', ') ~ "), so a run"
                ~ " cannot find rows of new matches. Nothing was written. Fix: write 'how': 'left' and filter the rows in a view, or"
                ~ " materialize the model as a table."
            ) -%}
        {%- endif -%}
        {%- do of_sides.extend(side.output.values()) -%}
    {%- endfor -%}
{% endmacro %}
