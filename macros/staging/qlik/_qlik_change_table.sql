{#
    The roles of a Qlik change table's columns, derived from their names, and the positions of their bits in the change mask.
    Sources: the vendor's page "Change Tables"; any subset of the header columns may be stored.

    Arguments: name of the macro and of the table for errors, the raw columns [{name, data_type}] in their order,
    the settings. Returns a dict:
      headers   header's name without its prefix -> raw column {name, data_type}; absent ones are not in it
      data      data columns as _typed_column gives them
      mask      none without a mask column, else {column, type, columns, first_data_bit} for the macros on masks
#}
{% macro _qlik_change_table(macro, table, raw_columns, settings) %}
    {%- set prefix = settings.header_prefix | lower -%}
    {%- set declared = afterimage._declared_columns(settings) -%}
    {%- set own = adapter.afterimage.tool_columns(settings, raw_columns | map(attribute='name') | list) -%}
    {%- set headers = {} -%}
    {%- for column in raw_columns if column.name | lower != 'partition_name' or not prefix -%}
        {%- set name = column.name | lower -%}
        {%- if column.name in own and name.startswith(prefix) -%}
            {%- do headers.update({name[prefix | length:]: column}) -%}
        {%- endif -%}
    {%- endfor -%}
    {#- some loaders write the partition's name without the prefix #}
    {%- for column in raw_columns if column.name | lower == 'partition_name' and 'partition_name' not in headers -%}
        {%- do headers.update({'partition_name': column}) -%}
    {%- endfor -%}
    {%- for name in ['change_seq', 'change_oper'] if name not in headers -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: table " ~ table ~ " has no column `" ~ settings.header_prefix ~ name ~ "`. Of the header columns"
            ~ " change_seq and change_oper must be stored. Its columns: " ~ raw_columns | map(attribute='name') | join(', ')
            ~ ". Fix: let the replication task store the column, or set `header_prefix` (now '" ~ settings.header_prefix
            ~ "') in the table's `meta.afterimage`."
        ) }}
    {%- endfor -%}

    {%- set header_names = headers.values() | map(attribute='name') | list -%}
    {%- set data = [] -%}
    {%- for column in raw_columns if column.name not in header_names -%}
        {%- do data.append(afterimage._typed_column(column.name, column, declared.get(column.name | lower, {}).get('data_type'))) -%}
    {%- endfor -%}
    {%- if not data -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: table " ~ table ~ " has header columns only. Fix: check `header_prefix` (now '"
            ~ settings.header_prefix ~ "') in its `meta.afterimage`."
        ) }}
    {%- endif -%}
    {%- set lobs = afterimage._columns_of_setting(macro, table, 'lob_columns', settings.lob_columns, data) -%}

    {%- set mask = none -%}
    {%- if 'change_mask' in headers -%}
        {%- if afterimage._normal_type(headers.change_mask.data_type) not in ['string', 'binary'] -%}
            {{ exceptions.raise_compiler_error(
                "`" ~ macro ~ "`: `" ~ headers.change_mask.name ~ "` of table " ~ table ~ " is of type "
                ~ headers.change_mask.data_type ~ "; allowed: string (hex text), binary. Fix: let the loader store the mask"
                ~ " so, or put a view over the table that casts it, and declare the view as the source table."
            ) }}
        {%- endif -%}
        {%- set layout = afterimage._qlik_mask_layout(macro, table, raw_columns, header_names, data, lobs, settings) -%}
        {%- set mask = {
            'column': headers.change_mask.name,
            'type': headers.change_mask.data_type,
            'columns': layout.columns,
            'first_data_bit': layout.first_data_bit,
        } -%}
    {%- endif -%}
    {{ return({'headers': headers, 'data': data, 'lobs': lobs, 'mask': mask}) }}
{% endmacro %}


{# The header columns that must be stored and are not, with the prefix. #}
{% macro _missing_qlik_headers(raw_columns, prefix) %}
    {%- set prefix = prefix | lower -%}
    {%- set names = raw_columns | map(attribute='name') | map('lower') | list -%}
    {{ return([prefix ~ 'change_seq', prefix ~ 'change_oper'] | reject('in', names) | list) }}
{% endmacro %}


{#
    Which column each bit of the mask belongs to, from `first_data_bit` on.

    A bit is a column's place in the table (vendor's page "Change Tables"), so by default the columns are taken in table
    order: with h columns before it the first data column is bit h, and a header column further behind, as the
    partition column often is, holds the place of its own bit. `mask_columns` lists the places where DDL has moved them;
    a name in it that the table no longer has holds its place. `mask_first_data_bit` wins over the count.
#}
{% macro _qlik_mask_layout(macro, table, raw_columns, header_names, data, lobs, settings) %}
    {%- set names = data | map(attribute='name') | list -%}
    {%- set places = [] -%}
    {%- for column in raw_columns -%}
        {%- do places.append(none if column.name in header_names else column.name) -%}
    {%- endfor -%}
    {%- set before = places.index(names[0]) -%}
    {%- set first = before if settings.mask_first_data_bit == 'auto' else settings.mask_first_data_bit -%}

    {%- if settings.mask_columns -%}
        {{ return({'columns': afterimage._listed_mask_columns(macro, table, names, lobs, settings), 'first_data_bit': first}) }}
    {%- elif settings.mask_first_data_bit == 'auto' -%}
        {{ return({'columns': places[before:], 'first_data_bit': first}) }}
    {%- endif -%}
    {{ return({'columns': names, 'first_data_bit': first}) }}
{% endmacro %}


{#
    The setting `mask_columns` as the table spells its columns: none for a name that it does not have, whose bit keeps its
    place. Stops where the setting leaves out a column that has a bit: any but `lobs`, which are none where any column may
    have no bit.
#}
{% macro _listed_mask_columns(macro, table, names, lobs, settings) %}
    {%- set columns = [] -%}
    {%- for listed in settings.mask_columns -%}
        {%- do columns.append(afterimage._same_name(listed, names)) -%}
    {%- endfor -%}
    {%- for name in names if lobs is not none and name not in columns and name not in lobs -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: `mask_columns` of table " ~ table ~ " leaves out `" ~ name ~ "`; it must list every data"
            ~ " column that is not in `lob_columns`, in the order of the mask's bits. Fix: add the column."
        ) }}
    {%- endfor -%}
    {{ return(columns) }}
{% endmacro %}


{# The columns that a setting names, as the table spells them; stops at a name that it does not have. #}
{% macro _columns_of_setting(macro, table, setting, listed, data) %}
    {%- set names = data | map(attribute='name') | list -%}
    {%- set found = [] -%}
    {%- for name in listed -%}
        {%- set column = afterimage._same_name(name, names) -%}
        {%- if column is none -%}
            {{ exceptions.raise_compiler_error(
                "`" ~ macro ~ "`: `" ~ setting ~ "` of table " ~ table ~ " names `" ~ name ~ "`, which is none of its data"
                ~ " columns: " ~ names | join(', ') ~ ". Fix: correct the name."
            ) }}
        {%- endif -%}
        {%- do found.append(column) -%}
    {%- endfor -%}
    {{ return(found) }}
{% endmacro %}


{# The name in a list that is the same for Spark, which does not look at upper and lower case; none if there is none. #}
{% macro _same_name(name, names) %}
    {%- for other in names if other | lower == name | lower -%}
        {{ return(other) }}
    {%- endfor -%}
    {{ return(none) }}
{% endmacro %}
