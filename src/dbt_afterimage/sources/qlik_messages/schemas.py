"""Avro schemas of a schema registry: from its REST interface, or from files.

The interface: GET <address>/schemas/ids/<id> answers {"schema": "<JSON text>"}; 404 for an id that
is not there (the documentation of Confluent's registry, which others imitate).
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path

_TIMEOUT_SECONDS = 30


class RegistryError(RuntimeError):
    """The registry does not answer; the text is meant for the user."""


def registered_schema(registry: str, schema_id: str) -> str | None:
    """The schema with an id; None when the registry has none.

    Args:
        registry: the registry's address, or a folder of files `<id>.avsc`.
        schema_id: a number as text.

    Raises:
        RegistryError: it does not answer, or not as a registry does.
    """
    if not registry.startswith(("http://", "https://")):
        folder = Path(registry)
        if not folder.is_dir():
            raise RegistryError(
                f"`schema_registry` is {registry!r}, which is no folder. Allowed: the registry's "
                "address, http://... or https://..., or a folder of <id>.avsc files. Fix: correct "
                "the setting."
            )
        file = folder / f"{schema_id}.avsc"
        return file.read_text(encoding="utf-8") if file.is_file() else None
    address = f"{registry.rstrip('/')}/schemas/ids/{schema_id}"
    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT_SECONDS) as response:
            return str(json.load(response)["schema"])
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise RegistryError(_no_answer(address, f"{error.code} {error.reason}")) from error
    except (OSError, ValueError, KeyError) as error:
        raise RegistryError(_no_answer(address, str(error))) from error


def _no_answer(address: str, why: str) -> str:
    return (
        f"The schema registry does not answer: GET {address}: {why}. Nothing was written. Fix: "
        "correct `schema_registry` in the source's `meta.afterimage`, or run again when it is up."
    )
