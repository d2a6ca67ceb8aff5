{#
    Overrides dbt's query of a data test, to say what is wrong: dbt prints only how many rows a test has found. It runs the
    test once, prints the first text of its column `what_is_wrong`, and hands dbt the count. Tests without that column, and
    those whose rows are stored, are dbt's.
#}
{% macro spark__get_test_sql(main_sql, fail_calc, warn_if, error_if, limit) %}
    {%- if ' as what_is_wrong' not in main_sql -%}
        {{ return(dbt.default__get_test_sql(main_sql, fail_calc, warn_if, error_if, limit)) }}
    {%- endif -%}
    {%- set statement -%}
        select
            {{ fail_calc }} as failures,
            min(what_is_wrong) as what_is_wrong
        from (
            {{ main_sql }}
            {{ 'limit ' ~ limit if limit is not none }}
        ) as found
    {%- endset -%}
    {%- set found = run_query(statement)[0] -%}
    {%- if found['what_is_wrong'] is not none -%}
        {%- do log(model.name ~ ": " ~ found['what_is_wrong'] ~ ".", info=true) -%}
    {%- endif -%}
    select
        {{ found['failures'] }} as failures,
        {{ found['failures'] }} {{ warn_if }} as should_warn,
        {{ found['failures'] }} {{ error_if }} as should_error
{% endmacro %}
