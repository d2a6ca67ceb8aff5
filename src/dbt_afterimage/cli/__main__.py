"""`python -m dbt_afterimage.cli` runs the command line."""

from __future__ import annotations

from dbt_afterimage.cli import main

if __name__ == "__main__":
    main()
