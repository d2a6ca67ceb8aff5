{# What the macros that query histories share: the columns of a relation, and checks of arguments. #}

{# Stops where the argument of a query macro is wrong. #}
{% macro _wrong_argument(macro_name, relation, text) %}
    {{ exceptions.raise_compiler_error("`" ~ macro_name ~ "` of " ~ relation ~ ": " ~ text) }}
{% endmacro %}


{# Stops where an argument that should be a relation is something else. #}
{% macro _check_relation(macro_name, argument, given) %}
    {%- if given is not defined or given is none or given.identifier is not defined -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro_name ~ "`: `" ~ argument ~ "` is a relation, got " ~ (given if given else 'nothing')
            ~ ". Fix: write " ~ argument ~ "=ref('<name of the model>')."
        ) }}
    {%- endif -%}
{% endmacro %}


{#
    Names of the columns of a history: {'id': ..., 'data': key and other data columns, 'all': ...}. `all` is empty, and
    `data` holds the declared columns, until the history is built.
#}
{% macro _history_columns(history, settings) %}
    {%- set all = afterimage._raw_columns(history) | map(attribute='name') | list -%}
    {%- set id = history.identifier ~ '_id' -%}
    {%- set own = [id] + afterimage._history_own_columns() + settings.get('optional_columns', {}) | list -%}
    {%- set data = afterimage._without(all or settings.key + settings.get('data_columns', []) | map(attribute='name') | list, own) -%}
    {{ return({'id': id if not all or id in all else none, 'data': data | unique | list, 'all': all}) }}
{% endmacro %}


{# Stops unless a history has the columns that an argument names. #}
{% macro _check_columns(macro_name, history, argument, names, columns) %}
    {%- if names is string or names is mapping or names is not iterable -%}
        {%- do afterimage._wrong_argument(
            macro_name, history, "`" ~ argument ~ "` is a list of column names, got " ~ names ~ ". Fix: write ["
            ~ afterimage._text(columns.data[0] if columns.data else 'name') ~ "]."
        ) -%}
    {%- endif -%}
    {%- for name in names if columns.all and afterimage._same_name(name, columns.all) is none -%}
        {%- do afterimage._wrong_argument(
            macro_name, history, "`" ~ argument ~ "` names the column '" ~ name ~ "'. Allowed: "
            ~ columns.all | join(', ') ~ ". Fix: correct the name."
        ) -%}
    {%- endfor -%}
{% endmacro %}
