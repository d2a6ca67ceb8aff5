{#
    A subquery that joins histories in time: one row per interval in which no side changed.

        select * from {{ temporal_join(
            base=ref('orders_history'),
            joins=[{'relation': ref('customers_history'), 'on': {'customer_id': 'customer_id'}, 'columns': ['city']}],
        ) }}

    Each side is joined on equal keys and overlapping intervals; the interval of the result is the overlap. A left join also
    needs rows for the times at which the side has no version. These gaps are computed per key of the side, from the ends of its
    versions as well as their beginnings, so a deleted row leaves no hole in the result.

    No `<=>`, `greatest`, `least` or named window: what they do differs between Spark, DuckDB and Trino, or one of them lacks it.

    Arguments:
      base   ref('<table>_history'): each of its versions is in the result, cut where a joined side changes
      joins  the other sides, a list of
               relation  ref('<table>_history')
               on        {column of the result so far: column of the side}
               how       left (default) or inner
               columns   columns of the side; default: all data columns except those of `on`
               prefix    of the names of these columns; default: none
               many      true if several rows of the side may match at one time; default: false
      columns  columns of the base; default: key and data columns
      by     change_seq or time; default: change_seq if the setting `task` is the same on all sides, else time
#}
{% macro temporal_join(base, joins, columns=none, by=none) %}
    {%- if not execute -%}
        {{ return('(select 1 as parsed)') }}
    {%- endif -%}
    {%- do afterimage._check_relation('temporal_join', 'base', base) -%}
    {%- set sides = afterimage._joined_sides(base, joins, columns) -%}
    {%- set order = afterimage._order_of_join(base, sides, by) -%}
    {%- set join = {'sides': sides, 'by_seq': order.by == 'change_seq', 'why': order.why} -%}
    {%- do join.update({'text': afterimage._temporal_join_sql(base, sides, join.by_seq, join.why)}) -%}
    {%- if model is defined and model.config.materialized == 'joined_history' -%}
        {%- for name in sides[0].key if afterimage._same_name(name, sides[0].output.values() | list) is none -%}
            {%- do afterimage._wrong_argument(
                'temporal_join', base, "`columns` lacks " ~ name ~ ", which is part of the key, by which a model of the materialization"
                ~ " joined_history replaces rows. Fix: add it."
            ) -%}
        {%- endfor -%}
        {%- do adapter.afterimage.hand_over_join(model.unique_id, join) -%}
    {%- endif -%}
    {{ return(join.text) }}
{% endmacro %}


{#
    The sides of a temporal join, the base first, checked and with all defaults:
    [{relation, key, task, on, is_left, many, reads: columns of the relation, output: {column: its name in the result}}].
#}
{% macro _joined_sides(base, joins, columns) %}
    {%- if joins is string or joins is mapping or joins is not iterable or not joins -%}
        {%- do afterimage._wrong_argument(
            'temporal_join', base, "`joins` is a list with an entry per joined side, got " ~ joins ~ ". Fix: write"
            ~ " joins=[{'relation': ref('<table>_history'), 'on': {'<column of the base>': '<column of the side>'}}]."
        ) -%}
    {%- endif -%}
    {%- set settings = afterimage._settings_of_relation(base) -%}
    {%- set found = afterimage._history_columns(base, settings) -%}
    {%- if columns is not none -%}
        {%- do afterimage._check_columns('temporal_join', base, 'columns', columns, found) -%}
    {%- endif -%}
    {%- set first = {'relation': base, 'key': settings.key, 'task': settings.task, 'on': {}, 'output': {}, 'extra': []} -%}
    {%- set names = (columns if columns is not none else found.data) | list -%}
    {%- for name in ([found.id] if found.id else []) + names -%}
        {%- do first.output.update({name: name}) -%}
    {%- endfor -%}
    {%- set sides = [first] -%}
    {%- for join in joins -%}
        {%- do sides.append(afterimage._joined_side(
            'temporal_join', base, join, sides, found, ['valid_from', 'valid_to', 'valid_from_seq', 'valid_to_seq', 'is_current']
        )) -%}
    {%- endfor -%}
    {{ return(sides) }}
{% endmacro %}


{#
    One joined side, checked and with all defaults; also that of `join_as_of`. `sides` are those before it, `reserved` the names
    of columns that the result adds.
#}
{% macro _joined_side(macro_name, base, join, sides, base_columns, reserved=[]) %}
    {%- set allowed = ['relation', 'on', 'how', 'columns', 'prefix', 'many'] -%}
    {%- for name in (join if join is mapping else {'?': join}) if name not in allowed -%}
        {%- do afterimage._wrong_argument(
            macro_name, base, "an entry of `joins` has '" ~ (name if join is mapping else join) ~ "'. Allowed: "
            ~ allowed | join(', ') ~ ". Fix: correct it."
        ) -%}
    {%- endfor -%}
    {%- do afterimage._check_relation(macro_name, 'relation', join.relation) -%}
    {%- set relation = join.relation -%}
    {%- set settings = afterimage._settings_of_relation(relation) -%}
    {%- set found = afterimage._history_columns(relation, settings) -%}
    {%- if join.on is not mapping or not join.on -%}
        {%- do afterimage._wrong_argument(
            macro_name, relation, "`on` maps columns of the result so far to columns of " ~ relation ~ ", got "
            ~ (join.on or 'nothing') ~ ". Fix: write 'on': {'<column>': '" ~ (settings.key or ['<column>'])[0] ~ "'}."
        ) -%}
    {%- endif -%}
    {%- do afterimage._check_columns(macro_name, relation, 'on', join.on.values() | list, found) -%}
    {%- if join.get('how', 'left') not in ('left', 'inner') -%}
        {%- do afterimage._wrong_argument(
            macro_name, relation, "`how` is '" ~ join.how ~ "'. Allowed: left, inner. Fix: correct it."
        ) -%}
    {%- endif -%}
    {#- at any time a history has one row per value of its key #}
    {%- set missing = [] -%}
    {%- for name in settings.key if afterimage._same_name(name, join.on.values() | list) is none -%}
        {%- do missing.append(name) -%}
    {%- endfor -%}
    {%- if (missing or not settings.key) and not join.get('many', false) -%}
        {%- do afterimage._wrong_argument(
            macro_name, relation, "`on` lacks " ~ (missing | join(', ') or 'a key') ~ ", which is part of the key, so several"
            ~ " rows may match at one time. Fix: add it to `on`, or write 'many': true, which gives a row for each match."
        ) -%}
    {%- endif -%}
    {%- set names = join.columns if join.get('columns') is not none else afterimage._without(found.data, join.on.values() | list) -%}
    {%- do afterimage._check_columns(macro_name, relation, 'columns', names, found) -%}
    {%- set output = {} -%}
    {%- for name in ([found.id] if found.id else []) + names | list -%}
        {%- do output.update({name: join.get('prefix', '') ~ name}) -%}
    {%- endfor -%}
    {%- set taken = reserved | list -%}
    {%- for side in sides -%}
        {%- do taken.extend(side.output.values()) -%}
    {%- endfor -%}
    {%- do taken.extend(sides[0].extra) -%}
    {%- for name in join.on if afterimage._same_name(name, taken) is none -%}
        {%- if base_columns.all and afterimage._same_name(name, base_columns.all) is none -%}
            {%- do afterimage._wrong_argument(
                macro_name, relation, "`on` has '" ~ name ~ "', which is not a column of " ~ base ~ " and none that a side before"
                ~ " adds. Fix: correct the name; the column of " ~ relation ~ " comes second."
            ) -%}
        {%- endif -%}
        {#- the join needs it, the result does not -#}
        {%- do sides[0].extra.append(name) -%}
        {%- do taken.append(name) -%}
    {%- endfor -%}
    {%- for name in output.values() if afterimage._same_name(name, taken) is not none -%}
        {%- do afterimage._wrong_argument(
            macro_name, relation, "the result would have two columns `" ~ name ~ "`. Fix: write 'prefix': '<text>_', or name"
            ~ " others in `columns`."
        ) -%}
    {%- endfor -%}
    {{ return({
        'relation': relation,
        'key': settings.key,
        'task': settings.task,
        'on': join.on,
        'is_left': join.get('how', 'left') == 'left',
        'many': join.get('many', false),
        'output': output,
    }) }}
{% endmacro %}


{# By what the sides are compared, `change_seq` or `time`, and why. #}
{% macro _order_of_join(base, sides, by) %}
    {%- set tasks = sides | map(attribute='task') | map('default', '', true) | unique | list -%}
    {%- if by is none -%}
        {%- if tasks | length == 1 and tasks[0] -%}
            {{ return({'by': 'change_seq', 'why': 'all tables are of the task ' ~ tasks[0]}) }}
        {%- endif -%}
        {{ return({'by': 'time', 'why': 'the setting `task` is not the same on all sides'}) }}
    {%- elif by not in ('change_seq', 'time') -%}
        {%- do afterimage._wrong_argument(
            'temporal_join', base, "`by` is '" ~ by ~ "'. Allowed: change_seq, time. Fix: correct it, or leave it out: the setting"
            ~ " `task` decides then."
        ) -%}
    {%- elif by == 'change_seq' and tasks | select | list | length > 1 -%}
        {%- do afterimage._wrong_argument(
            'temporal_join', base, "`by` is 'change_seq', but the tables are of the tasks " ~ tasks | select | join(', ') ~ ", which have"
            ~ " no common order. Fix: write by='time', or correct the setting `task` of the tables."
        ) -%}
    {%- endif -%}
    {{ return({'by': by, 'why': 'the argument `by`'}) }}
{% endmacro %}


{# The statement. #}
{% macro _temporal_join_sql(base, sides, by_seq, why) -%}
{%- set from, to = ('valid_from_seq', 'valid_to_seq') if by_seq else ('valid_from', 'valid_to') -%}
{%- set carried = (sides[0].output | list + sides[0].extra) | unique | list -%}
(
    -- temporal_join by {{ 'change_seq' if by_seq else 'time' }}: {{ why | replace('\n', ' ') }}
    with

    base_versions as (
        select
            {{ afterimage._listed(afterimage._bounds(by_seq) + carried, indent=12) }}
        from {{ base }}
        {%- if not by_seq %}
        where valid_from < valid_to or valid_to is null
        {%- endif %}
    ),
    {%- for side in sides[1:] %}
    {%- set name = 'side_' ~ loop.index %}

    {{ afterimage._side_versions(side, name, by_seq, from, to) | indent }}
    {%- if side.is_left %}

    {{ afterimage._side_timeline(side, name, by_seq, from, to) | indent }}
    {%- endif %}

    with_{{ name }} as (
        select
            {%- for column in carried %}
            versions.{{ afterimage._quoted(column) }},
            {%- endfor %}
            {%- for column in side.output.values() %}
            {%- do carried.append(column) %}
            side.{{ afterimage._quoted(column) }},
            {%- endfor %}
            {{ afterimage._overlap(by_seq) | indent(12) }}
        from {{ 'base_versions' if loop.first else 'with_side_' ~ (loop.index - 1) }} as versions
        {{ 'left join ' ~ name ~ '_timeline' if side.is_left else 'inner join ' ~ name ~ '_versions' }} as side
            on
                {%- for column in side.on %}
                {{ 'and ' if not loop.first }}versions.{{ afterimage._quoted(column) }} = side._key_{{ loop.index }}
                {%- endfor %}
                and (versions.{{ from }} < side.{{ to }} or side.{{ to }} is null)
                and (side.{{ from }} < versions.{{ to }} or versions.{{ to }} is null{{ ' or side.' ~ from ~ ' is null' if side.is_left }})
    ){{ ',' if not loop.last }}
    {%- endfor %}

    select
        {%- for side in sides %}{% for column in side.output.values() %}
        {{ afterimage._quoted(column) }},
        {%- endfor %}{% endfor %}
        valid_from,
        {%- if by_seq %}
        -- not before valid_from, where the clock of the source ran back
        case when valid_to < valid_from then valid_from else valid_to end as valid_to,
        valid_from_seq,
        valid_to_seq,
        {%- else %}
        valid_to,
        {%- endif %}
        {{ to }} is null as is_current
    from with_side_{{ sides | length - 1 }}
)
{%- endmacro %}


{# Columns that hold the interval of a version. #}
{% macro _bounds(by_seq) %}
    {{ return(['valid_from', 'valid_to'] + (['valid_from_seq', 'valid_to_seq'] if by_seq else [])) }}
{% endmacro %}


{#
    The versions of a side, with the names of the result. For a left join also what comes before each of them under its
    values of `on`: the last end, and with `many` how many versions are open.
#}
{% macro _side_versions(side, name, by_seq, from, to) -%}
{%- set partition = 'partition by ' ~ afterimage._listed(side.on.values(), indent=0) | replace('\n', ' ') -%}
{#- with several keys under one value of `on`, the key makes the order total -#}
{%- set order = 'order by ' ~ afterimage._listed(([from] + (side.key if side.many else [])), indent=0) | replace('\n', ' ') -%}
{%- set before = 'over (' ~ partition ~ ' ' ~ order ~ ' rows between unbounded preceding and 1 preceding)' -%}
{{ name }}_versions as (
    select
        {{ afterimage._listed(afterimage._bounds(by_seq)) }}
        {%- for column in side.on.values() %},
        {{ afterimage._quoted(column) }} as _key_{{ loop.index }}
        {%- endfor %}
        {%- for column, output in side.output.items() %},
        {{ afterimage._quoted(column) }}{{ ' as ' ~ afterimage._quoted(output) if output != column }}
        {%- endfor %}
        {%- if side.is_left %}
        {%- for bound in afterimage._bounds(by_seq) if bound.startswith('valid_to') %},
        max({{ bound }}) {{ before }} as _{{ bound }}_before
        {%- endfor %}
        {%- if side.many %},
        count(*) {{ before }} - count({{ to }}) {{ before }} as _open_before
        {%- endif %},
        lead({{ from }}) over ({{ partition }} {{ order }}) as _next_from
        {%- endif %}
    from {{ side.relation }}
    {%- if not by_seq %}
    where valid_from < valid_to or valid_to is null
    {%- endif %}
),
{%- endmacro %}


{#
    The versions of a side and the gaps before, between and after them. The cross join with three rows makes them in one
    pass; a union would sort the side once for each of its parts. A gap before the first version begins with NULL, a gap
    after the last one ends with NULL.
#}
{% macro _side_timeline(side, name, by_seq, from, to) -%}
{{ name }}_parts as (
    select 'version' as _part
    union all
    select 'gap before' as _part
    union all
    select 'gap after' as _part
),

{{ name }}_rows as (
    select
        versions.*,
        parts._part
    from {{ name }}_versions as versions
    cross join {{ name }}_parts as parts
),

{{ name }}_timeline as (
    select
        {%- for column in side.on %}
        _key_{{ loop.index }},
        {%- endfor %}
        {%- for column in side.output.values() %}
        case when _part = 'version' then {{ afterimage._quoted(column) }} end as {{ afterimage._quoted(column) }},
        {%- endfor %}
        {%- for end in afterimage._bounds(by_seq) if end.startswith('valid_to') %}
        {%- set begin = end | replace('valid_to', 'valid_from') %}
        case
            when _part = 'version' then {{ begin }}
            when _part = 'gap before' or {{ end }} < _{{ end }}_before then _{{ end }}_before
            else {{ end }}
        end as {{ begin }},
        case
            when _part = 'version' then {{ end }}
            when _part = 'gap before' then {{ begin }}
        end as {{ end }}{{ ',' if not loop.last }}
        {%- endfor %}
    from {{ name }}_rows
    where
        _part = 'version'
        or (
            _part = 'gap before'
            and (_{{ to }}_before < {{ from }} or _{{ to }}_before is null)
            {{- '\n            and _open_before = 0' if side.many }}
        )
        or (
            _part = 'gap after'
            and _next_from is null
            and {{ to }} is not null
            {{- '\n            and _open_before = 0' if side.many }}
        )
),
{%- endmacro %}


{# The interval in which a version and a row of a side are both valid. #}
{% macro _overlap(by_seq) -%}
{%- for begin in afterimage._bounds(by_seq) if begin.startswith('valid_from') -%}
case
    when side.{{ begin }} > versions.{{ begin }} then side.{{ begin }}
    else versions.{{ begin }}
end as {{ begin }},
{% endfor -%}
{%- if by_seq -%}
case
    when side.valid_to_seq is null or versions.valid_to_seq < side.valid_to_seq then versions.valid_to
    when versions.valid_to_seq is null or side.valid_to_seq < versions.valid_to_seq then side.valid_to
    when side.valid_to > versions.valid_to then side.valid_to
    else versions.valid_to
end as valid_to,
{% endif -%}
{%- set end = 'valid_to_seq' if by_seq else 'valid_to' -%}
case
    when side.{{ end }} < versions.{{ end }} or versions.{{ end }} is null then side.{{ end }}
    else versions.{{ end }}
end as {{ end }}
{%- endmacro %}
