"""An S3-compatible object store on this machine: moto's server, which keeps objects in memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.functional.standalone import HOST, process_of

BUCKET = "lake"
_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "any",
    "AWS_SECRET_ACCESS_KEY": "thing",
    "AWS_REGION": "eu-central-1",
}
"""Environment variables of whoever reads or writes; the store takes any."""


@contextmanager
def object_store(folder: Path) -> Iterator[str]:
    """The address of a store with an empty bucket; the environment has its credentials."""
    command = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", "0"]
    log = folder / "object_store.log"
    with (
        pytest.MonkeyPatch.context() as environment,
        process_of(command, log, r"http://127\.0\.0\.1:[1-9]\d*") as (_, address),
    ):
        for name, value in _CREDENTIALS.items():
            environment.setenv(name, value)
        urlopen(Request(f"{address}/{BUCKET}", method="PUT"), timeout=60).close()
        yield address
