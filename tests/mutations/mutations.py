"""Deliberately broken variants of the project, at least one for each rule of history.

Each replaces a piece of text in one file. The named tests must fail then: that shows that they
would notice. `python -m tests.mutations.check` runs them, see there.
"""

from __future__ import annotations

from dataclasses import dataclass

VERSIONS = "macros/marts/_versions.sql"
BATCH = "macros/marts/_history_batch.sql"
REWOUND = "macros/marts/_rewound_touches.sql"
REPLAY = "macros/marts/_history_replay.sql"


@dataclass(frozen=True)
class Mutation:
    """`breaks` is a rule and what goes wrong; `test` are arguments of pytest."""

    breaks: str
    path: str
    old: str
    new: str
    test: str

    @property
    def rule(self) -> str:
        """The rule, R1 to R13."""
        return self.breaks.split()[0].rstrip(":")


def _rules(shape: str) -> str:
    return f"tests/functional/properties/test_rules.py -k random_streams --shapes {shape}"


def _batches(test: str, shape: str) -> str:
    return f"tests/functional/properties/test_batches.py -k {test} --shapes {shape}"


MUTATIONS = (
    Mutation(
        "R1: a delete does not win at its change_seq",
        VERSIONS,
        "when 'D' then 4",
        "when 'D' then 0",
        _rules("in_order"),
    ),
    Mutation(
        "R1: the later of two touches at one change_seq tells what opened a version",
        VERSIONS,
        "else '_first_kind' }} as opened_by",
        "else '_kind' }} as opened_by",
        _rules("in_order"),
    ),
    Mutation(
        "R2: an update does not open a version",
        VERSIONS,
        "not coalesce(_was_open, false)\n            or",
        "(not coalesce(_was_open, false) and _kind <> 'U')\n            or",
        _rules("no_before_images"),
    ),
    Mutation(
        "R3: every update makes a version",
        VERSIONS,
        "or {{ afterimage._differs_somewhere(tracked, carried) }}",
        "or true",
        _rules("ignored"),
    ),
    Mutation(
        "R4: untracked columns keep their first value",
        VERSIONS,
        "        last_value(\n            case when _kind in {{ upserts }} then {{ state }} end,",
        "        first_value(\n            case when _kind in {{ upserts }} then {{ state }} end,",
        _rules("ignored"),
    ),
    Mutation(
        "R5: a delete closes nothing",
        VERSIONS,
        "_kind not in {{ upserts }} and coalesce(_was_open, false) as _is_closing",
        "_kind not in {{ upserts }} and _kind <> 'D' and coalesce(_was_open, false) as _is_closing",
        _rules("in_order"),
    ),
    Mutation(
        "R6: a truncate after a departure that closes nothing is overlooked",
        "macros/marts/_ended_touches.sql",
        "\"('S', 'L', 'I', 'U', 'K', 'X')\"",
        "\"('S', 'L', 'I', 'U', 'K')\"",
        _rules("truncates_in_order"),
    ),
    Mutation(
        "R6: the scope of a truncate is not looked at",
        "macros/marts/_ended_touches.sql",
        "not coalesce(map_contains_key(",
        "true or not coalesce(map_contains_key(",
        _rules("scoped"),
    ),
    Mutation(
        "R7: a displaced row that leaves closes the row that arrived",
        "macros/marts/_permuted_touches.sql",
        "where not coalesce(_departure.is_displaced, false)",
        "where true",
        _rules("in_order"),
    ),
    Mutation(
        "R7: an arrival on an equal row opens nothing",
        VERSIONS,
        "            or _kind = 'K'\n",
        "",
        _rules("in_order"),
    ),
    Mutation(
        "R8: a frozen base keeps rows that were inserted after the load",
        REWOUND,
        "where coalesce(_first_change <> 'I', true)",
        "where true",
        _rules("frozen"),
    ),
    Mutation(
        "R8: a live base is not taken back to the load",
        REWOUND,
        "when _first_change in ('U', 'X', 'D') and _next_before is not null",
        "when false",
        _rules("live"),
    ),
    Mutation(
        "R8: a row that arrives at a key shows that it was empty",
        REWOUND,
        "        when _kind = 'K' and _net <> 0 then _net < 0\n        end as _held_a_row",
        "        when _kind = 'K' then false\n        end as _held_a_row",
        _rules("live_track_columns_no_ids_scoped --streams 200"),
    ),
    Mutation(
        "R8: a row that a truncate with a scope ended was not loaded",
        REWOUND,
        "and (_closer.truncate_scope is null or _next_kind in ('I', 'K'))",
        "and _closer.truncate_scope is null",
        _rules("frozen_track_loads_cut_scoped --streams 60"),
    ),
    Mutation(
        "R8: an update without a before image does not show that the row was loaded",
        REWOUND,
        "array({{ afterimage._texts(key) }}) as before_known_columns)\n       "
        "     {%- if has_displaced %}",
        "null as before_known_columns)\n            {%- if has_displaced %}",
        _rules("live_unknown --streams 60"),
    ),
    Mutation(
        "R8: a load closes nothing",
        "macros/marts/_ended_touches.sql",
        "_closer -> _closer.change_seq > neighbouring_touches.change_seq",
        "_closer -> _closer.change_oper = 'T'"
        " and _closer.change_seq > neighbouring_touches.change_seq",
        _rules("lossy"),
    ),
    Mutation(
        "R9: values are carried over gaps",
        "macros/marts/_carried_touches.sql",
        "order by change_seq, _touch_rank) not in {{ upserts }}, true",
        "order by change_seq, _touch_rank) is null, true",
        _rules("lossy"),
    ),
    Mutation(
        "R9: values do not follow a row to its new key",
        "macros/marts/_carried_touches.sql",
        "{{ '_life' if follows_moves else",
        "{{ partition ~ ', _life._began' if follows_moves else",
        _rules("unknown_in_order"),
    ),
    Mutation(
        "R10: the time of a boundary runs back with the clock",
        VERSIONS,
        "max(changed_at) over (\n",
        "last_value(changed_at) over (\n",
        _rules("in_order"),
    ),
    Mutation(
        "R11: a version that a later batch closes forgets what opened it",
        VERSIONS,
        "'coalesce(_stood.opened_by, _first_kind)'",
        "'_first_kind'",
        _batches("r11_history", "in_order"),
    ),
    Mutation(
        "R11: keys of a table with a base are replayed without what opened their prior versions",
        VERSIONS,
        "        + (['_stood'] if given.seeds else [])\n",
        "",
        "tests/functional/test_forms_of_history.py",
    ),
    Mutation(
        "R11: late changes take the incremental path",
        BATCH,
        # the clocks of late changes would tell them as well
        "{%- if why is none -%}",
        "{%- if true -%}",
        _batches("r11_history", "late_and_plain"),
    ),
    Mutation(
        "R11: a late change writes the rows of its key again that it does not concern",
        BATCH,
        "    or not (struct({{ afterimage._listed(values) | replace('\\n      "
        "  ', ' ') }}) <=> _stored)\n",
        "    or true\n",
        "tests/functional/test_files_stay.py -k late_batch",
    ),
    Mutation(
        "R4: a version that was updated in place since the late change is taken for what it was",
        REPLAY,
        "        replays.is_updated_since\n",
        "        false\n",
        "tests/functional/test_late_deletes.py -k test_r4",
    ),
    Mutation(
        "R7: a transaction that a late change falls into is read in part",
        REPLAY,
        "        or replays.is_in_transaction\n",
        "",
        _batches("r11_history", "live_late"),
    ),
    Mutation(
        "R7: a transaction that a batch continues is read in part",
        BATCH,
        "{%- elif found.moves and afterimage._history_continues(",
        "{%- elif false and afterimage._history_continues(",
        _batches("r11_history", "on_time"),
    ),
    Mutation(
        "R8: a late change that contradicts the loaded row does not bring the load back",
        REPLAY,
        "        or rewinding.{{ afterimage._quoted(key[0]) }} is not null\n",
        "",
        _batches("r11_history", "live_late_clocks"),
    ),
    Mutation(
        "R10: a key that was deleted forgets its time",
        REPLAY,
        "        or overtaken.{{ afterimage._quoted(key[0]) }} is not null\n",
        "",
        _batches("r11_history", "no_before_images"),
    ),
    Mutation(
        "R6: a version ends by a truncate that it has outlived",
        "macros/marts/_ended_touches.sql",
        "neighbouring_touches._kind <> 'S' or",
        "true or",
        # after the truncate the row took on the scope's value, and is late after that
        _batches("r11_history", "scoped_ignored --streams 300"),
    ),
    Mutation(
        "R11: keys with late changes are always built from the beginning of the log on",
        REPLAY,
        "        replays.first_seq\n    ) as _from_seq,",
        "        null\n    ) as _from_seq,",
        "tests/functional/test_files_stay.py -k late_batch",
    ),
    Mutation(
        "R11: a key that lost its only version stays in the current table",
        "macros/marts/current.sql",
        "{%- if publications.paths != ['incremental'] -%}",
        "{%- if false -%}",
        "tests/functional/test_late_deletes.py",
    ),
    Mutation(
        "R12: a batch that is applied again is inserted again",
        BATCH,
        "    on versions._version_id = stored.{{ id }}\n",
        "    on versions._version_id = concat(stored.{{ id }}, 'x')\n",
        _batches("r12", "late_and_plain"),
    ),
    Mutation(
        "R13: a column that the source has no longer counts as NULL",
        "src/dbt_afterimage/change_log/log_schema.py",
        'F.when(is_image, F.coalesce("known_columns", known))',
        'F.when(is_image, F.col("known_columns"))',
        "tests/functional/test_source_changes.py",
    ),
)
