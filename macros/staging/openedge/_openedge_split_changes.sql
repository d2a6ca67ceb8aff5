{# Changes that OpenEdge stored as several records. #}

{#
    CTEs that make one row of the records of a split change. A change near the record limit is stored as two records, or
    more: a record's `_Continuation-Position` is the field that it holds last as a whole, its `_ArrayIndex` the last whole
    element where it ends within an array, and `_Fragment` 1 says that what comes next was cut in two. So fields up to that
    position are the record's, the field behind it is put together, the others are those of the next records. The last
    record has position 0, or that of the last field. No two records of a change share a position: it is part of the
    table's unique index. A position is the field's `_Field-Physpos`; `first_user_field` is that of the first one. Where it
    is not known the records become one row that is rejected, with all of them as its raw record.
#}
{% macro _openedge_whole_rows(found, settings) -%}
{#- not named in a WINDOW clause: Iceberg reads views after Spark has put such names in their places -#}
{%- set key = '_sequence, _operation, if(_sequence is null, _hash, null)' -%}
{%- set same_change = '(partition by ' ~ key ~ ')' -%}
split_rows as (
    select
        *,
        min(_position) over {{ same_change }} < {{ afterimage._openedge_no_position() }} as _is_split,
        row_number() over (
            partition by {{ key }} order by _position, _hash
        ) as _number,
        max(_landed_at) over {{ same_change }} as _last_landed_at,
        sort_array(collect_list(_hash) over {{ same_change }}) as _hashes,
        collect_list(_raw_record) over {{ same_change }} as _raw_records
        {%- if found.splits == 'joined' %},
        collect_list(_position) over {{ same_change }} as _positions,
        collect_list(
            struct(
                _position, _array_index, _fragment,
                {{ afterimage._listed(found.data | map(attribute='raw_name') | list, indent=16) }}
            )
        ) over (
            partition by {{ key }} order by _position, _hash
            rows between 1 following and unbounded following
        ) as _rest
        {%- endif %}
    from distinct_rows
),

{% if found.splits == 'joined' -%}
joined_rows as (
    select
        *,
        if(
            _is_split,
            {{ afterimage._openedge_joined_values(found, settings) | indent(12) }},
            null
        ) as _whole
    from split_rows
    where not _is_split or _number = 1
),

{% endif -%}
whole_rows as (
    select
        * except (
            _landed_at, _hash, _raw_record
            {%- if found.splits == 'joined' -%}
            , {{ afterimage._listed(found.data | map(attribute='raw_name') | list) | replace('\n        ', ' ') }}
            {%- endif %}
        ),
        {%- if found.splits == 'joined' %}
        {%- set last = settings.first_user_field + found.mask | length - 1 %}
        _is_split
        and (size(_positions) = 1 or array_max(_positions) < {{ last }}) as _is_half,
        _is_split and array_distinct(_positions) <> _positions as _is_unsupported,
        {%- else %}
        false as _is_half,
        _is_split as _is_unsupported,
        {%- endif %}
        if(_is_split, _last_landed_at, _landed_at) as _landed_at,
        if(_is_split, xxhash64(_hashes), _hash) as _hash,
        if(_is_split, concat('[', array_join(_raw_records, ','), ']'), _raw_record) as _raw_record
        {%- if found.splits == 'joined' %}
        {%- for name in found.data | map(attribute='raw_name') %},
        if(_is_split, _whole.{{ afterimage._quoted(name) }}, {{ afterimage._quoted(name) }}) as {{ afterimage._quoted(name) }}
        {%- endfor %}
        {%- endif %}
    from {{ 'joined_rows' if found.splits == 'joined' else 'split_rows' }}
    {%- if found.splits != 'joined' %}
    where not _is_split or _number = 1
    {%- endif %}
),
{%- endmacro %}


{# The position of a record that no other one follows: behind every field. #}
{% macro _openedge_no_position() %}
    {{ return(2147483647) }}
{% endmacro %}


{# A struct of the values of a split change: the first record, with what each of the others adds to it. #}
{% macro _openedge_joined_values(found, settings) -%}
aggregate(
    _rest,
    struct(
        _position, _array_index, _fragment,
        {{ afterimage._listed(found.data | map(attribute='raw_name') | list) }}
    ),
    (_whole, _next) -> struct(
        _next._position as _position,
        _next._array_index as _array_index,
        _next._fragment as _fragment
        {%- for column in found.data %},
        {%- set name = afterimage._quoted(column.raw_name) %}
        {%- set place = settings.first_user_field + found.mask.index(column.name) %}
        case
            when _whole._position >= {{ place }} then _whole.{{ name }}
            {%- if column.is_array %}
            when _whole._position = {{ place - 1 }}
                then
                    {{ afterimage._openedge_joined_array(name) | indent(20) }}
            {%- elif afterimage._normal_type(column.raw.data_type) in ['string', 'binary'] %}
            when _whole._position = {{ place - 1 }} and _whole._fragment = 1
                then concat(_whole.{{ name }}, _next.{{ name }})
            {%- endif %}
            else _next.{{ name }}
        end as {{ name }}
        {%- endfor %}
    )
)
{%- endmacro %}


{# An array of which the records before hold `_array_index` whole elements, and perhaps a part of the next one. #}
{% macro _openedge_joined_array(name) -%}
transform(
    sequence(1, greatest(size(_whole.{{ name }}), size(_next.{{ name }}))),
    _number -> case
        when _number <= _whole._array_index then try_element_at(_whole.{{ name }}, _number)
        when _number = _whole._array_index + 1 and _whole._fragment = 1
            then concat(
                coalesce(try_element_at(_whole.{{ name }}, _number), ''),
                coalesce(try_element_at(_next.{{ name }}, _number), '')
            )
        else try_element_at(_next.{{ name }}, _number)
    end
)
{%- endmacro %}
