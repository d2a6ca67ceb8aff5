"""A standalone Spark cluster on this machine, from PySpark's own files: a master and workers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from dbt_afterimage.spark.connect import ConnectError, check_reachable

HOST = "127.0.0.1"


@contextmanager
def process_of(
    command: Sequence[str], log: Path, started: str, seconds: float = 60
) -> Iterator[str]:
    """A process; yields what its log says once it has started. It is ended afterwards."""
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=log.parent)
    try:
        yield _awaited(process, log, started, seconds)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _awaited(process: subprocess.Popen[bytes], log: Path, started: str, seconds: float) -> str:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        found = re.search(started, log.read_text(errors="replace"))
        if found:
            return found[0]
        time.sleep(0.1)
    raise AssertionError(f"It did not start:\n{log.read_text(errors='replace')[-4000:]}")


@contextmanager
def standalone_cluster(folder: Path, workers: int) -> Iterator[str]:
    """The address of a master with workers of one core and 1 GiB each, all on free ports."""
    with ExitStack() as stack:
        master = r"spark://127\.0\.0\.1:[1-9]\d*"
        log = folder / "master.log"
        address = stack.enter_context(process_of(_command("master.Master"), log, master))
        for number in range(workers):
            given = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work{number}")]
            command = [*_command("worker.Worker"), *given, address]
            log = folder / f"worker{number}.log"
            stack.enter_context(process_of(command, log, "registered with"))
        yield address


@contextmanager
def server_of(
    command: Sequence[str], folder: Path, address: str, environment: Mapping[str, str]
) -> Iterator[None]:
    """A Connect server that a command in a folder starts; it is ended afterwards."""
    log = folder / "server.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=output,
            cwd=folder,
            env=dict(environment),
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + 120
        while not _listens(address):
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"It did not start:\n{log.read_text()[-4000:]}")
            time.sleep(0.2)
        yield
    finally:
        # the program, spark-submit's shell and Java
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def _listens(address: str) -> bool:
    try:
        check_reachable(address)
    except ConnectError:
        return False
    return True


def _command(name: str) -> list[str]:
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    ports = ["--port", "0", "--webui-port", "0"]
    return [str(program), f"org.apache.spark.deploy.{name}", "--host", HOST, *ports]
