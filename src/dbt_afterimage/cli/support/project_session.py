"""The Spark session of the project in the working folder, as its profile describes it."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt_afterimage.errors import AfterimageError
from dbt_afterimage.spark.warehouse_folder import resolve

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_LACKING_PACKAGES = re.compile(r"(\w+) connection method requires additional dependencies")


class ProfileError(AfterimageError):
    """The project or its profile cannot be used for a Spark session."""


class SparkNotStartedError(AfterimageError):
    """Spark did not start, or its Connect server cannot be reached."""


def project_folder() -> Path:
    """The folder of `dbt_project.yml`, as dbt finds it.

    It is DBT_PROJECT_DIR, or the working folder, or the next one above it that has the file.

    Raises:
        ProfileError: there is no `dbt_project.yml`.
    """
    given = os.environ.get("DBT_PROJECT_DIR")
    folders = [Path(given)] if given else [Path(), *Path.cwd().parents]
    for folder in folders:
        if (folder / "dbt_project.yml").exists():
            return folder
    raise ProfileError(
        f"{folders[0].resolve()} has no dbt_project.yml. Fix: change to the project's folder, name "
        "it with `afterimage --project-dir FOLDER ...`, or create a project with `afterimage init "
        "FOLDER`."
    )


def has_server(profile: Any) -> bool:
    """Whether a profile's target connects to a Spark Connect server."""
    from dbt_afterimage.spark.session import server_address

    return server_address(profile.credentials.server_side_parameters or {}) is not None


def load_profile(target: str | None = None) -> Any:
    """The project's profile, as dbt reads it; Spark is not started.

    Args:
        target: a target of the profile; by default DBT_TARGET, else the profile's own.

    Raises:
        ProfileError: dbt cannot read it, or the target has no Spark session of this process.
    """
    from dbt.cli.resolvers import default_profiles_dir
    from dbt.config.runtime import load_profile as dbt_load_profile
    from dbt.flags import set_from_args
    from dbt_common.context import set_invocation_context
    from dbt_common.exceptions import DbtBaseException

    folder = project_folder()
    profiles = os.environ.get("DBT_PROFILES_DIR") or str(default_profiles_dir())
    if not os.environ.get("DBT_PROFILES_DIR") and (folder / "profiles.yml").exists():
        profiles = str(folder)
    log_path = os.environ.get("DBT_LOG_PATH") or str(folder / "logs")
    set_from_args(Namespace(profiles_dir=profiles, project_dir=str(folder), log_path=log_path), {})
    # `env_var` in the profile reads it
    set_invocation_context(dict(os.environ))
    try:
        profile = dbt_load_profile(
            str(folder), {}, target_override=target or os.environ.get("DBT_TARGET")
        )
    except DbtBaseException as error:
        lacking = _LACKING_PACKAGES.search(str(error))
        if lacking and lacking[1] != "session":
            # dbt advises to install PyHive or pyodbc, with which the target is refused as well
            raise ProfileError(
                f"The target's `method` is {lacking[1]}; allowed: session. Fix: set `method: "
                f"session` in profiles.yml ({profiles}), or choose another --target."
            ) from error
        said = " ".join(str(getattr(error, "msg", error)).split())
        raise ProfileError(
            f"dbt cannot read the profile of this project: {said}. Fix: correct profiles.yml "
            f"(looked for in {profiles}) or --target."
        ) from error
    method = getattr(profile.credentials, "method", None)
    if method != "session":
        raise ProfileError(
            f"Target {profile.target_name}: `method` is {method}; allowed: session. Fix: set "
            "`method: session` in profiles.yml, or choose another --target."
        )
    resolve(getattr(profile.credentials, "server_side_parameters", None) or {}, folder)
    return profile


def project_session(target: str | None = None) -> SparkSession:
    """The project's Spark session; started if this process has none yet.

    Raises:
        ProfileError: the profile cannot be used.
        SparkNotStartedError: Spark does not start.
    """
    from dbt_common.exceptions import DbtRuntimeError

    from dbt_afterimage.dbt_spark.statements import live_session

    parameters = load_profile(target).credentials.server_side_parameters or {}
    try:
        return live_session(parameters)
    except DbtRuntimeError as error:
        raise SparkNotStartedError(str(error.msg)) from error
