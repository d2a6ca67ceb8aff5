"""Runs dbt in this process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dbt_afterimage.cli.frame import DbtFailedError
from dbt_afterimage.cli.support.project_session import load_profile


def run_operation(
    macro: str,
    arguments: Mapping[str, Any],
    target: str | None = None,
    *,
    quiet: bool = False,
) -> None:
    """Run a macro in the project of the working folder, as `dbt run-operation` does.

    Args:
        arguments: its arguments, of types that JSON has. dbt writes them to its log: no secrets.

    Raises:
        DbtFailedError: dbt failed, and has printed why.
    """
    quietly = ["--quiet"] if quiet else []
    run_dbt(["run-operation", macro, "--args", json.dumps(arguments), *quietly], target)


def run_dbt(arguments: Sequence[str], target: str | None = None) -> Any:
    """Run a dbt command, such as ["build", "--select", "orders+"].

    Returns:
        dbt's `dbtRunnerResult`.

    Raises:
        ProfileError: there is no project, or its profile has no such target.
        DbtFailedError: dbt failed, and has printed why.
    """
    from dbt.cli.main import dbtRunner

    # so that all commands have one form of error, and a target without a session one of ours
    load_profile(target)
    chosen = ["--target", target] if target else []
    result = dbtRunner().invoke([*arguments, *chosen])
    if isinstance(result.exception, KeyboardInterrupt):
        raise result.exception
    if not result.success:
        raise DbtFailedError(f"`dbt {arguments[0]}` failed")
    return result
