"""Schemas of a schema registry: from its REST interface, or from files.

The interface: GET <address>/schemas/ids/<id> answers {"schema": "<JSON text>"}; 404 for an id that
is not there. GET <address>/subjects/<subject>/versions answers the numbers of a subject's versions,
and .../versions/<number> {"id": <id>, "schema": "<JSON text>", "schemaType": "JSON"}, without a
type for Avro (the documentation of Confluent's registry, which others imitate).
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

_TIMEOUT_SECONDS = 30


class RegistryError(RuntimeError):
    """The registry does not answer; the text is meant for the user."""


def registered_schema(registry: str, schema_id: str) -> str | None:
    """The schema with an id; None when the registry has none.

    Args:
        registry: the registry's address, or a folder of files `<id>.avsc`.

    Raises:
        RegistryError: it does not answer, or not as a registry does.
    """
    if not _is_address(registry):
        file = _folder(registry) / f"{schema_id}.avsc"
        return file.read_text(encoding="utf-8") if file.is_file() else None
    answer = _answer(f"{registry.rstrip('/')}/schemas/ids/{schema_id}", "schema")
    return None if answer is None else str(answer["schema"])


def subject_schemas(location: str) -> dict[int, tuple[str, str]]:
    """All schemas of a subject: id -> (its type, `AVRO` or `JSON`; JSON text).

    Args:
        location: the subject's address, or a folder of files `<id>.avsc` (Avro) and `<id>.json`
            (JSON Schema).

    Raises:
        RegistryError: there are none, one is of another type, or the registry does not answer.
    """
    found = {}
    if _is_address(location):
        address = f"{location.rstrip('/')}/versions"
        for version in _answer(address) or []:
            answer = _answer(f"{address}/{version}", "id", "schema")
            if answer is None:  # deleted since
                continue
            kind = str(answer.get("schemaType") or "AVRO")
            found[int(answer["id"])] = (kind, str(answer["schema"]))
    else:
        for suffix, kind in ((".avsc", "AVRO"), (".json", "JSON")):
            for file in sorted(_folder(location).glob(f"*{suffix}")):
                if file.stem.isdecimal():
                    found[int(file.stem)] = (kind, file.read_text(encoding="utf-8"))
    others = {kind for kind, _ in found.values()} - {"AVRO", "JSON"}
    if others or not found:
        got = f"schemas of the type {', '.join(sorted(others))}" if others else "no schemas"
        raise RegistryError(
            f"`schema_registry` {location} has {got}. Allowed: Avro and JSON Schema. Fix: give the "
            "address of the subject, such as http://localhost:8081/subjects/shop.orders-value, or "
            "a folder of <id>.avsc and <id>.json files."
        )
    return found


def _is_address(registry: str) -> bool:
    return registry.startswith(("http://", "https://"))


def _folder(registry: str) -> Path:
    if not Path(registry).is_dir():
        raise RegistryError(
            f"`schema_registry` is {registry!r}, which is not a folder. Allowed: the registry's "
            "address, http://... or https://..., or a folder of <id>.avsc files. Fix: correct "
            "the setting."
        )
    return Path(registry)


def _answer(address: str, *fields: str) -> Any:
    """The JSON that the registry answers, with these fields; None for what is not there."""
    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT_SECONDS) as response:
            answer = json.load(response)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise RegistryError(_no_answer(address, f"{error.code} {error.reason}")) from error
    except (OSError, ValueError) as error:
        raise RegistryError(_no_answer(address, str(error))) from error
    if not all(field in answer for field in fields):
        raise RegistryError(_no_answer(address, f"it answers {str(answer)[:80]}"))
    return answer


def _no_answer(address: str, why: str) -> str:
    return (
        f"The schema registry does not answer: GET {address}: {why}. Nothing was written. Fix: "
        "correct `schema_registry` in the source's `meta.afterimage`, or run again when it is up."
    )
