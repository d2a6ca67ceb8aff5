"""Jars that few commands need, fetched when one does: from Maven Central, by Spark's own Ivy.

`spark.jars.packages` of the profile would fetch them for every run, with dozens of libraries that
Spark brings along anyway.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from dbt.adapters.events.logging import AdapterLogger

from dbt_afterimage.spark.ivy import alone
from dbt_afterimage.spark.java import java

logger = AdapterLogger("afterimage")

JARS = "AFTERIMAGE_JARS"
"""Environment variable: jars for Spark besides those of the profile, joined by commas."""


Coordinate = tuple[str, str, str] | tuple[str, str, str, str] | tuple[str, str, str, str, str]
"""Organisation, name and version of a jar; its classifier if it has one; what it is if no jar."""


class JarsError(RuntimeError):
    """Jars cannot be fetched; the text is meant for the user."""


def kafka_jars() -> list[Path]:
    """The jars that Spark needs to read from Kafka and to write to it.

    The token provider, which serves delegation tokens only, is that of Spark 4.0.0: not every
    mirror of Maven Central has a later one.
    """
    return _fetched_for_spark(
        "spark-sql-kafka-0-10_2.13",
        [
            ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
            ("org.apache.kafka", "kafka-clients", "3.9.1"),
            ("org.apache.commons", "commons-pool2", "2.12.1"),
        ],
    )


def avro_jars() -> list[Path]:
    """The jar that Spark needs to read Avro."""
    return _fetched_for_spark("spark-avro_2.13")


def connector_versions(pyspark: str) -> list[str]:
    """Versions of Spark's own connectors that fit a PySpark, the best one first.

    A mirror of Maven Central may have no connector of PySpark's own patch.
    """
    minor, _, patch = pyspark.rpartition(".")
    if not patch.isdigit():
        return [pyspark]
    return [f"{minor}.{number}" for number in range(int(patch), -1, -1)]


def _fetched_for_spark(name: str, others: Sequence[Coordinate] = ()) -> list[Path]:
    own, *earlier = connector_versions(version("pyspark"))
    try:
        return fetched([("org.apache.spark", name, own), *others])
    except JarsError:
        for number in earlier:
            with suppress(JarsError):
                jars = fetched([("org.apache.spark", name, number), *others])
                logger.warning(f"{name} {own} cannot be fetched; this run uses {number}.")
                return jars
        raise


def give_to_spark(jars: Sequence[Path]) -> None:
    """Let the Spark session that this process starts have these jars."""
    given = [os.environ[JARS]] if os.environ.get(JARS) else []
    os.environ[JARS] = ",".join([*given, *map(str, jars)])


def submit_arguments(arguments: str, jars: str | None) -> str:
    """Arguments of spark-submit with all jars in `--jars`: no other place reaches executors.

    PySpark sets again in the JVM what its builder is given. As `spark.jars` there, these jars would
    replace the list to which spark-submit has added the jars of `spark.jars.packages`.

    Args:
        arguments: those that PYSPARK_SUBMIT_ARGS has.
        jars: `spark.jars` of the profile, joined by commas.
    """
    given: list[str] = []
    others: list[str] = []
    words = iter(shlex.split(arguments))
    for word in words:
        name, _, value = word.partition("=")
        if name == "--jars":
            given.append(value or next(words, ""))
        else:
            others.append(word)
    given += [jars or "", os.environ.get(JARS, "")]
    every = ",".join(text for text in given if text)
    return shlex.join(["--jars", every, *others] if every else others)


def fetched(coordinates: Sequence[Coordinate], transitive: bool = False) -> list[Path]:
    """Paths of jars in Ivy's cache; what is not there yet is fetched.

    Args:
        coordinates: organisation, name and version of each, and its classifier if it has one.
        transitive: what they depend on, too.

    Raises:
        JarsError: they cannot be fetched.
    """
    import pyspark

    ivy = sorted((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))[-1]
    wanted = "".join(_dependency(*coordinate, transitive=transitive) for coordinate in coordinates)
    with tempfile.TemporaryDirectory(prefix="afterimage_jars_") as folder:
        module = Path(folder) / "ivy.xml"
        module.write_text(
            '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
            '<info organisation="afterimage" module="jars"/>'
            f"<dependencies>{wanted}</dependencies></ivy-module>",
            encoding="utf-8",
        )
        found = Path(folder) / "classpath"
        command = [java(), "-jar", str(ivy), "-ivy", str(module), "-cachepath", str(found)]
        try:
            with alone():
                run = subprocess.run(
                    command, capture_output=True, text=True, check=False, cwd=folder
                )
        except OSError as error:
            raise JarsError(
                f"Java cannot be started, which fetches Spark's jars: {error}. Fix: set JAVA_HOME "
                "to the folder of a Java 17 or 21, or `pip install 'dbt-afterimage[java]'`."
            ) from error
        if run.returncode or not found.exists():
            names = ", ".join(":".join(coordinate) for coordinate in coordinates)
            raise JarsError(
                f"Maven Central does not give {names}. Fix: let this machine reach it, or a mirror "
                "by Ivy's settings, and run again. Ivy's last lines:\n"
                f"{(run.stdout + run.stderr)[-2000:]}"
            )
        return [Path(path) for path in found.read_text(encoding="utf-8").strip().split(os.pathsep)]


def _dependency(
    organisation: str,
    name: str,
    number: str,
    classifier: str = "",
    kind: str = "jar",
    *,
    transitive: bool,
) -> str:
    artifact = f'<artifact name="{name}" type="{kind}" m:classifier="{classifier}"/>'
    return (
        f'<dependency org="{organisation}" name="{name}" rev="{number}" conf="*->default" '
        f'transitive="{str(transitive).lower()}">{artifact if classifier else ""}</dependency>'
    )
