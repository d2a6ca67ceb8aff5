"""Runs code in a Python of its own, for tests of what happens once in a process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path


def python(code: str, folder: Path, **environment: str) -> str:
    """Run code in another Python, in `folder`; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
