{#
    Guard of change masks: stops when columns of a change table moved, so that its masks would be read wrongly: change
    masks of Qlik and of feeds, field maps of OpenEdge.

    A mask knows columns by their place only. A staging view remembers the places that it was made with; before it is
    replaced they are compared with those of the raw table as it is now. Nothing is compared while the view stays as it is.
#}

{# The bit layout of the running staging model's masks: {first_data_bit, columns}; none for a model without masks. #}
{% macro _mask_places() %}
    {%- for id in model.depends_on.macros if id.endswith('.stage_qlik_change_table') -%}
        {%- set settings = afterimage._settings_of(model) -%}
        {%- set raw_columns = afterimage._raw_columns(source(*model.sources[0])) -%}
        {%- set found = afterimage._qlik_change_table('staging_view', settings.source_table, raw_columns, settings) -%}
        {%- if found.mask -%}
            {{ return({'first_data_bit': found.mask.first_data_bit, 'columns': found.mask.columns}) }}
        {%- endif -%}
    {%- endfor -%}
    {%- for id in model.depends_on.macros if id.endswith('.stage_openedge') -%}
        {%- set settings = afterimage._settings_of(model) -%}
        {%- set raw_columns = afterimage._raw_columns(source(*model.sources[0])) -%}
        {#- a base table has no sequence #}
        {%- set tracked = {'own': afterimage._openedge_own_columns(raw_columns)} -%}
        {%- for other in model.sources[1:] -%}
            {%- set own = afterimage._openedge_own_columns(afterimage._raw_columns(source(*other))) -%}
            {%- if 'sequence' in own -%}
                {%- do tracked.update({'own': own}) -%}
            {%- endif -%}
        {%- endfor -%}
        {#- a list of names does not depend on the positions of columns #}
        {%- if raw_columns and 'changed_fields' not in tracked.own -%}
            {%- set found = afterimage._openedge_table('staging_view', settings.source_table, raw_columns, settings) -%}
            {{ return({'first_data_bit': 0, 'columns': found.mask}) }}
        {%- endif -%}
    {%- endfor -%}
    {%- for id in model.depends_on.macros if id.endswith('.stage_change_feed') -%}
        {%- set settings = afterimage._settings_of(model) -%}
        {%- set relation = source(*model.sources[0]) -%}
        {%- set raw_columns = afterimage._raw_columns(relation) -%}
        {%- if raw_columns and settings.changed_mask -%}
            {%- set data = afterimage._feed_data('staging_view', settings.source_table, relation, raw_columns, settings) -%}
            {{ return({
                'first_data_bit': settings.mask_first_data_bit,
                'columns': settings.mask_columns or data | map(attribute='name') | list,
            }) }}
        {%- endif -%}
    {%- endfor -%}
    {{ return(none) }}
{% endmacro %}


{#
    Whether something may have been recorded with the masks as they were: a change log of the running staging model has changes, or
    there is no change log, so that other models read it.
#}
{% macro _has_recorded_masks() %}
    {%- set logs = [] -%}
    {%- for node in graph.nodes.values()
        if node.config.materialized == 'change_log' and model.unique_id in node.depends_on.nodes -%}
        {%- do logs.append(node) -%}
        {%- set changes = load_relation(afterimage._relation_of(node)) -%}
        {%- if changes is not none and run_query("select 1 from " ~ changes ~ " where change_oper <> 'L' limit 1") | length -%}
            {{ return(true) }}
        {%- endif -%}
    {%- endfor -%}
    {{ return(not logs) }}
{% endmacro %}


{#
    Stops if places have changed, except where a setting states them explicitly.

    Arguments:
      was, is   places as `_mask_places` gives them; none where there is no mask
      settings  settings of the change table
#}
{% macro _check_mask_places(was, is, settings) %}
    {%- if was and is -%}
        {%- set table = settings.source_table -%}
        {%- if settings.get('mask_first_data_bit') == 'auto' and was.first_data_bit != is.first_data_bit -%}
            {{ exceptions.raise_compiler_error(
                "The change masks of source table " ~ table ~ " no longer fit its columns: " ~ was.first_data_bit
                ~ " header columns came before the first data column, and now it is " ~ is.first_data_bit
                ~ ". Each of them has a bit, so that every mask would be read differently. Nothing was written. Fix: set"
                ~ " `mask_first_data_bit: " ~ was.first_data_bit ~ "` in the table's `meta.afterimage` if the masks stayed as they"
                ~ " were, else `" ~ is.first_data_bit ~ "`; the test change_mask_fits shows which is right."
            ) }}
        {%- endif -%}
        {%- set changes = [] if settings.mask_columns else afterimage._changed_places(was.columns, is.columns) -%}
        {%- if changes -%}
            {%- set names = is.columns | reject('none') | list -%}
            {%- set suggested = [] -%}
            {%- for name in was.columns -%}
                {%- if name is not none -%}
                    {%- do suggested.append(afterimage._same_name(name, names) or afterimage._renamed(name, was.columns, is.columns) or name) -%}
                {#- a header column has a bit: a name that no column has holds its place #}
                {%- elif was.columns[loop.index:] | reject('none') | list -%}
                    {%- do suggested.append('header_at_' ~ loop.index0) -%}
                {%- endif -%}
            {%- endfor -%}
            {%- for name in names if name not in suggested -%}
                {%- do suggested.append(name) -%}
            {%- endfor -%}
            {{ exceptions.raise_compiler_error(
                "The change masks of source table " ~ table ~ " no longer fit its columns: " ~ changes | join('; ')
                ~ ". A mask knows columns by their place only. Nothing was written. Fix: set `mask_columns` in the table's"
                ~ " `meta.afterimage` to the columns in the order of the mask's bits, a renamed column by its new name; a column"
                ~ " that is gone keeps its place. If the bits stayed where they were: [" ~ suggested | join(', ') ~ "]."
                ~ (" The test change_mask_fits shows whether it is right." if settings.system == 'qlik_change_table' else "")
            ) }}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}


{#
    What changed between two lists of columns by their place, as texts. What is new at the end changes nothing; what is gone
    there does, for masks of before have a bit where the table has no column any more.
#}
{% macro _changed_places(was, is) %}
    {%- set changes = [] -%}
    {%- for name in was if name is not none -%}
        {%- set same = afterimage._same_name(name, is | reject('none') | list) -%}
        {%- if same is not none and is.index(same) != was.index(name) -%}
            {%- do changes.append("`" ~ name ~ "` moved from place " ~ was.index(name) ~ " to " ~ is.index(same)) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for name in was if name is not none and was.index(name) >= is | length -%}
        {%- if afterimage._same_name(name, is | reject('none') | list) is none -%}
            {%- do changes.append("place " ~ was.index(name) ~ " was `" ~ name ~ "`, which is gone") -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for name in was if name is not none and afterimage._renamed(name, was, is) -%}
        {%- do changes.append("place " ~ was.index(name) ~ " was `" ~ name ~ "` and is `" ~ afterimage._renamed(name, was, is) ~ "`") -%}
    {%- endfor -%}
    {{ return(changes) }}
{% endmacro %}


{# The new column at the place of one that is gone; none if that is not what happened to a column. #}
{% macro _renamed(name, was, is) %}
    {%- set place = was.index(name) -%}
    {%- set now = is[place] if place < is | length else none -%}
    {%- if now is none or afterimage._same_name(name, is | reject('none') | list) or afterimage._same_name(now, was | reject('none') | list) -%}
        {{ return(none) }}
    {%- endif -%}
    {{ return(now) }}
{% endmacro %}
