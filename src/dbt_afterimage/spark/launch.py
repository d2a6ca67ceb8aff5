"""How Spark's JVM is launched, so that no other user of this machine gets in or reads along.

Each process that launches one passes its settings in a file: other users see command lines.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dbt_afterimage.spark.java import use_packaged_java
from dbt_afterimage.spark.warehouse_folder import create

HOST = "spark.driver.host"
_LOCAL_DIR = "spark.local.dir"
# what Java's Properties would take for a separator, a comment or an escape
_SPECIAL = re.compile(r"[\\:=#! ]")


def program(name: str) -> str:
    """The path of a program of PySpark, such as `spark-submit`."""
    import pyspark

    return str(Path(pyspark.__file__).parent / "bin" / name)


@contextmanager
def launch_arguments(settings: Mapping[str, Any]) -> Iterator[list[str]]:
    """Arguments of spark-submit that bring settings which its command line does not show.

    They hold while this lasts: Spark has read their file once it runs.

    Args:
        settings: of Spark, by name; those of spark-defaults.conf apply besides them.
    """
    create(settings)
    use_packaged_java()
    with tempfile.NamedTemporaryFile(
        "w", prefix="afterimage_", suffix=".conf", encoding="utf-8"
    ) as file:
        file.writelines(
            f"{_escaped(name)}={_escaped(text(value))}\n" for name, value in settings.items()
        )
        file.flush()
        yield ["--load-spark-defaults", "--properties-file", file.name]


def loopback_settings(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings by which a driver without executors elsewhere listens on this machine only.

    Args:
        settings: that the application has; they win.
    """
    if not is_on_one_machine(settings) or HOST in settings:
        return {}
    return {HOST: "127.0.0.1"}


def private_settings(settings: Mapping[str, Any]) -> dict[str, str]:
    """Those of `loopback_settings`, and a folder for Spark's files that only this user can read.

    Spark gives its folders in the temporary folder the mode 0755. This one is removed when the
    process ends.

    Args:
        settings: that the application has; they win.
    """
    own = loopback_settings(settings)
    if is_on_one_machine(settings) and _LOCAL_DIR not in settings:
        own[_LOCAL_DIR] = tempfile.mkdtemp(prefix="afterimage_spark_")
        atexit.register(shutil.rmtree, own[_LOCAL_DIR], ignore_errors=True)
    return own


def is_on_one_machine(settings: Mapping[str, Any]) -> bool:
    """Whether an application has no executors in other processes; so it is without a master."""
    return str(settings.get("spark.master", "local")).startswith("local")


def text(value: Any) -> str:
    """A setting's value as Spark reads it; YAML's true and false are Python's."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _escaped(word: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", word).replace("\n", "\\n").replace("\r", "\\r")
