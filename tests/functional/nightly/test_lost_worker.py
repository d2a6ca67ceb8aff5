"""A worker of a cluster is killed while history is built, and another one starts.

The run survives, or says that an executor was lost; its repetition gives the tables of an
undisturbed run. Computed rows are held by executors only, so either may happen.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import yaml

from tests.functional.runs import Runs
from tests.functional.standalone import parameters_of_cluster, standalone_cluster

ROUNDS = 5


def on_cluster(runs: Runs, master: str) -> None:
    """Let the runs use the cluster."""
    file = runs.profiles / "profiles.yml"
    profile = yaml.safe_load(file.read_text(encoding="utf-8"))
    profile["afterimage"]["outputs"]["iceberg"]["server_side_parameters"] |= {
        **parameters_of_cluster(master, "900m"),
        "spark.driver.memory": "1g",
    }
    file.write_text(yaml.safe_dump(profile), encoding="utf-8")


def test_a_lost_worker_loses_and_doubles_nothing(runs: Runs, tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    folder.mkdir()
    chooser = random.Random(7)
    with standalone_cluster(folder, workers=2) as cluster:
        on_cluster(runs, cluster.master)
        runs.prepare()
        expected, seconds = runs.build()
        for number in range(ROUNDS):
            runs.go_back()
            process = runs.start("build", str(runs.scratch / f"{number}.json"))
            runs.wait_until_started(process)
            time.sleep(chooser.uniform(0, seconds))
            cluster.kill_worker()
            cluster.start_worker()
            output, _ = process.communicate(timeout=600)
            survived = process.returncode == 0
            assert survived or "An executor of the Spark cluster was lost" in output, output[-4000:]
            tables, _ = runs.build()
            assert tables == expected
