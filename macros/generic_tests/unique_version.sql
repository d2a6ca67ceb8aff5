{#
    Generic test of a history: a key has one version per valid_from_seq, and each version its own surrogate key.

    Arguments:
      key         columns; default: the `key` of the source table's settings
      version_id  column of the surrogate key; default: the model's name and `_id`
#}
{% test unique_version(model, key=none, version_id=none) %}
    {%- if not execute -%}
        {{ return('select 1') }}
    {%- endif -%}
    {%- set key = afterimage._tested_key('unique_version', key) -%}
    {%- set version_id = afterimage._quoted(version_id or afterimage._tested_node().alias ~ '_id') -%}
with

versions as (
    select
        {{ version_id }},
        {{ afterimage._listed(key) }},
        valid_from_seq,
        count(*) over (
            partition by
                {{ afterimage._listed(key, indent=16) }},
                valid_from_seq
        ) as versions_of_key_and_seq,
        count(*) over (partition by {{ version_id }}) as versions_of_id
    from {{ model }}
)

select *
from versions
where
    versions_of_key_and_seq > 1
    or versions_of_id > 1
    or {{ version_id }} is null
{% endtest %}
