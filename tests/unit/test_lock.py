"""The lock file: complete, hashed, and free of anything that belongs to one machine."""

from __future__ import annotations

import re
from importlib.metadata import requires
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
LOCKS = [
    "requirements.txt",
    "requirements-connect.txt",
    "requirements-build.txt",
    "requirements-uv.txt",
]


def locked(name: str) -> list[tuple[Requirement, int]]:
    """Returns every requirement of a lock file with the number of its hashes."""
    text = (ROOT / name).read_text(encoding="utf-8")
    entries = re.findall(r"^([A-Za-z0-9].*?)((?: \\\n +--hash=sha256:[0-9a-f]{64})*)$", text, re.M)
    return [(Requirement(requirement), hashes.count("--hash")) for requirement, hashes in entries]


@pytest.mark.parametrize("name", LOCKS)
def test_every_entry_has_one_version_and_hashes(name: str) -> None:
    entries = locked(name)
    assert entries
    for requirement, hashes in entries:
        assert [clause.operator for clause in requirement.specifier] == ["=="], requirement
        assert hashes > 0, requirement


@pytest.mark.parametrize("name", LOCKS)
def test_lock_holds_no_address_and_no_path(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not re.search(r"://|--(extra-)?index|--find-links|--trusted-host|/tmp/|/home/", text)


def test_a_client_has_all_packages_that_pyspark_needs_for_connect() -> None:
    def of_extra(distribution: str) -> set[str]:
        wanted = map(Requirement, requires(distribution) or [])
        return {
            each.name
            for each in wanted
            if each.marker and each.marker.evaluate({"extra": "connect"})
        }

    locked_names = {requirement.name for requirement, _ in locked("requirements-connect.txt")}
    needed = of_extra("pyspark")
    assert needed
    assert needed <= locked_names


def test_lock_satisfies_what_the_package_declares() -> None:
    # Python 3.10 has no reader for TOML; the files are the same on every version.
    tomllib = pytest.importorskip("tomllib")
    product, demo = (
        tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        for path in (ROOT / "pyproject.toml", ROOT / "demo" / "pyproject.toml")
    )
    wanted = [*product["dependencies"], *chain(*product["optional-dependencies"].values())]
    wanted += [name for name in demo["dependencies"] if name != product["name"]]
    versions: dict[str, list[str]] = {}
    for requirement, _ in locked("requirements.txt"):
        (clause,) = requirement.specifier
        versions.setdefault(requirement.name.lower(), []).append(clause.version)
    for requirement in map(Requirement, wanted):
        found = versions.get(requirement.name.lower(), [])
        assert found, f"{requirement} is not in the lock: run `make lock`"
        assert all(version in requirement.specifier for version in found), requirement
