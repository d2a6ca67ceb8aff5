"""Shows that the tests of the rules would notice a broken rule: `make test-mutations`.

Each mutation is made in a copy of the project, and its tests are run there. They must fail, and not
because nothing was collected.

    python -m tests.mutations.check          all of them, ten minutes
    python -m tests.mutations.check R7 R9    those of some rules
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutations.mutations import MUTATIONS, Mutation

ROOT = Path(__file__).parents[2]
AT_ONCE = 2
TESTS_FAILED = 1
"""What pytest exits with when tests ran and some failed."""
DBT_FAILED = "Failure in model"


def copy_project(target: Path) -> None:
    """The files under version control, and those that are not ignored, as they are now."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        source = ROOT / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)
    (target / ".venv").symlink_to((ROOT / ".venv").resolve())


def is_noticed(mutation: Mutation) -> bool:
    """Whether the mutation's tests fail in a copy of the project."""
    with tempfile.TemporaryDirectory(prefix="afterimage_mutation_") as scratch:
        folder = Path(scratch)
        copy_project(folder)
        path = folder / mutation.path
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
        command = ["scripts/with_env.sh", "--scratch", "pytest", "-q", "-x"]
        result = subprocess.run(
            [*command, *mutation.test.split()],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder / "src")},
            capture_output=True,
            text=True,
            check=False,
        )
    # an error before a test is none of the mutation's, unless dbt ran what it had broken
    is_strange = "error" in result.stdout.splitlines()[-1] and DBT_FAILED not in result.stdout
    if result.returncode not in (0, TESTS_FAILED) or is_strange:
        raise RuntimeError(f"{mutation.breaks}: the tests did not run\n{result.stdout[-3000:]}")
    return result.returncode == TESTS_FAILED


def main(rules: Sequence[str]) -> int:
    """Check the mutations of some rules, or of all; the exit code."""
    chosen = [mutation for mutation in MUTATIONS if not rules or mutation.rule in rules]
    if not chosen:
        print(f"no mutation has the rule {' or '.join(rules)}", file=sys.stderr)
        return 2
    unnoticed = []
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for mutation, noticed in zip(chosen, threads.map(is_noticed, chosen), strict=True):
            print(f"{'noticed  ' if noticed else 'UNNOTICED'} {mutation.breaks}", flush=True)
            if not noticed:
                unnoticed.append(mutation)
    print(f"{len(chosen) - len(unnoticed)} of {len(chosen)} mutations were noticed")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
