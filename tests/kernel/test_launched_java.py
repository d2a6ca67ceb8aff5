"""What other users of the machine see of a run, and reach: its processes, ports and files.

It starts Spark in a process of its own, and reads /proc as another user could.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

START = """\
import json, os, sys
from pathlib import Path

from dbt_afterimage.spark import session

given = {
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "2",
    "spark.hadoop.fs.s3a.secret.key": os.environ["SECRET"],
}
spark = session.start(given, Path(sys.argv[1]), "pyspark-shell")
spark.range(100).repartition(2).rdd.map(lambda row: row.id).count()
spark.range(100).groupBy("id").count().collect()
context = spark.sparkContext
print(json.dumps({
    "java": context._gateway.proc.pid,
    "folder": context.getConf().get("spark.local.dir"),
    "secret": session.hadoop_setting(spark, "fs.s3a.secret.key"),
}), flush=True)
sys.stdin.read()
"""


class Run:
    """A process with Spark, until `end`.

    Attributes:
        facts: what it says about itself.
        commands: command lines of all processes that were there while Spark started.
        temporary: its temporary folder.
    """

    def __init__(self, temporary: Path, secret: str) -> None:
        self.temporary = temporary
        self.commands: set[str] = set()
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, temporary / "spark.log"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "SECRET": secret, "TMPDIR": str(temporary)},
        )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        said = b""
        while not said.endswith(b"\n"):
            assert self._process.poll() is None, (temporary / "spark.log").read_text()[-4000:]
            self.commands |= set(command_lines())
            said += self._process.stdout.read() or b""
        self.facts: dict[str, Any] = json.loads(said)

    def end(self) -> None:
        self._process.communicate(timeout=60)


def command_lines() -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield process.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has just ended
            continue


def listening(process: int) -> set[str]:
    """Addresses on which a process listens, in the kernel's hexadecimal form."""
    files = [str(each.readlink()) for each in Path(f"/proc/{process}/fd").iterdir()]
    sockets = {file[len("socket:[") : -1] for file in files if file.startswith("socket:")}
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text(encoding="utf-8").splitlines()[1:]
    ]
    return {row[1].partition(":")[0] for row in rows if row[3] == "0A" and row[9] in sockets}


@pytest.fixture(scope="module")
def secret() -> str:
    return uuid.uuid4().hex


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, secret: str) -> Run:
    return Run(tmp_path_factory.mktemp("temporary"), secret)


def test_no_command_line_shows_a_secret_of_the_profile(run: Run, secret: str) -> None:
    assert run.facts["secret"] == secret
    assert any("--properties-file" in each and "SparkSubmit" in each for each in run.commands)
    assert not [each for each in run.commands if secret in each]
    assert not list(run.temporary.glob("*.conf"))


def test_spark_on_one_machine_listens_on_the_loopback_address_only(run: Run) -> None:
    """127.0.0.1, as such and as IPv6 has it."""
    found = listening(run.facts["java"])
    assert found
    assert found <= {"0100007F", "0000000000000000FFFF00000100007F"}


def test_other_users_cannot_read_what_spark_puts_on_disk(run: Run) -> None:
    folder = Path(run.facts["folder"])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(folder.glob("blockmgr-*"))
    assert not list(run.temporary.glob("blockmgr-*"))


def test_nothing_stays_in_the_temporary_folder(run: Run) -> None:
    run.end()
    assert not list(run.temporary.glob("afterimage*"))
