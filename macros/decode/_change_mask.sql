{#
    How a change mask of a Qlik change table is stored; shared by the macros of macros/decode. Masks of Qlik messages have
    another form: _message_mask_columns decodes them.

    Bit b (0 = least significant) belongs to the column with the ordinal b + 1. Hex text has the most significant byte
    first, binary the least significant one, and may leave out trailing zero bytes (vendor's page "Change Tables").
    Here a mask becomes as many 64-bit words as its columns need: word w holds the bits 64 w to 64 w + 63.
#}

{# The arguments that all macros on masks take, checked and completed; `macro` is named in errors. #}
{% macro _change_mask(macro, data_columns, byte_order, first_data_bit, mask_type) %}
    {%- set orders = ['auto', 'msb_first', 'lsb_first'] -%}
    {%- if byte_order not in orders -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: `byte_order` is '" ~ byte_order ~ "'; allowed: " ~ orders | join(', ') ~ "."
        ) }}
    {%- endif -%}
    {%- if first_data_bit is not integer or first_data_bit < 0 -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: `first_data_bit` is '" ~ first_data_bit ~ "'; allowed: a number from 0, usually the number of"
            ~ " columns before the first data column."
        ) }}
    {%- endif -%}
    {%- if not data_columns -%}
        {{ exceptions.raise_compiler_error("`" ~ macro ~ "`: `data_columns` is empty; a mask needs at least one column.") }}
    {%- endif -%}
    {%- set type = mask_type | lower -%}
    {%- set is_text = type == 'string' or type.startswith(('string ', 'varchar', 'char')) -%}
    {%- if not is_text and type != 'binary' -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: `mask_type` is '" ~ mask_type ~ "'; allowed: string (hex text), binary."
        ) }}
    {%- endif -%}
    {%- set width = first_data_bit + data_columns | length -%}
    {{ return({
        'is_text': is_text,
        'byte_order': byte_order if byte_order != 'auto' else ('msb_first' if is_text else 'lsb_first'),
        'width': width,
        'words': (width + 63) // 64,
    }) }}
{% endmacro %}


{# The mask's bytes, as stored; NULL when it is text that is not hex. unhex puts the lost zero before an odd length. #}
{% macro _change_mask_bytes(mask, form) %}
    {{- return(afterimage._hex_to_binary(mask) if form.is_text else mask) -}}
{% endmacro %}


{# The word that holds a bit: the name of the selected part, or its expression. #}
{% macro _change_mask_word(parts, bit, has_parts) %}
    {%- set name = '_mask_word_' ~ (bit // 64 + 1) -%}
    {{ return(name if has_parts else parts[name]) }}
{% endmacro %}


{# The position of bit b in its word. A word is read from 8 bytes in stored order: the first byte is the most significant. #}
{% macro _change_mask_position(bit, byte_order) %}
    {%- set position = bit % 64 -%}
    {{ return(position if byte_order == 'msb_first' else 8 * (7 - position // 8) + position % 8) }}
{% endmacro %}


{# Condition: the last word has a bit beyond the last column; empty text when the columns fill the word. #}
{% macro _change_mask_beyond(word, form) %}
    {%- set used = form.width % 64 -%}
    {%- if not used -%}
        {{ return('') }}
    {%- elif form.byte_order == 'msb_first' -%}
        {{ return("shiftright(" ~ word ~ ", " ~ used ~ ") <> 0") }}
    {%- endif -%}
    {%- set bits = namespace(sum=0) -%}
    {%- for bit in range(used, 64) -%}
        {%- set bits.sum = bits.sum + 2 ** afterimage._change_mask_position(bit, form.byte_order) -%}
    {%- endfor -%}
    {#- a bigint has a sign in its 64th bit; it is never alone here, so the literal is one that Spark can read #}
    {{ return(word ~ " & " ~ (bits.sum if bits.sum < 2 ** 63 else bits.sum - 2 ** 64) ~ "L <> 0") }}
{% endmacro %}


{#
    An element of concat() that adds nothing, and keeps the projection it is in out of Spark's whole-stage code generation.

    That puts the expressions of all columns into one Java method. Beyond 8,000 bytes of code the JVM never compiles it,
    and beyond 64 KB Spark cannot generate it: masks of 75 columns took 3 to 10 times as long to read inside.
    Outside, Spark makes many methods of them, whatever the number of columns; a lambda, as here, leads it there.
#}
{% macro _no_whole_stage_codegen() %}
    {{- return('filter(array(), name -> true)') -}}
{% endmacro %}
