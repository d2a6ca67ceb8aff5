{#
    Generic test of a model that reads histories by `as_of(..., cut='latest')` or `at_cut`: its rows, and those of another
    such model, are of one cut. A table without rows is of any cut.

    Arguments:
      other   the other model, of tables with the same task
      column  the column of both with the change_seq of the cut
#}
{% test same_cut(model, other, column='cut_seq') %}
    {%- if not execute -%}
        {{ return('select 1') }}
    {%- endif -%}
    {%- do afterimage._check_relation_argument('same_cut', 'other', other) -%}
    {%- do afterimage._check_whole_table('same_cut', model) -%}
with

cuts as (
    {%- for relation in [model, other] %}
    select distinct
        {{ afterimage._text(relation.identifier) }} as table_name,
        {{ afterimage._quoted(column) }} as cut_seq
    from {{ relation }}
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
)

select *
from cuts
where (select count(distinct cut_seq) from cuts) > 1
{% endtest %}
