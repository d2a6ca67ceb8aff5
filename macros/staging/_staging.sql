{# What the staging macros of all systems share: base tables, reject reasons of casts, hash and text of a raw record. #}

{# Stops when the call and the settings disagree on the base table: the change log would take one for an empty load. #}
{% macro _check_base(macro, table, base, settings) %}
    {%- if base and not settings.base -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: `base='" ~ base ~ "'` is given, and the settings of table " ~ table ~ " have no `base`."
            ~ " Fix: add `base: {kind: frozen}` (or `live`) to its `meta.afterimage`, or take the argument out."
        ) }}
    {%- elif settings.base and not base -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: the settings of table " ~ table ~ " have a `base`, and the staging model names no base table."
            ~ " Fix: add the argument, for example `base='orders'`, or take `base` out of its `meta.afterimage`."
        ) }}
    {%- endif -%}
{% endmacro %}


{#
    known_columns of a record in which some columns are unknown under a condition: NULL (all are known) where none is.

    Arguments:
      where    condition: the record may leave columns out
      columns  data columns
      unknown  those that it may leave out, as {name, condition}
#}
{% macro _known_columns(where, columns, unknown) -%}
{%- if not unknown -%}
    {{ return('cast(null as array<string>)') }}
{%- endif -%}
case
    when
        {{ where }}
        and (
            {%- for column in unknown %}
            {{ 'or ' if not loop.first }}{{ column.condition }}
            {%- endfor %}
        )
        then array_except(
            array(
                {%- for column in columns %}
                {{ afterimage._text(column.name) }}{{ ',' if not loop.last }}
                {%- endfor %}
            ),
            array(
                {%- for column in unknown %}
                if({{ column.condition }}, {{ afterimage._text(column.name) }}, ''){{ ',' if not loop.last }}
                {%- endfor %}
            )
        )
end
{%- endmacro %}


{# SQL: a name in the spelling of the data column that has it, in whatever case; any other name as it is. #}
{% macro _declared_name(name, names) %}
    {%- set pairs = [] -%}
    {%- for declared in names -%}
        {%- do pairs.append(afterimage._text(declared | lower) ~ ', ' ~ afterimage._text(declared)) -%}
    {%- endfor -%}
    {{ return("coalesce(element_at(map(" ~ pairs | join(', ') ~ "), lower(" ~ name ~ ")), " ~ name ~ ")") }}
{% endmacro %}


{#
    A map of texts by the names of the data columns: Spark and all settings ignore case, so a name in another case is the
    column's too. Stops the run where a record has one column twice.

    A map whose names are spelt like the columns is returned as it is: two lookups for each of its names.

    Arguments:
      table  for the error
      image  SQL: the map; it is written out several times
      names  the data columns, as records are to spell them
#}
{% macro _image_by_name(table, image, names) -%}
    {%- set listed, lowered = [], [] -%}
    {%- for name in names -%}
        {%- do listed.append(afterimage._text(name)) -%}
        {%- do lowered.append(afterimage._text(name | lower)) -%}
    {%- endfor -%}
    {%- set is_column = "lower(name) in (" ~ lowered | join(', ') ~ ")" -%}
if(
    exists(map_keys({{ image }}), name -> {{ is_column }} and name not in ({{ listed | join(', ') }})),
    if(
        size(array_distinct(transform(map_keys({{ image }}), name -> {{ afterimage._declared_name('name', names) }})))
        < size({{ image }}),
        raise_error(
            concat(
                {{ afterimage._text("Source table " ~ table ~ ": a record has a column in two spellings: ") }},
                array_join(
                    array_sort(
                        filter(
                            map_keys({{ image }}),
                            name -> {{ is_column }}
                            and size(filter(map_keys({{ image }}), other -> lower(other) = lower(name))) > 1
                        )
                    ),
                    ', '
                ),
                '. Column names ignore case. Fix: rename one of them at the source, or read the table through a view that does.'
            )
        ),
        transform_keys({{ image }}, (name, value) -> {{ afterimage._declared_name('name', names) }})
    ),
    {{ image }}
)
{%- endmacro %}


{#
    True for a record whose time is more than a day ahead, for which it is rejected as `future_change_seq`. By the hour: Spark writes
    the time into the code that it generates, so it would compile that again in each run.
#}
{% macro _is_in_future() %}
    {{- return("_changed_at > date_trunc('hour', current_timestamp()) + interval 25 hours") -}}
{% endmacro %}


{#
    `when` branches of a case: the reject reason of the first raw column whose value its declared type cannot hold. Any
    text is an array.
#}
{% macro _when_uncastable(columns) %}
    {%- for column in columns if column.is_cast and not column.is_array %}
when
    {{ afterimage._is_uncastable(column) }}
    then {{ afterimage._text('uncastable_value:' ~ column.raw_name) }}
    {%- endfor %}
{%- endmacro %}


{#
    A hash of a raw record's content, by which it is recognised when it arrives again. xxhash64 skips NULLs, so that
    (NULL, 1) and (1, NULL) would be equal: every value goes in with its column's name. The partition is left out: the
    same record may arrive again in a later one.

    Values go in as the change log holds them, so the hash of a record stays what it is when its raw table changes: a
    column may be added, a type may become wider, and text may become a number where the declared type says that it is one
    (decision 55). Numbers go in as the widest type of their kind.
    The comment records the types at that time: a view keeps them, and is written again only when its text changes.

    Arguments:
      raw_columns   those that are hashed, as [{name, data_type}]
      partition     one of them that is left out, or none
      typed         data columns as _typed_column gives them
      is_rejected   condition: the record is rejected, so that its values count as they came. What a cast would make of
                    them may be the value of another record
#}
{% macro _record_hash(raw_columns, partition=none, typed=[], is_rejected=none) -%}
{%- set casts = {} -%}
{%- for column in typed if column.is_cast and not column.is_array -%}
    {%- do casts.update({column.raw_name: column}) -%}
{%- endfor -%}
xxhash64( /* of columns {{ local_md5(tojson(raw_columns)) }} */
    {%- for column in raw_columns if not partition or column.name != partition.name %}
    {%- set raw = afterimage._quoted(column.name) %}
    if({{ raw }} is null, null, {{ afterimage._text(column.name | lower) }}),
    {%- if column.name in casts %}
    {{ afterimage._widest(column.name, afterimage._cast_column(casts[column.name]), casts[column.name].data_type) }}{{ ',' if not loop.last or casts }}
    {%- else %}
    {{ afterimage._widest(column.name, raw, column.data_type) }}{{ ',' if not loop.last or casts }}
    {%- endif %}
    {%- endfor %}
    {%- if casts %}
    if(
        {{ is_rejected or afterimage._is_some_uncastable(casts.values()) }},
        to_json(
            array(
                {%- for name in casts %}
                {{ afterimage._as_text(afterimage._quoted(name), casts[name].raw_type) }}{{ ',' if not loop.last }}
                {%- endfor %}
            )
        ),
        null
    )
    {%- endif %}
)
{%- endmacro %}


{# Condition: the declared type of some of these columns cannot hold its value. #}
{% macro _is_some_uncastable(columns) %}
    {%- set conditions = [] -%}
    {%- for column in columns -%}
        {%- do conditions.append('(' ~ afterimage._is_uncastable(column) ~ ')') -%}
    {%- endfor -%}
    {{ return(conditions | join('\n        or ')) }}
{% endmacro %}


{# A value as the widest type that a table format would widen its type to. #}
{% macro _widest(name, value, data_type) %}
    {%- set type = afterimage._normal_type(data_type) -%}
    {%- if 'map<' in type or 'variant' in type -%}
        {{ exceptions.raise_compiler_error(
            "`_record_hash`: the raw column `" ~ name ~ "` is " ~ data_type ~ ". Spark can neither hash nor compare"
            ~ " maps and variants. Fix: read the table through a view that makes it text, with to_json for example."
        ) }}
    {%- endif -%}
    {%- set decimal = modules.re.match('decimal\\(\\d+,(\\d+)\\)', type) -%}
    {%- if type in ('tinyint', 'smallint', 'int') -%}
        {{ return("cast(" ~ value ~ " as bigint)") }}
    {%- elif type == 'float' -%}
        {{ return("cast(" ~ value ~ " as double)") }}
    {%- elif decimal -%}
        {{ return("cast(" ~ value ~ " as decimal(38, " ~ decimal.group(1) ~ "))") }}
    {%- endif -%}
    {{ return(value) }}
{% endmacro %}


{#
    The raw record as JSON. By default Spark would leave out NULLs, and cut timestamps to milliseconds.
    `is_binary_text`: binary columns hold text.
#}
{% macro _raw_record(raw_columns, is_binary_text=false) -%}
to_json(
    struct(
        {%- for column in raw_columns %}
        {%- set raw = afterimage._quoted(column.name) %}
        {{ "cast(" ~ raw ~ " as string) as " ~ raw if is_binary_text and column.data_type == 'binary' else raw }}{{ ',' if not loop.last }}
        {%- endfor %}
    ),
    map(
        'ignoreNullFields', 'false',
        'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX',
        'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS'
    )
)
{%- endmacro %}


{#
    The end of a staging statement: the CTE `decoded`, and behind it the rows of the base table, if there is one.
    `has_partner_column`: `decoded` has the column `partner_may_follow`.
#}
{% macro _with_base_rows(macro, source_name, base, relation, settings, data, has_partner_column=false) -%}
{% if base -%}
base_rows as (
    {{ afterimage._base_rows(macro, source_name, base, relation, settings, data, has_partner_column) | indent }}
),

{% endif -%}
final as (
    select * from decoded
    {%- if base %}
    union all
    select * from base_rows
    {%- endif %}
)

select * from final
{%- endmacro %}


{#
    The rows of a base table as rows of a full load. A data column that the base table lacks is unknown in them; a
    column that only the base table has is left out, since the change table defines the columns.
#}
{% macro _base_rows(macro, source_name, base, relation, settings, data, has_partner_column) %}
    {%- set load = settings.base -%}
    {%- set raw_columns = afterimage._landed_columns(macro, relation) or afterimage._settings(source_name, base).declared_columns -%}
    {%- set raw_names = raw_columns | map(attribute='name') | list -%}
    {%- set columns = [] -%}
    {%- set missing = [] -%}
    {%- for column in data -%}
        {%- set raw_name = afterimage._same_name(column.name, raw_names) -%}
        {%- if raw_name is none -%}
            {%- do missing.append(column.name) -%}
        {%- else -%}
            {%- set raw = raw_columns[raw_names.index(raw_name)] -%}
            {%- do columns.append(afterimage._typed_column(column.name, raw, column.data_type, column.is_array)) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if not columns -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: base table " ~ source_name ~ "." ~ base ~ " has none of the data columns of its change table."
            ~ " Its columns: " ~ raw_names | join(', ') ~ ". Fix: correct the argument `base`."
        ) }}
    {%- endif -%}
select
    {{ afterimage._text(load.position) if load.position else 'cast(null as string)' }} as change_seq,
    'L' as change_oper,
    {{ "timestamp '" ~ load.loaded_at ~ "'" if load.loaded_at else 'cast(null as timestamp)' }} as changed_at,
    cast(null as timestamp) as source_timestamp,
    cast(null as string) as transaction_id,
    cast(null as bigint) as transaction_event,
    {{- afterimage._no_optional_columns(settings) | indent }}
    cast(null as array<string>) as declared_changed_columns,
    {%- if missing %}
    array(
        {%- for column in columns %}
        {{ afterimage._text(column.name) }}{{ ',' if not loop.last }}
        {%- endfor %}
    ) as known_columns,
    {%- else %}
    cast(null as array<string>) as known_columns,
    {%- endif %}
    {%- if has_partner_column %}
    cast(null as boolean) as partner_may_follow,
    {%- endif %}
    cast(null as map<string, string>) as truncate_scope,
    {{ afterimage._text(load.load_id) }} as load_id,
    cast(null as string) as arrival,
    {%- if columns | selectattr('is_cast') | rejectattr('is_array') | list %}
    case
        {{- afterimage._when_uncastable(columns) | indent(8) }}
    end as reject_reason,
    {%- else %}
    cast(null as string) as reject_reason,
    {%- endif %}
    {{ afterimage._record_hash(raw_columns) | indent(4) }} as record_hash,
    {{ afterimage._raw_record(raw_columns) | indent(4) }} as raw_record
    {%- for column in data %},
    {%- set present = columns | selectattr('name', 'equalto', column.name) | list %}
    {%- if not present %}
    cast(null as {{ column.data_type | replace(',', ', ') }}) as {{ afterimage._quoted(column.name) }}
    {%- elif present[0].is_cast or present[0].raw_name != column.name %}
    {{ afterimage._cast_column(present[0]) | indent }} as {{ afterimage._quoted(column.name) }}
    {%- else %}
    {{ afterimage._quoted(column.name) }}
    {%- endif %}
    {%- endfor %}
from {{ relation }}
{%- endmacro %}
