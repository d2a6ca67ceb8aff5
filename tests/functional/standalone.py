"""A standalone Spark cluster on this machine, from PySpark's own files: a master and workers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from secrets import token_hex

import pyspark

from afterimage_demo.servers import free_ports, is_listening, wait_until_started

HOST = "127.0.0.1"


def parameters_of_cluster(master: str, executor_memory: str) -> dict[str, str]:
    """Spark's parameters for a driver of this process on a cluster."""
    return {
        "spark.master": master,
        "spark.driver.host": HOST,
        "spark.executor.memory": executor_memory,
    }


@contextmanager
def process_of(
    command: Sequence[str],
    log: Path,
    started: str,
    seconds: float = 60,
    environment: Mapping[str, str] | None = None,
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A process and what its log says once it has started; it and its children are ended."""
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=output,
            cwd=log.parent,
            env=environment,
            start_new_session=True,
        )
    try:
        yield process, _awaited(process, log, started, seconds)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _awaited(process: subprocess.Popen[bytes], log: Path, started: str, seconds: float) -> str:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        found = re.search(started, log.read_text(errors="replace"))
        if found:
            return found[0]
        time.sleep(0.1)
    raise AssertionError(f"It did not start:\n{log.read_text(errors='replace')[-4000:]}")


class Cluster:
    """A running cluster.

    Attributes:
        master: its address.
    """

    def __init__(self, master: str, folder: Path, stack: ExitStack, memory: str) -> None:
        self.master = master
        self._folder, self._stack, self._memory = folder, stack, memory
        self._workers: list[subprocess.Popen[bytes]] = []
        self._started = 0

    def start_worker(self) -> None:
        """Start a worker of one core."""
        self._started += 1
        work = str(self._folder / f"work{self._started}")
        given = ["--cores", "1", "--memory", self._memory, "--work-dir", work, self.master]
        log = self._folder / f"worker{self._started}.log"
        running = process_of([*_command("worker.Worker"), *given], log, "registered with")
        process, _ = self._stack.enter_context(running)
        self._workers.append(process)

    def kill_worker(self) -> None:
        """Kill the oldest worker with its executors, as a machine that fails does."""
        os.killpg(self._workers.pop(0).pid, signal.SIGKILL)


@contextmanager
def standalone_cluster(folder: Path, workers: int, memory: str = "1g") -> Iterator[Cluster]:
    """A master with workers of so much memory, all on free ports."""
    with ExitStack() as stack:
        address = r"spark://127\.0\.0\.1:[1-9]\d*"
        log = folder / "master.log"
        _, master = stack.enter_context(process_of(_command("master.Master"), log, address))
        cluster = Cluster(master, folder, stack, memory)
        for _ in range(workers):
            cluster.start_worker()
        yield cluster


def free_address() -> str:
    """An address for `afterimage_server`, with a token."""
    return f"sc://localhost:{free_ports(1)[0]}/;token={token_hex(16)}"


@contextmanager
def afterimage_server(
    target: str, folder: Path, address: str, variables: Mapping[str, str], *options: str
) -> Iterator[None]:
    """`afterimage server` of a target, run in a project's folder; it is ended afterwards.

    Args:
        target: of the profile.
        folder: the project's.
        address: of the server with its token, as its clients have it.
        variables: of its environment, besides those of this process.
        options: of the command.
    """
    port, token = re.findall(r":(\d+)/;token=(\w+)", address)[0]
    command = [sys.executable, "-m", "dbt_afterimage.cli", "server", "--target", target]
    log = folder / "server.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, "--port", port, *options],
            stdout=output,
            stderr=output,
            cwd=folder,
            env=without_jars_of_tests(**variables, SPARK_CONNECT_AUTHENTICATE_TOKEN=token),
            start_new_session=True,
        )
    try:
        wait_until_listening(process, int(port), log)
        yield
    finally:
        # the program, spark-submit's shell and Java, which may outlive the other two
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_until_listening(
    process: subprocess.Popen[bytes], port: int, log: Path, seconds: float = 120
) -> None:
    """Return once a process listens on a port of this machine; it writes to a log."""
    wait_until_started("It", process, lambda: is_listening(port), log, AssertionError, seconds)


def without_jars_of_tests(**given: str) -> dict[str, str]:
    """The environment of a process in which only the profile brings jars."""
    kept = {name: value for name, value in os.environ.items() if name != "AFTERIMAGE_JARS"}
    return {**kept, **given}


def _command(name: str) -> list[str]:
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    ports = ["--port", "0", "--webui-port", "0"]
    return [str(program), f"org.apache.spark.deploy.{name}", "--host", HOST, *ports]
