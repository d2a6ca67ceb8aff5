{# A column name as SQL: in backticks only where Spark needs them. Three words are values, not names. #}
{% macro _quoted(name) %}
    {%- if modules.re.match('^[A-Za-z_][A-Za-z0-9_]*$', name) and name | lower not in ('null', 'true', 'false') -%}
        {{ return(name) }}
    {%- endif -%}
    {{ return('`' ~ name | replace('`', '``') ~ '`') }}
{% endmacro %}


{# A list of columns as SQL, each with a prefix such as `target.`; joined by a comma and a line break. #}
{% macro _listed(names, prefix='', indent=8) %}
    {%- set parts = [] -%}
    {%- for name in names -%}
        {%- do parts.append(prefix ~ afterimage._quoted(name)) -%}
    {%- endfor -%}
    {{ return(parts | join(',\n' ~ ' ' * indent)) }}
{% endmacro %}


{#
    Equality of columns of two relations, joined by `and`; NULL-safe by default. `indent`: each `and` begins a line, so
    many blanks in.
#}
{% macro _equal(names, left, right, operator='<=>', indent=none) %}
    {%- set parts = [] -%}
    {%- for name in names -%}
        {%- do parts.append(left ~ '.' ~ afterimage._quoted(name) ~ ' ' ~ operator ~ ' ' ~ right ~ '.' ~ afterimage._quoted(name)) -%}
    {%- endfor -%}
    {{ return(parts | join(' and ' if indent is none else '\n' ~ ' ' * indent ~ 'and ')) }}
{% endmacro %}


{# True for a change that moves its row to another key (R7); a before image that lacks the key is not compared. #}
{% macro _is_key_change(key, changes='changes') %}
    {%- if not key -%}
        {{ return('false') }}
    {%- endif -%}
    {%- set known = [] -%}
    {%- for name in key -%}
        {%- do known.append("array_contains(" ~ changes ~ ".before_known_columns, " ~ afterimage._text(name) ~ ")") -%}
    {%- endfor -%}
    {{- return(
        "(" ~ changes ~ ".before is not null and not (" ~ afterimage._equal(key, changes ~ '.before', changes) ~ ")"
        ~ " and (" ~ changes ~ ".before_known_columns is null or (" ~ known | join(' and ') ~ ")))"
    ) -}}
{% endmacro %}


{# Columns that the change log adds to a table's own; those that only some systems have are told by the settings. #}
{% macro _log_columns(settings) %}
    {{ return(settings.get('optional_columns', {}) | list + adapter.afterimage.log_columns()) }}
{% endmacro %}


{# Data columns of a change log as [{name, data_type}]. Before its first run they are the declared ones, #}
{# so that the project compiles, and its SQL can be linted, without tables. #}
{% macro _data_columns(changes, settings) %}
    {%- set columns = [] -%}
    {%- for column in afterimage._raw_columns(changes) -%}
        {%- if column.name not in afterimage._log_columns(settings) -%}
            {%- do columns.append(column) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if not columns -%}
        {%- do columns.extend(settings.get('data_columns', [])) -%}
    {%- endif -%}
    {{ return(columns) }}
{% endmacro %}


{# Columns whose change makes a version (R3): `track`, or all but `ignore`. The key never changes within a key. #}
{% macro _tracked_columns(names, settings) %}
    {%- set tracked = [] -%}
    {%- for name in names -%}
        {%- if name not in settings.key and name not in settings.ignore and (not settings.track or name in settings.track) -%}
            {%- do tracked.append(name) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(tracked) }}
{% endmacro %}


{# Names that are not among others, in their order. #}
{% macro _without(names, others) %}
    {%- set rest = [] -%}
    {%- for name in names if name not in others -%}
        {%- do rest.append(name) -%}
    {%- endfor -%}
    {{ return(rest) }}
{% endmacro %}
