{#
    Answers of scalar queries, by name. They are one statement, and Spark runs them side by side: the cost of a run with few
    changes is mostly the number of its statements.
#}
{% macro _scalar_answers(queries) %}
    {%- set parts = [] -%}
    {%- for name, query in queries.items() -%}
        {%- do parts.append("(" ~ query ~ ") as " ~ name) -%}
    {%- endfor -%}
    {%- set row = run_query("select " ~ parts | join(", ")).rows[0] -%}
    {%- set answers = {} -%}
    {%- for name in queries -%}
        {%- do answers.update({name: row[loop.index0]}) -%}
    {%- endfor -%}
    {{ return(answers) }}
{% endmacro %}


{# For `_scalar_answers`: the newest batch that a relation holds, of those that a condition on recorded_at selects; NULL when it holds none. #}
{% macro _newest_batch_query(relation, is_new) -%}
select cast(max(recorded_at) as string)
from {{ relation }}
where {{ is_new }}
{%- endmacro %}


{# For `_scalar_answers`: how many rows of a relation a condition on recorded_at selects, and their newest batch; as JSON. #}
{% macro _batch_query(relation, is_new) -%}
select
    to_json(
        struct(count(*) as changes, cast(max(recorded_at) as string) as recorded_at),
        map('ignoreNullFields', 'false')
    )
from {{ relation }}
where {{ is_new }}
{%- endmacro %}
