{#
    Generic test of a change log: no record waits in `<log>_rejected` for its repair.

    Put it on a log with `severity: warn`: a malformed record is the source's fault, and the build went on without it.
#}
{% test no_unresolved_rejects(model) %}
    {%- if not execute -%}
        {{ return('select 1') }}
    {%- endif -%}
    {%- do afterimage._check_whole_table('no_unresolved_rejects', model) -%}
select
    reject_reason,
    change_seq,
    change_oper,
    recorded_at,
    raw_record
from {{ afterimage._rejected_relation(model) }}
where resolved_at is null
{% endtest %}
