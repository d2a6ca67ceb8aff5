{# What the generic tests of this project share: the settings of the tested table, and checks of their arguments. #}

{# The node that a generic test is attached to. `model` is the test itself here; in a test's own body it is the relation. #}
{% macro _tested_node() %}
    {{ return(graph.nodes[model.attached_node] if model.attached_node in graph.nodes else model) }}
{% endmacro %}


{# Settings of the source table that a tested log or mart comes from. #}
{% macro _tested_settings() %}
    {{ return(afterimage._settings_of(afterimage._tested_node())) }}
{% endmacro %}


{# Key columns of a tested log or mart: the argument, else the setting of its source table. #}
{% macro _tested_key(test_name, key) %}
    {%- if key is string or key is mapping -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ test_name ~ "` on " ~ afterimage._tested_node().name ~ ": `key` is a list of column names, got " ~ key
            ~ ". Write key: [order_id], or leave it out: the `key` of the source table's settings is taken then."
        ) }}
    {%- endif -%}
    {%- set columns = key or afterimage._tested_settings().key -%}
    {%- if not columns -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ test_name ~ "` on " ~ afterimage._tested_node().name ~ ": its source table declares no `key`."
            ~ " Add `key: [...]` to the table's `meta.afterimage`, or give the test the argument key: [...]."
        ) }}
    {%- endif -%}
    {{ return(columns) }}
{% endmacro %}


{# Stops where an argument that should be a relation is something else. #}
{% macro _check_relation_argument(test_name, argument, given) %}
    {%- if given is string or given is not defined or given is none or given.identifier is not defined -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ test_name ~ "` on " ~ afterimage._tested_node().name ~ ": `" ~ argument ~ "` is a model, got "
            ~ (given if given is string else 'nothing') ~ ". Write " ~ argument ~ ": ref('<name of the model>')."
        ) }}
    {%- endif -%}
{% endmacro %}


{# Stops where a test that needs the whole table was given a part of it. #}
{% macro _check_whole_table(test_name, relation) %}
    {%- if relation is string or relation.identifier is not defined -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ test_name ~ "` on " ~ afterimage._tested_node().name ~ ": it reads the whole table and takes no `where`."
            ~ " Fix: remove `where` from the test's config."
        ) }}
    {%- endif -%}
{% endmacro %}


{# The table that keeps what a change log refused. #}
{% macro _rejected_relation(changes) %}
    {{ return(changes.incorporate(path={'identifier': changes.identifier ~ '_rejected'})) }}
{% endmacro %}


{# Rows of a change log that were recorded up to this time have record hashes of an earlier form; '' where none has. #}
{% macro _hashed_after(changes) %}
    {{ return(afterimage._own_properties(changes).get('afterimage.hashed_after', '') | replace('T', ' ')) }}
{% endmacro %}


{# Data columns of a change log that its staging model has no longer. #}
{% macro _lost_columns(changes, staging, settings) %}
    {%- set present = afterimage._raw_columns(staging) | map(attribute='name') | list -%}
    {%- set lost = [] -%}
    {%- for column in afterimage._data_columns(changes, settings) if afterimage._same_name(column.name, present) is none -%}
        {%- do lost.append(column.name) -%}
    {%- endfor -%}
    {{ return(lost) }}
{% endmacro %}


{# Condition: all these columns are NULL. #}
{% macro _are_null(names, prefix='') %}
    {%- set parts = [] -%}
    {%- for name in names -%}
        {%- do parts.append(prefix ~ afterimage._quoted(name) ~ ' is null') -%}
    {%- endfor -%}
    {{ return(parts | join(' and ')) }}
{% endmacro %}


{# SQL: the hash of a staged record's key, if whole records of a change log were erased; '' if none were. #}
{% macro _erased_key_hash(changes, staging, settings) %}
    {%- if not settings.key or load_relation(afterimage._erasures_relation()) is none -%}
        {{ return('') }}
    {%- endif -%}
    {{ return(adapter.afterimage.key_hash_sql(afterimage._progress_name(changes), settings.key, staging)) }}
{% endmacro %}


{# Stops unless an argument of a test is a share; `example` ends the fix. #}
{% macro _check_share(test, argument, value, example) %}
    {%- if value is not number or value is boolean or not 0 <= value <= 1 -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ test ~ "` on " ~ afterimage._tested_node().name ~ ": `" ~ argument ~ "` is a number from 0 to 1, got "
            ~ value ~ ". Fix: write " ~ argument ~ ": " ~ example ~ "."
        ) }}
    {%- endif -%}
{% endmacro %}
