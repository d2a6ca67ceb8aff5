{# Parts of stage_change_feed: the columns of a feed, its sequence, operation and time. #}

{#
    The data columns of a feed as _typed_column gives them; stops if there are none. For a feed with images they also record
    whether an image is a map of texts (`is_in_map`), how these are encoded, and whether there are old values (`has_before`).
#}
{% macro _feed_data(macro, table, relation, raw_columns, settings) %}
    {%- set declared = afterimage._declared_columns(settings) -%}
    {%- set found = afterimage._image_columns(macro, table, relation, settings) -%}
    {%- set own = adapter.afterimage.tool_columns(settings, raw_columns | map(attribute='name') | list) -%}
    {%- for raw in raw_columns if settings.after is none and raw.name not in own -%}
        {%- do found.append(raw) -%}
    {%- endfor -%}
    {%- set data = [] -%}
    {%- for raw in found -%}
        {%- set column = afterimage._typed_column(raw.name, raw, declared.get(raw.name | lower, {}).get('data_type')) -%}
        {%- set is_in_map = settings.json_text is not none -%}
        {%- do column.update({
            'is_in_map': is_in_map,
            'encoding': afterimage._encoding(macro, table, column, settings) if is_in_map else 'text',
            'has_before': not settings.before.endswith('*')
                or afterimage._old_column(column.name, raw_columns, settings) is not none,
        }) -%}
        {%- do data.append(column) -%}
    {%- endfor -%}
    {%- set names = (data + raw_columns) | map(attribute='name') | map('lower') | list -%}
    {%- for column in settings.declared_columns if column.name | lower not in names -%}
        {%- do exceptions.warn(
            "Source table " ~ table ~ ": the declared column " ~ column.name ~ " is not in the table. Fix: correct the name in"
            ~ " `columns`, or remove it."
        ) -%}
    {%- endfor -%}
    {%- if not data -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: table " ~ table ~ " has columns of the feed only. Its columns: "
            ~ raw_columns | map(attribute='name') | join(', ') ~ ". Fix: correct `ignore_columns` (now "
            ~ settings.ignore_columns | join(', ') ~ ") in its `meta.afterimage`."
        ) }}
    {%- endif -%}
    {{ return(data) }}
{% endmacro %}


