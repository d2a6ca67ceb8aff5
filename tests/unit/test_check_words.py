"""scripts/check_words.py reports retired words, and leaves ordinary English alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import check_words
from scripts.check_words import findings, findings_in_code, is_checked, main


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ("Build the table anew.", "'anew', use: again"),
        ("def test_a_log_is_made_anew() -> None:", "'anew', use: again"),
        ("Cure: set the key.", "'Cure', use: Fix:"),
        ("from benchmarks import rivals", "'rivals', use: baseline"),
        ("the version that stood before", "'stood', use: anchor version"),
        ("history takes the wide path", "'wide path', use: incremental or replay path"),
        ("a record that is set aside", "'set aside', use: rejected"),
        ("the keys are worked out first", "'are worked out', use: is computed"),
        ("a purge is no news", "'is no news', use: is not a"),
    ],
)
def test_a_retired_word_is_found_anywhere(line: str, finding: str) -> None:
    (found,) = findings(f"fine\n{line}\n")
    assert found.startswith(f"line 2: {finding}")


@pytest.mark.parametrize(
    ("line", "identifier", "term"),
    [
        ("select * from key_touches", "key_touches", "key event"),
        ("the CTE `touches` has them", "touches", "key event"),
        ("{{ _touch_rank() }}", "_touch_rank", "key event"),
        ("progress = noted_at_start", "noted_at_start", "progress"),
        ("class WholeLoads:", "WholeLoads", "complete load"),
        ("raise GuardError(message)", "GuardError", "schema contract"),
        ("state = WAITING", "WAITING", "pending"),
        ("is_blind", "is_blind", "incomplete"),
        ("_history_look", "_history_look", "batch profile"),
    ],
)
def test_an_ordinary_word_is_found_in_an_identifier(line: str, identifier: str, term: str) -> None:
    (found,) = findings(line)
    assert found.startswith(f"line 1: {identifier!r}, use: {term}")


@pytest.mark.parametrize(
    "line",
    [
        "A transaction touches two tables while its partner is waiting.",
        "look_back: 15 minutes",
        "There is no news, and the old one is no longer read.",
        "arrival_look_back: 1",
        "keep_deleted: true",
        "def test_updates_touched_the_column_only() -> None:",
        "procure, secure and renewal",
        "mask_too_wide",
        "notes, customers__notes and `note`",
        "operation and generate",
        "[decision 14](decisions/0014_late_changes_are_replayed_over_the_version_that_stood.md)",
    ],
)
def test_ordinary_english_and_names_of_records_pass(line: str) -> None:
    assert list(findings(line)) == []


@pytest.mark.parametrize(
    "name",
    [
        "docs/decisions/0044_the_wide_path_finds_its_keys_once.md",
        "scripts/check_words.py",
        "tests/unit/test_check_words.py",
        "requirements-build.txt",
        "LICENSE",
        "docs/plots/keys_iceberg.png",
    ],
)
def test_exempt_files_are_skipped(name: str) -> None:
    assert not is_checked(name)


@pytest.mark.parametrize("name", ["README.md", "Makefile", "macros/staging/_base_rows.sql"])
def test_text_files_are_checked(name: str) -> None:
    assert is_checked(name)


def test_the_exit_code_says_whether_there_are_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check_words, "ROOT", tmp_path)
    (tmp_path / "docs/decisions").mkdir(parents=True)
    for name in ("docs/decisions/0001_a.md", "docs/new.md"):
        (tmp_path / name).write_text("Build it anew.\n")
    (tmp_path / "docs/old.md").write_text("Rebuild it.\n")
    assert main(["docs/decisions/0001_a.md", "docs/old.md", "docs/gone.md"]) == 0
    assert main(["docs/new.md"]) == 1
    assert "docs/new.md: line 1: 'anew'" in capsys.readouterr().out


def test_names_of_one_word_and_docstrings_of_the_package() -> None:
    code = 'def pending() -> int:\n    """What waits."""\n    waiting = "the waiting ones"\n'
    assert list(findings_in_code(code)) == [
        "line 2: docstring begins with 'What', use: the noun or the verb it means",
        "line 3: 'waiting', use: pending",
    ]
