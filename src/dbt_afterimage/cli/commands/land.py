"""`afterimage land`: lands raw tables that no other tool lands."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import typer

from dbt_afterimage.cli.frame import TargetOption, UsageProblem, command, group
from dbt_afterimage.cli.support.project_session import has_server, load_profile, project_session
from dbt_afterimage.cli.support.run_dbt import run_operation
from dbt_afterimage.cli.support.working import working

land = group("land", "Land raw tables that no other tool lands.")


@command(
    "files",
    of=land,
    example="""\
afterimage land files exports/invoices/ --table sales.invoices
afterimage land files exports/ct/*.csv --table sales.invoices__ct --type amount='decimal(12,2)'""",
)
def land_files(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="CSV, JSON lines or Parquet; or folders.")
    ],
    table: Annotated[str, typer.Option(metavar="SCHEMA.TABLE", help="The raw table.")],
    column_type: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="COLUMN=TYPE", help="Type of a column; repeatable."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Option of Spark's reader, such as sep=';'."),
    ] = None,
    target: TargetOption = None,
) -> None:
    """Copy files into a raw table, each file once; repeat the command when there are more.

    Columns of a CSV file get types by their values, unless --type says otherwise: a value such as
    007, or a number of more than 18 digits, stays text. Times without a zone are UTC.
    """
    from dbt_afterimage.dbt_spark.macro_api.tables import table_format
    from dbt_afterimage.ingest import files

    types, options = _pairs("--type", column_type), _pairs("--option", option)
    if "." not in table:
        raise UsageProblem(f"--table {table}: the schema is missing. Fix: --table SCHEMA.{table}.")
    places = [path if "://" in path else _existing(path) for path in paths]
    with working("Starting Spark"):
        session = project_session(target)
    with working(f"Landing {table}"):
        form = table_format(SimpleNamespace(config=load_profile(target)))
        done = files.land_files(session, places, table, form, types, options)
    typer.echo(
        f"{table}: {done.rows:,} rows of {done.files} files landed; {done.known} files were "
        "landed before"
    )
    for name, kind in done.columns.items():
        typer.echo(f"  {name} {kind}")


def _pairs(name: str, given: list[str] | None) -> dict[str, str]:
    pairs = {}
    for text in given or []:
        key, separator, value = text.partition("=")
        if not (key and separator):
            raise UsageProblem(f"{name} {text}: `=` is missing. Fix: {name} NAME=VALUE.")
        pairs[key] = value
    return pairs


def _existing(path: str) -> str:
    """An absolute path; a profile's Connect server is expected on this machine."""
    if not Path(path).exists():
        raise UsageProblem(f"{path} does not exist. Fix: correct the path.")
    return f"file://{Path(path).resolve()}"


@command(
    "openedge",
    of=land,
    example="afterimage land openedge plant --url jdbc:datadirect:openedge://db:20931 "
    "--jar openedge.jar --user cdc",
)
def land_openedge(
    source: Annotated[str, typer.Argument(help="dbt source that declares the tables.")],
    url: Annotated[str, typer.Option(help="JDBC address of the database.")],
    jar: Annotated[Path, typer.Option(help="The driver's jar.", exists=True, dir_okay=False)],
    driver: Annotated[
        str, typer.Option(help="The driver's class.")
    ] = "com.ddtek.jdbc.openedge.OpenEdgeDriver",
    owner: Annotated[str, typer.Option(help="Schema of the tables in the database.")] = "PUB",
    user: Annotated[str | None, typer.Option(help="User of the database.")] = None,
    init: Annotated[
        str, typer.Option(help="Statement that each connection runs first.")
    ] = "set transaction isolation level read committed",
    target: TargetOption = None,
) -> None:
    """Extract the tracking and change tables of an OpenEdge database: what is new, names kept.

    The password is read from the environment variable AFTERIMAGE_JDBC_PASSWORD.
    """
    from dbt_afterimage.dbt_spark.jars import give_to_spark

    # when Spark starts: a jar that is added later is not seen by every thread
    give_to_spark([jar.resolve()])
    options = {"url": url, "driver": driver, "sessionInitStatement": init}
    given = {k: v for k, v in {**options, "user": user}.items() if v}
    run_operation(
        "land_openedge", {"source_name": source, "options": given, "owner": owner}, target
    )


@command(
    "kafka", of=land, example="afterimage land kafka shop --brokers broker:9092 --topic shop.orders"
)
def land_kafka(
    source: Annotated[str, typer.Argument(help="dbt source that declares the messages.")],
    brokers: Annotated[str, typer.Option(help="Kafka's bootstrap.servers: host:port,host:port.")],
    topic: Annotated[
        list[str] | None, typer.Option(help="A topic to land; may be given several times.")
    ] = None,
    pattern: Annotated[
        str | None, typer.Option(help="Instead: a regular expression for names of topics.")
    ] = None,
    table: Annotated[
        str, typer.Option(help="Table of the source that holds the landed messages.")
    ] = "messages",
    starting: Annotated[
        str, typer.Option(help="Where a topic begins that was never landed: earliest, latest.")
    ] = "earliest",
    option: Annotated[
        list[str] | None,
        typer.Option(help="Option of Kafka's client, name=value, such as security.protocol=SSL."),
    ] = None,
    properties: Annotated[
        Path | None,
        typer.Option(
            help="File of such options, one name=value a line.", exists=True, dir_okay=False
        ),
    ] = None,
    max_messages: Annotated[
        int | None, typer.Option(help="Land up to this many in this run.", min=1)
    ] = None,
    accept_gap: Annotated[
        bool,
        typer.Option(
            "--accept-gap", help="Go on where messages were removed, or a topic has another id."
        ),
    ] = False,
    target: TargetOption = None,
) -> None:
    """Copy messages of a Kafka cluster into a raw table, as they are, each of them once.

    It lands what is there when it begins, and ends. A run that was killed is repeated. Put secrets
    into the file of --properties, not on the command line.
    """
    from dbt_afterimage.dbt_spark.jars import JarsError, give_to_spark, kafka_jars
    from dbt_afterimage.ingest.kafka.client_options import OptionError, client_options

    try:
        if bool(topic) == bool(pattern):
            raise OptionError(
                f"--topic is {topic!r} and --pattern is {pattern!r}. Fix: give one of the two."
            )
        if starting not in ("earliest", "latest"):
            raise OptionError(f"--starting is {starting!r}. Allowed: earliest, latest.")
        options = client_options(option or [], properties)
        # a Connect server brings its own jars, and its client needs no Java
        if not has_server(load_profile(target)):
            give_to_spark(kafka_jars())
    except (OptionError, JarsError) as error:
        raise UsageProblem(f"`land kafka`: {error}") from error
    # in the environment: dbt writes the arguments of an operation to its log
    os.environ["AFTERIMAGE_KAFKA_OPTIONS"] = json.dumps(options)
    request: dict[str, Any] = {
        "brokers": brokers,
        "topics": topic or [],
        "pattern": pattern,
        "starting": starting,
        "options": {},
        "max_messages": max_messages,
        "accept_gap": accept_gap,
    }
    run_operation(
        "land_kafka", {"source_name": source, "table_name": table, "request": request}, target
    )
