"""Room for long views in the embedded metastore of a target.

Hive keeps a view's text in a column that Derby, the embedded database, makes a LONG VARCHAR: 32,700
characters, which the staging view of a table with 60 columns exceeds. As a CLOB the column holds
any text, and Hive reads and writes it as before (docs/decisions/0054).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from dbt_afterimage.spark.session import hadoop_setting, is_remote, java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LIMIT = 30_000
"""Statements up to this length fit into Derby's 32,700 characters, or 32,672 of a property."""

_DERBY = "jdbc:derby:"
_DEFAULT_METASTORE = "jdbc:derby:;databaseName=metastore_db;create=true"
_TEXTS = {
    ("TBLS", "VIEW_EXPANDED_TEXT"),
    ("TBLS", "VIEW_ORIGINAL_TEXT"),
    ("TABLE_PARAMS", "PARAM_VALUE"),
}
_altering = threading.Lock()


class LongViewError(RuntimeError):
    """The embedded metastore cannot hold a long view; the text is meant for the user."""


def make_room_for_view(session: SparkSession, statement: str) -> None:
    """Let the embedded metastore hold a view; any other metastore holds long ones already.

    Raises:
        LongViewError: the metastore cannot be altered.
    """
    if len(statement) <= _LIMIT:
        return
    url = _embedded_metastore(session)
    if url is None:
        return
    from py4j.protocol import Py4JJavaError

    # dbt's threads may each have a long view; the second one finds nothing to do
    with _altering:
        try:
            _widen(session, url)
        except Py4JJavaError as error:
            raise LongViewError(
                f"The embedded metastore {url} holds views of 32,700 characters, this one has "
                f"{len(statement):,}, and the metastore cannot be altered: "
                f"{error.java_exception.getMessage()}. Nothing was changed. Fix: end all other "
                "processes that use the warehouse and run again, or take a target whose "
                "metastore is a server."
            ) from error


def _embedded_metastore(session: SparkSession) -> str | None:
    """The JDBC address of the metastore where it is Derby in this process; None where it is not."""
    if session.conf.get("spark.sql.catalogImplementation", "in-memory") != "hive":
        return None
    if is_remote(session):  # the server's metastore is not in this process
        return None
    if hadoop_setting(session, "hive.metastore.uris"):
        return None
    url = hadoop_setting(session, "javax.jdo.option.ConnectionURL") or _DEFAULT_METASTORE
    return url if url.startswith(_DERBY) else None


def _widen(session: SparkSession, url: str) -> None:
    """Make the columns for long texts CLOB, all or none; columns that are CLOB stay."""
    connection = java(session).java.sql.DriverManager.getConnection(url)
    try:
        connection.setAutoCommit(False)
        statement = connection.createStatement()
        for table, column in _short_columns(statement):
            # Derby cannot change the type of a column
            for sql in (
                f'alter table {table} add column "{column}_LONG" clob',
                f'update {table} set "{column}_LONG" = "{column}"',
                f'alter table {table} drop column "{column}"',
                f'rename column {table}."{column}_LONG" to "{column}"',
            ):
                statement.execute(sql)
        connection.commit()
    finally:
        # what is not committed is rolled back
        connection.rollback()
        connection.close()


def _short_columns(statement: Any) -> list[tuple[str, str]]:
    found = statement.executeQuery(
        "select t.TABLENAME, c.COLUMNNAME from SYS.SYSCOLUMNS c "
        "join SYS.SYSTABLES t on c.REFERENCEID = t.TABLEID "
        "join SYS.SYSSCHEMAS s on t.SCHEMAID = s.SCHEMAID "
        "where s.SCHEMANAME = current schema "
        "and cast(c.COLUMNDATATYPE as varchar(128)) not like 'CLOB%'"
    )
    columns = []
    while found.next():
        columns.append((found.getString(1), found.getString(2)))
    found.close()
    return [column for column in columns if column in _TEXTS]
