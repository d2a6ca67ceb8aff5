"""Runs dbt in this process as a user does from the shell: one object per project and schema."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml


class DbtFailedError(AssertionError):
    """A dbt command failed; the text holds what dbt said."""


@dataclass(frozen=True)
class DbtProject:
    """A dbt project whose commands run in the pytest process and in its one Spark session.

        dbt("run", "--select", "orders_changes")   # the command's result; raises when it fails
        dbt.error_of("run")                        # what dbt says about a command that must fail

    Attributes:
        path: the folder of `dbt_project.yml`.
        profiles: the folder of `profiles.yml`.
        target: name of the profile's target.
        schema: the target's schema, so that tests can build the same project side by side.
        scratch: folder for dbt's target and log folders; nothing is written to the project.
        variables: dbt vars of every command.
        demos: names of the demos whose models are enabled, joined by commas.
    """

    path: Path
    profiles: Path
    target: str
    schema: str
    scratch: Path
    variables: Mapping[str, Any] = field(default_factory=dict)
    demos: str = ""

    def __call__(self, *arguments: str, **variables: Any) -> Any:
        """Run a dbt command.

        Args:
            arguments: as on the command line, without `dbt`.
            variables: dbt vars of this command, over those of the project.

        Returns:
            What the command yields: `run_results` of a build, a list of names of `dbt list`, ...

        Raises:
            DbtFailedError: the command did not succeed.
        """
        result, messages = self._invoke(arguments, variables)
        if not result.success:
            raise DbtFailedError(f"`dbt {' '.join(arguments)}` failed\n{messages}")
        return result.result

    def error_of(self, *arguments: str, **variables: Any) -> str:
        """Run a dbt command that has to fail and return what dbt said about it."""
        result, messages = self._invoke(arguments, variables)
        if result.success:
            raise AssertionError(f"`dbt {' '.join(arguments)}` succeeded")
        return messages

    def _invoke(self, arguments: tuple[str, ...], variables: Mapping[str, Any]) -> tuple[Any, str]:
        from dbt.cli.main import dbtRunner

        messages: list[str] = []

        def listen(event: Any) -> None:
            if event.info.level in ("error", "warn"):
                messages.append(str(event.info.msg))

        given = {**self.variables, **variables}
        options = ("--vars", yaml.safe_dump(given)) if given else ()
        with self.environment():
            result = dbtRunner(callbacks=[listen]).invoke([*arguments, *options])
        if result.exception is not None:
            messages.append(str(result.exception))
        return result, "\n".join(dict.fromkeys(messages))

    @contextmanager
    def environment(self) -> Iterator[None]:
        """Options as environment variables, since not every dbt command takes each of them."""
        before = dict(os.environ)
        folder = Path.cwd()
        os.environ.update(
            {
                "DBT_PROJECT_DIR": str(self.path),
                "DBT_PROFILES_DIR": str(self.profiles),
                "DBT_TARGET": self.target,
                "DBT_TARGET_PATH": str(self.scratch / "target"),
                "DBT_LOG_PATH": str(self.scratch / "logs"),
                "AFTERIMAGE_TEST_SCHEMA": self.schema,
                "AFTERIMAGE_DEMOS": self.demos,
            }
        )
        try:
            yield
        finally:
            # PySpark records here that the process has a session of Spark Connect
            name = "SPARK_CONNECT_MODE_ENABLED"
            before |= {name: os.environ[name]} if name in os.environ else {}
            os.environ.clear()
            os.environ.update(before)
            os.chdir(folder)  # dbt moves into the project and stays there when it fails early
