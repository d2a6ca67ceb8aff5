"""Java objects that Python no longer uses are freed, although each is in a cycle."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from py4j.finalizer import ThreadSafeFinalizer

from dbt_afterimage.spark import java_objects
from dbt_afterimage.spark.java_objects import free_unused_java_objects

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEW = 50


@pytest.fixture
def seldom_collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Python as in a process with many old objects, and a register with room for few new ones."""
    gc.collect()
    monkeypatch.setattr(java_objects, "_AT_ONCE", FEW)
    monkeypatch.setattr(java_objects, "_next_at", len(ThreadSafeFinalizer.finalizers) + FEW)
    gc.disable()
    yield
    gc.enable()


def test_plans_that_are_no_longer_used_do_not_pile_up(
    spark: SparkSession, seldom_collected: None
) -> None:
    before = len(ThreadSafeFinalizer.finalizers)
    for _ in range(10):
        for number in range(10):
            spark.range(1).filter(f"id = {number}").isEmpty()
        free_unused_java_objects()
    assert len(ThreadSafeFinalizer.finalizers) < before + 3 * FEW


def test_few_objects_cost_no_collection(
    spark: SparkSession, seldom_collected: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc, "collect", lambda: pytest.fail("few objects"))
    spark.range(1).isEmpty()
    free_unused_java_objects()
