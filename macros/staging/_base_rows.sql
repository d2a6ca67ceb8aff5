{# The rows of a base table, behind the changes of a staging model. #}

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
    {%- set found = {} -%}
    {%- for column in data -%}
        {%- set raw_name = afterimage._same_name(column.name, raw_names) -%}
        {%- if raw_name is not none -%}
            {%- set raw = raw_columns[raw_names.index(raw_name)] -%}
            {%- do found.update({column.name: afterimage._typed_column(column.name, raw, column.data_type, column.is_array)}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set columns = found.values() | list -%}
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
    {%- if columns | length < data | length %}
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
    {%- set present = found.get(column.name) %}
    {%- if not present %}
    cast(null as {{ column.data_type | replace(',', ', ') }}) as {{ afterimage._quoted(column.name) }}
    {%- elif present.is_cast or present.raw_name != column.name %}
    {{ afterimage._cast_column(present) | indent }} as {{ afterimage._quoted(column.name) }}
    {%- else %}
    {{ afterimage._quoted(column.name) }}
    {%- endif %}
    {%- endfor %}
from {{ relation }}
{%- endmacro %}
