"""The raw tables `sales.invoices` and `sales.invoices__ct`, which the README's example reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Two commits of 1 March 2026 and the full load before them; 35 digits, the task's number last.
POSITION = "20260301{time}00" + "0" * 12 + "{number:07d}"


def position(time: str, number: int) -> str:
    return POSITION.format(time=time, number=number)


def drop_invoices(spark: SparkSession) -> None:
    """Drop the tables: another test of this session may have landed them."""
    for table in ("invoices", "invoices__ct"):
        spark.sql(f"drop table if exists sales.{table}")


def land_invoices(spark: SparkSession) -> None:
    """Two invoices in the base table; then one is paid, one deleted, and a third inserted."""
    spark.sql("create schema if not exists sales")
    drop_invoices(spark)
    spark.sql("create table sales.invoices (invoice_id bigint, status string, amount decimal(9,2))")
    spark.sql("insert into sales.invoices values (1, 'open', 10.00), (2, 'open', 20.00)")
    spark.sql(
        "create table sales.invoices__ct (header__change_seq string, header__change_oper string, "
        "header__change_mask string, header__stream_position string, header__operation string, "
        "header__transaction_id string, header__timestamp timestamp, "
        "invoice_id bigint, status string, amount decimal(9,2))"
    )
    # seven header columns: status is bit 8, so an update of it sets 2 to the power of 8
    spark.sql(
        f"""
        insert into sales.invoices__ct values
            ('{position("080000", 1)}', 'B', null, 's', 'BEFOREIMAGE', 'a', null, 1, 'open', 10.00),
            ('{position("080000", 1)}', 'U', '0100', 's', 'UPDATE', 'a', null, 1, 'paid', 10.00),
            ('{position("090000", 2)}', 'D', '0080', 's', 'DELETE', 'b', null, 2, null, null),
            ('{position("100000", 3)}', 'I', '0380', 's', 'INSERT', 'c', null, 3, 'open', 30.00)
        """
    )


def land_more_invoices(spark: SparkSession) -> None:
    """The third invoice is paid an hour later."""
    spark.sql(
        f"""
        insert into sales.invoices__ct values
            ('{position("110000", 4)}', 'B', null, 's', 'BEFOREIMAGE', 'd', null, 3, 'open', 30.00),
            ('{position("110000", 4)}', 'U', '0100', 's', 'UPDATE', 'd', null, 3, 'paid', 30.00)
        """
    )
