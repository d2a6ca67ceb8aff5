"""Refuses words that docs/glossary.md has replaced: one thing has one name.

Usage: check_words.py [file ...], by default all tracked text files.

WORDS are refused everywhere. IDENTIFIERS are ordinary English too, so they are refused only as
parts of identifiers: names with an underscore or an inner capital, constants, and single words in
backticks. The name of a test is a sentence, and counts as English. In the code of the package each
name is one, and no docstring begins with "What".
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORDS = {
    "anew": "again, rebuild or recreate",
    "cures?": "Fix:",
    "unasked": "by default",
    "without a word": "silently",
    "(?:is|are|was|were) worked out": "is computed",
    "(?:is|are|was|were) looked at": "is scanned or queried",
    "(?:go|goes|went) along": "is propagated",
    "stood": "anchor version",
    "closers": "boundary event",
    "unnoted|really_done": "progress",
    "rewound": "reconstruct the load image",
    "(?:narrow|wide)[ _]path": "incremental or replay path",
    "followers": "downstream models",
    "set[ _]aside": "rejected",
    "rivals?": "baseline",
    "upkeep": "compaction",
    "lakehouse": "warehouse",
    r"(?<!there )(?:is|are|was|were) no (?!longer|more|less)[a-z]+": "is not a",
}
IDENTIFIERS = {
    "touches|touched|touch_(?:kind|number|rank|seq)": "key event",
    "stands|standing": "anchor version",
    "noted|note(?=_)": "progress",
    "rewind(?:s|ing)?": "reconstruct the load image",
    "life|lives|began": "row lineage: row_id, row_started_seq",
    "carried": "forward-filled",
    "blind": "incomplete",
    "era": "load epoch",
    "narrow(?:_source)?|wide_source|force_wide": "incremental or replay",
    "look(?!_ba)|questions?|^_asked$": "batch profile or scalar query",
    "kept_rows|keep_by_name|afterimage_keep": "checkpoint",
    "fit|fitted": "TargetSchema, evolve_schema",
    "guards?|guarded": "schema contract or preflight check",
    "whole_loads?": "complete load",
    "marks|last_mark": "ingest_partition or ingest_position",
    "waiting": "pending",
    "folded": "merged into its update",
    "tend(?:s|ed)?": "compact_if_needed",
    "settled": "fully processed",
}
"""Pattern -> the term to use instead."""

IDENTIFIER = re.compile(
    r"\b(?!test_)(?=\w*(?:_|[a-z][A-Z])|[A-Z]{2,}\b|(?<=`)\w+`)\w+",
)
INNER_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
# Decision records keep the words of their day; the other exempt files list the words.
RECORD_NAME = re.compile(r"\b\d{4}_\w+")
EXEMPT = (
    "docs/decisions/",
    "scripts/check_words.py",
    "tests/unit/test_check_words.py",
    "requirements",
    "LICENSE",
)
CODE = "src/"
TEXT = (".py", ".sql", ".md", ".yml", ".yaml", ".toml", ".sh", ".example", "Makefile")


def _compiled(words: dict[str, str]) -> dict[re.Pattern[str], str]:
    """Patterns that match whole words, where an underscore separates words too."""
    return {
        re.compile(rf"(?<![a-z])(?:{word})(?![a-z])", re.IGNORECASE): term
        for word, term in words.items()
    }


_WORDS, _IDENTIFIERS = _compiled(WORDS), _compiled(IDENTIFIERS)


def findings(text: str) -> Iterator[str]:
    """Yields the replaced words of a text, as `line <number>: '<word>', use: <term>`."""
    for number, line in enumerate(RECORD_NAME.sub("", text).splitlines(), start=1):
        for pattern, term in _WORDS.items():
            for found in pattern.finditer(line):
                yield f"line {number}: {found.group()!r}, use: {term}"
        for identifier in IDENTIFIER.findall(line):
            snake_case = INNER_CAPITAL.sub("_", identifier)
            for pattern, term in _IDENTIFIERS.items():
                if pattern.search(snake_case):
                    yield f"line {number}: {identifier!r}, use: {term}"


def findings_in_code(code: str) -> Iterator[str]:
    """Yields the replaced names of one word in Python, and docstrings that begin with "What"."""
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        line = token.start[0]
        if token.type == tokenize.STRING and token.string.startswith('"""What '):
            yield f"line {line}: docstring begins with 'What', use: the noun or the verb it means"
        for pattern, term in _IDENTIFIERS.items():
            if token.type == tokenize.NAME and pattern.fullmatch(token.string):
                yield f"line {line}: {token.string!r}, use: {term}"


def is_checked(name: str) -> bool:
    """Whether a file, by its path in the repository, is a text that has to use the terms."""
    return name.endswith(TEXT) and not name.startswith(EXEMPT)


def _tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return listed.stdout.splitlines()


def _all_findings(name: str, text: str) -> Iterator[str]:
    yield from findings(text)
    if name.startswith(CODE) and name.endswith(".py"):
        yield from findings_in_code(text)


def main(names: list[str]) -> int:
    """Prints the findings; returns the exit code: 1 if there are any, else 0."""
    files = [name for name in names or _tracked() if is_checked(name)]
    found = [
        f"{name}: {finding}"
        for name in files
        # A deleted file is tracked until the next commit.
        if (ROOT / name).is_file()
        for finding in _all_findings(name, (ROOT / name).read_text(encoding="utf-8"))
    ]
    print("\n".join([*found, f"words: {len(files)} files, {len(found) or 'no'} findings"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
