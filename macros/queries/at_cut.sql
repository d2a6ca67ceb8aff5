{#
    CTEs of several histories at the last cut of their tasks, each named as its relation, for a model that begins with `with`:

        with {{ at_cut([ref('orders_history'), ref('customers_history')]) }}

        select * from orders_history inner join customers_history using (customer_id)

    Arguments:
      relations  a list of ref('<table>_history')
#}
{% macro at_cut(relations) %}
    {%- if relations is string or relations is mapping or relations is not iterable or not relations | list -%}
        {{ exceptions.raise_compiler_error(
            "`at_cut`: `relations` is a list of histories, got " ~ relations ~ ". Fix: write at_cut([ref('orders_history'),"
            ~ " ref('customers_history')])."
        ) }}
    {%- endif -%}
    {%- set tables = [] -%}
    {%- for relation in relations -%}
        {%- do afterimage._check_relation('at_cut', 'relations', relation) if execute -%}
        {%- do tables.append((relation.identifier if execute else 'parsed') ~ ' as ' ~ afterimage.as_of(relation, cut='latest')) -%}
    {%- endfor -%}
    {{ return(tables | join(',\n\n')) }}
{% endmacro %}
