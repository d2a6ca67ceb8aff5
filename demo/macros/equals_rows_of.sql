{#
    Generic test of the demo: a model has the rows of another table, in the columns of that one.

    Arguments:
      relation  the other table: source(...)
#}
{% test equals_rows_of(model, relation) %}
    {%- set columns = [] -%}
    {%- for column in adapter.get_columns_in_relation(relation) if execute -%}
        {%- do columns.append(column.name) -%}
    {%- endfor -%}
with

missing as (
    select
        {{ columns | join(',\n        ') }}
    from {{ relation }}
    except all
    select
        {{ columns | join(',\n        ') }}
    from {{ model }}
),

surplus as (
    select
        {{ columns | join(',\n        ') }}
    from {{ model }}
    except all
    select
        {{ columns | join(',\n        ') }}
    from {{ relation }}
)

select
    'missing' as what,
    *
from missing
union all
select
    'surplus' as what,
    *
from surplus
{% endtest %}
