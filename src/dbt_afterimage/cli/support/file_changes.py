"""Compares files that a command would write with those that exist; an edited file is never lost."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FileChange:
    """A file that would be created or replaced.

    Attributes:
        path: relative to the project.
        old: its text now, None if it does not exist.
        new: the text to write.
    """

    path: str
    old: str | None
    new: str

    def diff(self) -> str:
        """The lines that change, as a unified diff."""
        lines = difflib.unified_diff(
            (self.old or "").splitlines(),
            self.new.splitlines(),
            self.path if self.old is not None else "/dev/null",
            self.path,
            n=2,
            lineterm="",
        )
        return "\n".join(lines)


def changes(folder: Path, files: Mapping[str, str]) -> list[FileChange]:
    """The files, by path in the folder, whose text is not yet what it would be."""
    found = []
    for path, new in files.items():
        file = folder / path
        old = file.read_text(encoding="utf-8") if file.exists() else None
        if old != new:
            found.append(FileChange(path, old, new))
    return found


def write(folder: Path, wanted: Iterable[FileChange]) -> None:
    """Write files, each whole or not at all, and create their folders."""
    for change in wanted:
        file = folder / change.path
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(file.name + ".part")
        part.write_text(change.new, encoding="utf-8")
        part.replace(file)
