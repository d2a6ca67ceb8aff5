{#
    Generic test of a change log: updates have their before images, where the settings say that the source stores them.

    With `before_images: true` and a source that stores none, each update waits until the look-back has passed, and is
    recorded without its before image: field changes stay empty, and nothing else is wrong.

    Arguments:
      minimum_share  of the updates, how many must have a before image; from 0 to 1
#}
{% test before_images_arrive(model, minimum_share=0.1) %}
    {%- if not execute -%}
        {{ return('select 1') }}
    {%- endif -%}
    {%- do afterimage._check_share('before_images_arrive', 'minimum_share', minimum_share, '0.1 for one update in ten') -%}
    {%- set settings = afterimage._tested_settings() -%}
with

updates as (
    select
        count(*) as updates,
        count(before_record_hash) as with_before_image
    from {{ model }}
    where
        change_oper = 'U'
        {%- if not settings.before_images %}
        -- none are expected
        and false
        {%- endif %}
)

select
    updates,
    with_before_image,
    {{ afterimage._text(afterimage._missing_before_images(settings)) }} as what_is_wrong
from updates
where with_before_image < updates * {{ minimum_share }}
{% endtest %}


{# What to do where updates come without before images. The run says it too: change_log/batch.py. #}
{% macro _missing_before_images(settings) %}
    {{ return(
        "updates of " ~ settings.source_table ~ " come without before images. Fix: set `"
        ~ settings.without_before_images ~ "` in its `meta.afterimage` if the source stores none, or switch on"
        ~ " before images at the source"
    ) }}
{% endmacro %}
