"""Deliberately broken variants of the project, at least one for each rule of history.

Each replaces a piece of text in one file. The named tests must fail then: that shows that they
would notice. `python -m tests.mutations.check` runs them, see there.
"""

from __future__ import annotations

from dataclasses import dataclass

HISTORY = "src/dbt_afterimage/history"
SQL = f"{HISTORY}/sql.py"
INTERVALS = f"{HISTORY}/rules/intervals.py"
BOUNDARIES = f"{HISTORY}/rules/boundaries.py"
KEY_CHANGES = f"{HISTORY}/rules/key_changes.py"
LOAD_IMAGE = f"{HISTORY}/rules/load_image.py"
FORWARD_FILL = f"{HISTORY}/rules/forward_fill.py"
CONTRADICTED_LOADS = f"{HISTORY}/replay/contradicted_loads.py"
REPLAYED_KEYS = f"{HISTORY}/replay/replayed_keys.py"
REPLAY = f"{HISTORY}/replay/replayed_versions.py"
PLAN = f"{HISTORY}/plan.py"
DIFFERENCES = f"{HISTORY}/differences.py"


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
    return f"tests/kernel/test_random_streams.py --shapes {shape}"


def _batches(test: str, shape: str) -> str:
    return f"tests/functional/properties/test_batches.py -k {test} --shapes {shape}"


