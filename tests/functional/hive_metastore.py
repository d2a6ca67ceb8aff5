"""A Hive metastore server from the jars of PySpark's wheel; its database is an embedded Derby."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import escape

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from afterimage_demo.servers import free_ports
from dbt_afterimage.spark.java import java
from tests.functional.standalone import HOST, process_of, wait_until_listening

_JARS = Path(pyspark.__file__).parent / "jars" / "*"
_SERVER = "org.apache.hadoop.hive.metastore.HiveMetaStore"


@contextmanager
def hive_metastore(folder: Path) -> Iterator[str]:
    """The address of a server.

    Args:
        folder: where it has its log, its database and its warehouse.
    """
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder / 'db'};create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPoolingType": "NONE",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": str(folder / "warehouse"),
        # needs a jar that the wheel lacks
        "hive.async.log.enabled": "false",
    }
    (folder / "hive-site.xml").write_text(_xml(settings), encoding="utf-8")
    _make_lock_tables(folder)
    (port,) = free_ports(1)
    log = folder / "metastore.log"
    command = [java(), "-Xmx512m", "-cp", _classpath(folder), _SERVER, "-v", "-p", str(port)]
    with process_of(command, log, "Starting hive metastore on port") as (process, _):
        # it says so before it has made its tables
        wait_until_listening(process, port, log)
        yield f"thrift://{HOST}:{port}"


def _make_lock_tables(folder: Path) -> None:
    """Iceberg locks a table when it commits; the server makes all tables but the lock tables."""
    port, process = launch_gateway(
        classpath=_classpath(folder),
        java_path=java(),
        die_on_exit=True,
        return_proc=True,
        cwd=str(folder),
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    hive = gateway.jvm.org.apache.hadoop.hive
    hive.metastore.txn.TxnDbUtil.prepDb(hive.conf.HiveConf())
    gateway.shutdown()
    # until it ends, it holds Derby's lock on the database
    process.stdin.close()
    process.wait(30)


def _classpath(folder: Path) -> str:
    return f"{folder}:{_JARS}"


def _xml(settings: Mapping[str, str]) -> str:
    properties = "".join(
        f"<property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in settings.items()
    )
    return f"<configuration>{properties}</configuration>"
