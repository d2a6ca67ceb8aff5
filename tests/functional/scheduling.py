"""Which tests a worker of pytest-xdist runs one after the other, and what is begun first."""

from __future__ import annotations

from pathlib import PurePosixPath

from xdist.scheduler import LoadScopeScheduling

DEMOS = tuple(
    f"test_{name}demo.py"
    for name in ("", "kafka_", "mariadb_", "openedge_", "postgres_", "soliddb_")
)
LONGEST = (
    *DEMOS,
    *("test_kills.py", "test_mariadb.py", "test_postgres.py", "test_postgres_avro.py"),
    "test_batches.py",
)
"""What takes minutes is begun first, or one worker would be at it when the others are done."""


class FileScheduling(LoadScopeScheduling):
    """The tests of a file, which share what it has built; of the demos those of all files.

    So all demos are in one warehouse, as those of a user are who tries them all.
    """

    def _split_scope(self, nodeid: str) -> str:
        file, _, _ = nodeid.partition("::")
        return "demos" if PurePosixPath(file).name in DEMOS else file