{#
    Stops where a setting, such as one of a preset, names a column that the raw table lacks. Spark would name neither the setting
    nor the preset. Only plain names and names in backticks are certain to be columns.
#}
{% macro _check_feed_columns(macro, table, raw_columns, settings) %}
    {%- set names = raw_columns | map(attribute='name') | map('lower') | list -%}
    {%- set read = [] -%}
    {%- for part in settings.sequence -%}
        {%- do read.append(('sequence', part)) -%}
    {%- endfor -%}
    {%- for setting in [
        'operation', 'changed_at', 'transaction_id', 'transaction_event', 'changed_columns', 'changed_mask', 'known_columns',
        'unchanged_columns', 'load_id', 'arrival', 'json_text',
    ] if settings[setting] -%}
        {%- do read.append((setting, settings[setting])) -%}
    {%- endfor -%}
    {%- for setting, sql in read -%}
        {%- set columns = modules.re.findall('^[A-Za-z_][A-Za-z0-9_]*$', sql) + modules.re.findall('`([^`]+)`', sql) -%}
        {%- for column in columns if column | lower not in names -%}
            {{ exceptions.raise_compiler_error(
                "`" ~ macro ~ "`: `" ~ setting ~ "`" ~ (" of the preset " ~ settings.preset if settings.preset else "")
                ~ " reads the column `" ~ column ~ "`, which table " ~ table ~ " lacks. Its columns: "
                ~ raw_columns | map(attribute='name') | join(', ') ~ ". Fix: land the column, or set `" ~ setting
                ~ "` in the table's `meta.afterimage`."
            ) }}
        {%- endfor -%}
    {%- endfor -%}
{% endmacro %}


{#
    A part of the sequence as hex text of fixed width that sorts like its value; NULL where the value does not fit its type.
    SEQUENCE_WIDTHS (settings/change_feed.py) has the widths.
#}
{% macro _sequence_part(value, type) %}
    {%- if type in ('number', 'timestamp') -%}
        {%- set number = "try_cast(" ~ value ~ " as bigint)" if type == 'number'
            else "unix_micros(try_cast(" ~ value ~ " as timestamp))" -%}
        {{ return("if(" ~ number ~ " >= 0, lpad(hex(" ~ number ~ "), 16, '0'), null)") }}
    {%- elif type in ('digits', 'long_digits') -%}
        {%- set text = "cast(" ~ value ~ " as string)" -%}
        {%- set parts = [] -%}
        {%- set length = 36 if type == 'digits' else 54 -%}
        {%- for start in range(1, length, 18) -%}
            {%- do parts.append(
                "lpad(hex(try_cast(substr(lpad(" ~ text ~ ", " ~ length ~ ", '0'), " ~ start ~ ", 18) as bigint)), 16, '0')"
            ) -%}
        {%- endfor -%}
        {{ return("if(" ~ text ~ " rlike '^[0-9]{1," ~ length ~ "}$', concat(" ~ parts | join(', ') ~ "), null)") }}
    {%- endif -%}
    {{ return("if(length(hex(" ~ value ~ ")) between 1 and 32, rpad(hex(" ~ value ~ "), 32, '0'), null)") }}
{% endmacro %}


{# Stops if a setting takes a number for a time: Spark would read it as seconds since 1970. #}
{% macro _check_feed_times(macro, table, relation, settings) %}
    {%- set rows = "(select *, from_json(cast(null as string), " ~ afterimage._text(settings.json_fields) ~ ") as record from "
        ~ relation ~ ")" if settings.json_text else relation -%}
    {%- set times = [] -%}
    {%- for value, type in settings.sequence.items() if type == 'timestamp' -%}
        {%- do times.append(['sequence', value, "set `sequence: {" ~ value ~ ": number}`"]) -%}
    {%- endfor -%}
    {%- if settings.changed_at and settings.changed_at_unit == 'timestamp' -%}
        {%- do times.append([
            'changed_at', settings.changed_at,
            "set `changed_at_unit` to seconds, milliseconds, microseconds or nanoseconds if it counts them since 1970",
        ]) -%}
    {%- endif -%}
    {%- for setting, value, fix in times -%}
        {%- set type = adapter.afterimage.type_of(value, rows) -%}
        {%- if type in ('tinyint', 'smallint', 'int', 'bigint', 'float', 'double') or type.startswith('decimal') -%}
            {{ exceptions.raise_compiler_error(
                "`" ~ macro ~ "`: `" ~ setting ~ "` of table " ~ table ~ " takes `" ~ value ~ "` for a time, and it is a number ("
                ~ type ~ "). Allowed: a timestamp, a date, or text that Spark casts to one. Fix: " ~ fix
                ~ "; or name SQL that makes it a time, such as timestamp_seconds(" ~ value ~ ") or to_timestamp(cast(" ~ value
                ~ " as string), 'yyyyMMdd')."
            ) }}
        {%- endif -%}
    {%- endfor -%}
{% endmacro %}


{# The change_seq of a record; NULL where a part has no value or one that does not fit its type. #}
{% macro _feed_change_seq(sequence) -%}
concat(
    {%- for value, type in sequence.items() %}
    {{ afterimage._sequence_part(value, type) }}{{ ',' if not loop.last }}
    {%- endfor %}
)
{%- endmacro %}


{# The operation of a record as the contract's letter; NULL for a value that the settings do not list. #}
{% macro _feed_operation(settings) -%}
case
    when {{ settings.operation }} is null then {{ afterimage._text(settings.missing_operation) if settings.missing_operation else 'null' }}
    {%- for value, letter in settings.operations.items() %}
    when cast({{ settings.operation }} as string) = {{ afterimage._text(value) }} then {{ afterimage._text(letter) }}
    {%- endfor %}
end
{%- endmacro %}


{# The time of a change; NULL where the feed has none, or one that is not a time. #}
{% macro _feed_changed_at(settings) %}
    {%- if not settings.changed_at -%}
        {{ return('cast(null as timestamp)') }}
    {%- elif settings.changed_at_unit == 'timestamp' -%}
        {{ return('try_cast(' ~ settings.changed_at ~ ' as timestamp)') }}
    {%- endif -%}
    {%- set number = 'try_cast(' ~ settings.changed_at ~ ' as bigint)' -%}
    {{ return({
        'seconds': afterimage._timestamp_of(number, 1000000),
        'milliseconds': afterimage._timestamp_of(number, 1000),
        'microseconds': 'timestamp_micros(' ~ number ~ ')',
        'nanoseconds': 'timestamp_micros(' ~ number ~ ' div 1000)',
    }[settings.changed_at_unit]) }}
{% endmacro %}


{#
    What a raw record says of its change, as columns that begin with `_`: its place, its operation (`_letter`), its time, its
    transaction, its load, and what it says of changed columns. `_has_time`, `_has_operation`: it has one, readable or not.
#}
{% macro _feed_event(settings, data, mask_parts) -%}
{{ afterimage._feed_change_seq(settings.sequence) }} as _change_seq,
{%- for value in settings.sequence %}
{{ 'and ' if not loop.first }}({{ value }}) is not null
{%- endfor %} as _is_placed,
{{ afterimage._feed_operation(settings) }} as _letter,
{{ afterimage._feed_changed_at(settings) }} as _changed_at,
({{ settings.changed_at or 'null' }}) is not null as _has_time,
({{ settings.operation }}) is not null as _has_operation,
cast({{ settings.transaction_id or 'null' }} as string) as _transaction_id,
try_cast({{ settings.transaction_event or 'null' }} as bigint) as _transaction_event,
cast({{ settings.load_id or 'null' }} as string) as _load_id,
{%- if settings.load_id %}
coalesce({{ settings.load_end or 'true' }}, false) as _is_load_end,
{%- endif %}
cast({{ settings.arrival or 'null' }} as string) as _arrival,
{%- set names = data | map(attribute='name') | list %}
{%- if settings.changed_mask %}
{{ settings.changed_mask }} as _changed_mask,
{%- else %}
{{ afterimage._feed_listed_columns(settings.changed_columns, names) }} as _changed_columns,
{%- endif %}
{{ afterimage._feed_listed_columns(settings.known_columns, names) }} as _listed_known,
{{ afterimage._feed_listed_columns(settings.unchanged_columns, names) }} as _listed_unchanged
{%- for name, expression in mask_parts.items() %},
{{ expression }} as {{ name }}
{%- endfor %}
{%- endmacro %}


{# SQL: an array of names that a setting gives, in the spelling of the data columns; NULL without the setting. #}
{% macro _feed_listed_columns(listed, names) %}
    {%- if not listed -%}
        {{ return('cast(null as array<string>)') }}
    {%- endif -%}
    {{ return("transform(cast(" ~ listed ~ " as array<string>), name -> " ~ afterimage._declared_name('name', names) ~ ")") }}
{% endmacro %}


{# Names that _feed_event and the CTEs of stage_change_feed give: no data column can have one. #}
{% macro _feed_helpers() %}
    {{ return([
        '_change_seq', '_is_placed', '_letter', '_changed_at', '_has_time', '_transaction_id', '_transaction_event', '_load_id',
        '_is_load_end', '_arrival', '_changed_mask', '_changed_columns', '_after', '_before', '_image', '_change_oper',
        '_raw_record', '_record_text', '_is_malformed', '_unavailable', '_has_operation', '_schema_encodings', '_document',
        '_listed_known', '_listed_unchanged', '_schema_id', '_message_text',
    ]) }}
{% endmacro %}


{#
    Data columns that a record may leave out, as _known_columns takes them: {name, condition}. Unknown are
    - in an update and its before image, a NULL in a column that the record does not list as changed (`sparse_updates`), or that
      `unknown_if_null` names,
    - what a record does not list as known, and what an update lists as unchanged (`known_columns`, `unchanged_columns`),
    - a field that a document lacks; with `absent: null` only in a before image, where writers leave out what did not change,
    - a value for which there is a placeholder,
    - in a before image, what the feed has none of. A feed without before images has the key alone in the image of a deleted
      row and of a changed key: other columns may have defaults there.
#}
{% macro _feed_unknown(data, settings) %}
    {%- set lists_changes = settings.sparse_updates and (settings.changed_columns or settings.changed_mask) -%}
    {%- set keys = settings.key | map('lower') | list -%}
    {%- set unknown = [] -%}
    {%- for column in data -%}
        {%- set name = afterimage._text(column.name) -%}
        {%- set is_key = column.name | lower in keys -%}
        {%- set raw = "element_at(_image, " ~ name ~ ")" if column.is_in_map else afterimage._quoted(column.raw_name) -%}
        {%- set conditions = [] -%}
        {%- if column.is_in_map and not is_key -%}
            {%- set is_absent = "not map_contains_key(_image, " ~ name ~ ")" -%}
            {%- do conditions.append("(_change_oper = 'B' and " ~ is_absent ~ ")" if settings.absent == 'null' else is_absent) -%}
        {%- endif -%}
        {%- if settings.unavailable_value is not none -%}
            {%- do conditions.append("array_contains(_unavailable, " ~ name ~ ")") -%}
        {%- endif -%}
        {%- if is_key -%}
        {%- elif not column.has_before -%}
            {%- do conditions.append("_change_oper = 'B'") -%}
        {%- elif settings.is_before_in_record and not settings.before_images -%}
            {%- do conditions.append("(_change_oper = 'B' or _change_oper = 'D' and _before is not null)") -%}
        {%- elif column.name | lower in settings.incomplete_before | map('lower') -%}
            {%- do conditions.append("(_change_oper = 'B' and " ~ raw ~ " is null)") -%}
        {%- endif -%}
        {%- if lists_changes and not is_key -%}
            {%- do conditions.append(
                "(_change_oper in ('U', 'B') and " ~ raw ~ " is null and not array_contains(_changed_columns, " ~ name ~ "))"
            ) -%}
        {%- endif -%}
        {%- if not is_key and (
            settings.unknown_if_null is true or column.name | lower in (settings.unknown_if_null or []) | map('lower')
        ) -%}
            {%- do conditions.append("(_change_oper in ('U', 'B') and " ~ raw ~ " is null)") -%}
        {%- endif -%}
        {%- if not is_key and settings.known_columns -%}
            {%- do conditions.append(
                "(_change_oper in ('I', 'U', 'B') and not coalesce(array_contains(_listed_known, " ~ name ~ "), true))"
            ) -%}
        {%- endif -%}
        {%- if not is_key and settings.unchanged_columns -%}
            {%- do conditions.append("(_change_oper = 'U' and coalesce(array_contains(_listed_unchanged, " ~ name ~ "), false))") -%}
        {%- endif -%}
        {%- if conditions -%}
            {%- do unknown.append({'name': column.name, 'condition': conditions | join(' or ')}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(unknown) }}
{% endmacro %}


{#
    Names of the data columns in whose place a record has a spelling of `unavailable_value`: array<string>. A column of its own,
    so that the spellings stand in the statement once for each type and not once for each column.

    Arguments:
      data   data columns whose values are not in a map
      image  SQL before their names: the struct that holds them, or nothing
#}
{% macro _unavailable(data, settings, image='') %}
    {%- set columns = {} -%}
    {%- for column in data -%}
        {%- set spellings = afterimage._unavailable_spellings(column.raw_type, settings) -%}
        {%- if spellings -%}
            {%- do columns.setdefault(spellings, []).append(
                afterimage._text(column.name) ~ ", " ~ image ~ afterimage._quoted(column.raw_name)
            ) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set found = [] -%}
    {%- for spellings, pairs in columns.items() -%}
        {%- do found.append(afterimage._keys_of_unavailable("map(" ~ pairs | join(', ') ~ ")", spellings)) -%}
    {%- endfor -%}
    {{ return("concat(" ~ found | join(', ') ~ ")" if found else "cast(array() as array<string>)") }}
{% endmacro %}


{# The keys of a map whose value is one of these spellings. #}
{% macro _keys_of_unavailable(values, spellings) %}
    {{ return("map_keys(map_filter(" ~ values ~ ", (name, value) -> coalesce(value in (" ~ spellings ~ "), false)))") }}
{% endmacro %}


{# The spellings of `unavailable_value` in columns of a type, as SQL joined by commas; none if the type has none. #}
{% macro _unavailable_spellings(type, settings) %}
    {%- set texts = adapter.afterimage.unavailable_spellings(settings.unavailable_value) -%}
    {%- set spellings = [] -%}
    {%- for text in texts -%}
        {%- if type == 'string' -%}
            {%- do spellings.append(afterimage._text(text)) -%}
        {%- elif type.startswith('array<') and text.startswith('[') -%}
            {%- do spellings.append("from_json(" ~ afterimage._text(text) ~ ", " ~ afterimage._text(type) ~ ")") -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if type == 'binary' -%}
        {%- do spellings.append("cast(" ~ afterimage._text(settings.unavailable_value) ~ " as binary)") -%}
    {%- endif -%}
    {{ return(spellings | join(', ')) }}
{% endmacro %}
