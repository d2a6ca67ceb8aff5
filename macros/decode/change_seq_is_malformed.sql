{#
    Condition: a change_seq of Qlik Replicate is not 35 digits that begin with a valid time. NULL for a NULL one.
    `changed_at`: its time, where that is at hand already; by default it is decoded here.
#}
{% macro change_seq_is_malformed(change_seq, changed_at=none) -%}
(
    length({{ change_seq }}) <> 35
    or {{ change_seq }} rlike '[^0-9]'
    or {{ changed_at or afterimage.change_seq_to_timestamp(change_seq) | indent }} is null and {{ change_seq }} is not null
)
{%- endmacro %}
