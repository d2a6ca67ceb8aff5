{#
    Answers to questions, by their names. Each is a select of one value. They are one statement, and Spark looks for the
    answers side by side: what a run with few changes costs is mostly the number of its statements.
#}
{% macro _asked(questions) %}
    {%- set parts = [] -%}
    {%- for name, question in questions.items() -%}
        {%- do parts.append("(" ~ question ~ ") as " ~ name) -%}
    {%- endfor -%}
    {%- set row = run_query("select " ~ parts | join(", ")).rows[0] -%}
    {%- set answers = {} -%}
    {%- for name in questions -%}
        {%- do answers.update({name: row[loop.index0]}) -%}
    {%- endfor -%}
    {{ return(answers) }}
{% endmacro %}


{# For `_asked`: the newest batch that a relation holds, of those that a condition on recorded_at selects; NULL when it holds none. #}
{% macro _newest_batch_question(relation, is_new) -%}
select cast(max(recorded_at) as string)
from {{ relation }}
where {{ is_new }}
{%- endmacro %}


{# For `_asked`: how many rows of a relation a condition on recorded_at selects, and their newest batch; as JSON. #}
{% macro _batch_question(relation, is_new) -%}
select
    to_json(
        struct(count(*) as changes, cast(max(recorded_at) as string) as recorded_at),
        map('ignoreNullFields', 'false')
    )
from {{ relation }}
where {{ is_new }}
{%- endmacro %}