MUTATIONS = (
    Mutation(
        "R1: a delete does not win at its change_seq",
        SQL,
        "when 'D' then 4",
        "when 'D' then 0",
        _rules("in_order"),
    ),
    Mutation(
        "R1: the later of two events at one change_seq counts as what opened a version",
        INTERVALS,
        "if has_prior else _FIRST_KIND",
        "if has_prior else KIND",
        _rules("in_order"),
    ),
    Mutation(
        "R2: an update does not open a version",
        INTERVALS,
        "and (not coalesce({_WAS_OPEN}, false) or",
        "and ((not coalesce({_WAS_OPEN}, false) and {KIND} <> 'U') or",
        _rules("no_before_images"),
    ),
    Mutation(
        "R3: every update makes a version",
        INTERVALS,
        "or {KIND} = 'K' or {differs})",
        "or {KIND} = 'K' or true)",
        _rules("ignored"),
    ),
    Mutation(
        "R4: untracked columns keep their first value",
        INTERVALS,
        'f"last_value(case when {is_upsert()} then {_state',
        'f"first_value(case when {is_upsert()} then {_state',
        _rules("ignored"),
    ),
    Mutation(
        "R5: a delete closes nothing",
        INTERVALS,
        'f"not ({is_upsert()}) and coalesce({_WAS_OPEN}, false) as',
        "f\"not ({is_upsert()}) and {KIND} <> 'D' and coalesce({_WAS_OPEN}, false) as",
        _rules("in_order"),
    ),
    Mutation(
        "R6: a truncate after a key change that closes nothing is overlooked",
        BOUNDARIES,
        "UPSERTS[:-1] + f\", '{KEY_CHANGE_OUT}')\" if has_key_changes else UPSERTS",
        "UPSERTS",
        _rules("truncates_in_order"),
    ),
    Mutation(
        "R6: a version that a truncate closes has the transaction of an earlier change",
        BOUNDARIES,
        '        "transaction_id": f"{boundary}.transaction_id",\n',
        "",
        _rules("truncates_in_order"),
    ),
    Mutation(
        "R6: the scope of a truncate is ignored",
        BOUNDARIES,
        'f"({_is_not_scoped(name)} or ({column}',
        'f"(true or ({column}',
        _rules("scoped"),
    ),
    Mutation(
        "R7: a displaced row that leaves closes the row that came in",
        KEY_CHANGES,
        'f"not coalesce({DEPARTURE}.is_displaced, false)"',
        '"true"',
        _rules("in_order"),
    ),
    Mutation(
        "R7: a reinserted row cannot be displaced",
        KEY_CHANGES,
        'f" or not coalesce(lag({KIND}) over ({in_order}) in {UPSERTS}, false))"',
        'f" or lag({KIND}) over ({in_order}) is null)"',
        "tests/kernel/test_rules_by_hand.py -k reinserted",
    ),
    Mutation(
        "R7: a row that was never named is taken for the one that came to its key",
        KEY_CHANGES,
        "state.is_unnamed and coalesce({is_other}, false)",
        "false",
        _rules("midway_in_order"),
    ),
    Mutation(
        "R7: the row that came to an empty key and moves on is taken for another one",
        KEY_CHANGES,
        "state.is_unnamed and coalesce({is_other}, false)",
        "state.is_unnamed",
        _rules("midway_in_order"),
    ),
    Mutation(
        "R7: a key-change-in over an equal row opens nothing",
        INTERVALS,
        "or {KIND} = 'K' or {differs})",
        "or {differs})",
        _rules("in_order"),
    ),
    Mutation(
        "R8: a frozen base keeps rows that were inserted after the load",
        LOAD_IMAGE,
        "f\"coalesce({_FIRST_CHANGE} <> 'I', true)\"",
        '"true"',
        _rules("frozen"),
    ),
    Mutation(
        "R8: the load image of a live base is not reconstructed",
        LOAD_IMAGE,
        "f\"case when {_FIRST_CHANGE} in ('U', '{KEY_CHANGE_OUT}', 'D')\"",
        'f"case when false"',
        _rules("live"),
    ),
    Mutation(
        "R8: a row that comes to a key shows that it was empty",
        LOAD_IMAGE,
        "f\" when {KIND} = 'K' and {net} <> 0 then {net} < 0 end as {held}\"",
        "f\" when {KIND} = 'K' then false end as {held}\"",
        "tests/kernel/test_rules_by_hand.py -k later_transaction",
    ),
    Mutation(
        "R8: a row that a truncate with a scope ended was not loaded",
        LOAD_IMAGE,
        "(boundary.truncate_scope is null or {_NEXT_KIND} in ('I', 'K'))",
        "boundary.truncate_scope is null",
        _rules("frozen_track_loads_cut_scoped --streams 60"),
    ),
    Mutation(
        "R8: an update without a before image does not show that the row was loaded",
        LOAD_IMAGE,
        'f" {texts(table.key)} as before_known_columns)"',
        'f" null as before_known_columns)"',
        _rules("live_unknown --streams 60"),
    ),
    Mutation(
        "R8: a delete without a before image does not show that the row was loaded",
        LOAD_IMAGE,
        """when {KIND} in ('U', 'D') then struct""",
        """when {KIND} = 'U' then struct""",
        _rules("live_unknown_reloads --streams 60"),
    ),
    Mutation(
        "R8: a load closes nothing",
        BOUNDARIES,
        "    conditions = [\n",
        "    conditions = [\n        \"boundary.change_oper = 'T'\",\n",
        _rules("lossy"),
    ),
    Mutation(
        "R9: values are carried over gaps",
        FORWARD_FILL,
        "coalesce(not ({is_upsert(previous)}), true) as {starts}",
        "{previous} is null as {starts}",
        _rules("lossy"),
    ),
    Mutation(
        "R9: values do not follow a row to its new key",
        FORWARD_FILL,
        "if ROW_ID in lineages.columns:",
        "if False:",
        _rules("unknown_in_order"),
    ),
    Mutation(
        "R10: the time of a boundary runs back with the clock",
        INTERVALS,
        "coalesce(max(changed_at) over",
        "coalesce(last_value(changed_at) over",
        _rules("in_order"),
    ),
    Mutation(
        "R11: a version that a later batch closes forgets what opened it",
        INTERVALS,
        'f"coalesce({ANCHOR}.opened_by, {_FIRST_KIND})" if has_prior',
        "_FIRST_KIND if has_prior",
        _batches("r11_history", "in_order"),
    ),
    Mutation(
        "R11: keys of a table with a base are replayed without what opened their prior versions",
        LOAD_IMAGE,
        "    names = events.columns\n",
        '    names = [name for name in events.columns if "anchor" not in name]\n',
        "tests/kernel/test_forms_of_history.py",
    ),
    Mutation(
        "R11: late changes take the incremental path",
        PLAN,
        # otherwise the clocks of late changes would reveal them as well
        "    if reason is None:\n        return VersionsPlan(",
        "    if True:\n        return VersionsPlan(",
        _batches("r11_history", "late_and_plain"),
    ),
    Mutation(
        "R11: a late change writes the rows of its key again that it does not concern",
        DIFFERENCES,
        "or not ({after} <=> {before})",
        "or true",
        "tests/functional/test_files_stay.py -k late_batch",
    ),
    Mutation(
        "R4: a version that was updated in place since the late change is taken for what it was",
        REPLAYED_KEYS,
        'f"{updated_since} or {within',
        'f"{within',
        "tests/functional/nightly/test_late_deletes.py -k test_r4",
    ),
    Mutation(
        "R9: a value that a later change has filled in is taken for what it was",
        REPLAY,
        "if anchor_seq:",
        "if False:",
        "tests/kernel/test_history_batches.py -k filled_in",
    ),
    Mutation(
        "R8: an insert that meets an open version is not noticed",
        CONTRADICTED_LOADS,
        "count_if({after_anchor} and {KIND} = 'I')",
        "count_if({after_anchor} and {KIND} = 'X')",
        "tests/kernel/test_history_batches.py",
    ),
    Mutation(
        "R8: a load that a version outlived is taken for one that cannot be contradicted",
        CONTRADICTED_LOADS,
        """f"opened.opened_by is not null and first.{KIND} = 'I'\"""",
        """f"opened.opened_by = 'L' and first.{KIND} = 'I'\"""",
        "tests/kernel/test_history_batches.py -k outlived",
    ),
    Mutation(
        "R1: changes at one change_seq contradict a load in any order",
        CONTRADICTED_LOADS,
        'f" order by change_seq, {RANK_OF_KIND}) as',
        'f" order by change_seq) as',
        "tests/kernel/test_history_batches.py -k at_one_change_seq",
    ),
    Mutation(
        "R6: the scope of a truncate is compared with a row that is gone",
        BOUNDARIES,
        "over ({by_key(table.key, _ROW_NUMBER)}",
        "over ({by_key(table.key)}",
        "tests/kernel/test_history_batches.py -k scope",
    ),
    Mutation(
        "R7: a transaction that a late change falls into is read in part",
        REPLAYED_KEYS,
        " or {within_a_transaction}",
        "",
        _batches("r11_history", "live_late"),
    ),
    Mutation(
        "R7: a transaction that a batch continues is read in part",
        PLAN,
        "if reason is None and stored.continues_transaction:",
        "if False:",
        _batches("r11_history", "on_time"),
    ),
    Mutation(
        "R8: a late change that contradicts the loaded row does not bring the load back",
        REPLAYED_KEYS,
        "\n        f\" or coalesce({own('contradicts_load')}, false), null,",
        '\n        f", null,',
        _batches("r11_history", "live_late_clocks"),
    ),
    Mutation(
        "R10: a key that was deleted forgets its time",
        REPLAYED_KEYS,
        " or {own('is_overtaken')} is not null",
        "",
        _batches("r11_history", "no_before_images"),
    ),
    Mutation(
        "R6: a version ends by a truncate that it has outlived",
        BOUNDARIES,
        # after the truncate the row took on the scope's value, and is late after that
        "f\"if({KIND} = '{ANCHOR_VERSION}', {outlived}",
        'f"if(false, {outlived}',
        _batches("r11_history", "scoped_ignored --streams 300"),
    ),
    Mutation(
        "R11: keys with late changes are always built from the beginning of the log on",
        REPLAYED_KEYS,
        "null, {_FIRST_SEQ}) as {REPLAY_FROM}",
        "null, null) as {REPLAY_FROM}",
        "tests/functional/test_files_stay.py -k late_batch",
    ),
    Mutation(
        "R11: a key that lost its only version stays in the current table",
        "macros/marts/current.sql",
        "{%- if publications.paths != ['incremental'] -%}",
        "{%- if false -%}",
        "tests/functional/nightly/test_late_deletes.py",
    ),
    Mutation(
        "R12: a batch that is applied again is inserted again",
        DIFFERENCES,
        'F.expr(f"{VERSION_ID} = {stored_id}")',
        "F.expr(f\"{VERSION_ID} = concat({stored_id}, 'x')\")",
        _batches("r12", "late_and_plain"),
    ),
    Mutation(
        "R13: a column that the source has no longer counts as NULL",
        "src/dbt_afterimage/change_log/writing/log_schema.py",
        'F.when(is_image, F.coalesce("known_columns", known))',
        'F.when(is_image, F.col("known_columns"))',
        "tests/functional/test_source_changes.py",
    ),
)
