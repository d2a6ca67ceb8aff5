"""Builds and commands over Spark Connect, on Iceberg and Delta: SPARK_REMOTE names the server."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from afterimage_demo.servers import free_ports
from tests.functional.lake import Lake, check_lake
from tests.functional.lake_run import SCHEMA
from tests.functional.project_files import write_settings
from tests.functional.standalone import (
    HOST,
    afterimage_server,
    free_address,
    wait_until_listening,
    without_jars_of_tests,
)

CLIENT = """\
import os, sys
from pathlib import Path
from dbt_afterimage.spark import session

spark = session.start({}, Path("unused.log"), "")
print("client:", spark.sql("select 'let in'").collect()[0][0])
"""


@pytest.mark.both_formats
def test_a_project_and_its_commands_over_connect(
    profiles: Path, tmp_path: Path, table_format: str
) -> None:
    lake = Lake(tmp_path, table_format)
    lake.write_profile(profiles, {})
    project, warehouse = tmp_path / "project", tmp_path / "warehouse"
    write_settings(project)
    warehouse.mkdir()
    given = {
        "AFTERIMAGE_TEST_SCHEMA": SCHEMA,
        "AFTERIMAGE_WAREHOUSE": str(warehouse),
        "DBT_PROFILES_DIR": str(tmp_path),
    }
    remote = free_address()
    with afterimage_server(table_format, project, remote, given):
        # no Java here
        check_lake(lake, **given, SPARK_REMOTE=remote, JAVA_HOME=str(tmp_path), PATH="/none")


def client(address: str, folder: Path) -> str:
    """What a client with this SPARK_REMOTE prints."""
    environment = without_jars_of_tests(SPARK_REMOTE=address)
    environment.pop("SPARK_CONNECT_AUTHENTICATE_TOKEN", None)
    done = subprocess.run(
        [sys.executable, "-c", CLIENT],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_server_lets_nobody_in_without_its_token_and_ends_with_its_java(
    profiles: Path, warehouse: Path, tmp_path: Path
) -> None:
    """`docker stop` and systemd send SIGTERM to the program alone."""
    project, temporary, log = tmp_path / "project", tmp_path / "temporary", tmp_path / "log"
    write_settings(project)
    temporary.mkdir()
    port = free_ports(1)[0]
    environment = without_jars_of_tests(
        AFTERIMAGE_TEST_SCHEMA=SCHEMA, DBT_PROFILES_DIR=str(profiles), TMPDIR=str(temporary)
    )
    command = [sys.executable, "-m", "dbt_afterimage.cli", "server", "--target", "iceberg"]
    with log.open("w") as output:
        server = subprocess.Popen(
            [*command, "--port", str(port)],
            stdout=output,
            stderr=output,
            cwd=project,
            env=environment,
        )
    try:
        wait_until_listening(server, port, log)
        address = re.findall(r"export SPARK_REMOTE='(\S+)'", log.read_text(encoding="utf-8"))[0]
        assert "client: let in" in client(address, tmp_path)
        for other in (address.partition(";")[0], f"sc://localhost:{port}/;token=other"):
            said = client(other, tmp_path)
            assert "client: let in" not in said
            assert "refuses this client: it has no token, or another one. Fix: " in said
        assert list(temporary.glob("afterimage_*.conf"))
    finally:
        server.terminate()
    assert server.wait(timeout=60) == 0
    with socket.socket() as late:
        assert late.connect_ex((HOST, port)) != 0
    assert not list(temporary.glob("afterimage*"))
