"""The frame of all commands: registration, help that ends with an example, errors, exit codes.

Exit codes: 0 the command did what it says; 1 it failed, or found what it was asked to report as a
failure; 2 it was called wrongly; 130 it was interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
import typer.core

from dbt_afterimage import __version__
from dbt_afterimage.errors import AfterimageError, is_ours

FAILED = 1
WRONG_USAGE = 2
INTERRUPTED = 130

Function = TypeVar("Function", bound=Callable[..., Any])

TargetOption = Annotated[str | None, typer.Option(help="Target in profiles.yml.")]
"""The option `--target` of a command that uses the project's profile."""

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
"""The option `--json` of a command that reports something."""


# C0 and C1 but tab and line break, and the characters that change the direction of text
_CONTROLS = {
    code: f"\\u{code:04x}"
    for code in (*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
    if chr(code) not in "\t\n"
}


def printable(value: object) -> str:
    """A value of a record as text that no terminal takes for a command, escaped as in JSON."""
    return str(value).translate(_CONTROLS)


class UsageProblem(AfterimageError):
    """Arguments that do not go together: the command ends with exit code 2."""


class DbtFailedError(AfterimageError):
    """A dbt command failed and has printed why: nothing is added to that."""


# as a project needs them
_IN_ORDER = (
    "init",
    "doctor",
    "demo",
    "land",
    "add-table",
    "query",
    "status",
    "report",
    "rejects",
    "publish",
    "compact",
    "erase",
    "spark-sql",
    "server",
    "package-path",
)


class _Commands(typer.core.TyperGroup):
    """A group of commands that shows our errors as a text, without a traceback.

    Any other error is a defect of this program and keeps its traceback.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(
            super().list_commands(ctx),
            key=lambda name: _IN_ORDER.index(name) if name in _IN_ORDER else len(_IN_ORDER),
        )

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        # click cuts a summary off at the end of the line
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, found.get_short_help_str(limit=300)) for name, found in commands if found]
            )

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except DbtFailedError as error:
            raise typer.Exit(FAILED) from error
        except KeyboardInterrupt as error:
            typer.echo("Interrupted.", err=True)
            raise typer.Exit(INTERRUPTED) from error
        except Exception as error:
            end_of_java = _why_java_ended(error)
            if not (is_ours(error) or end_of_java):
                raise
            # errors quote values of records
            typer.echo(printable(end_of_java or error), err=True)
            raise typer.Exit(WRONG_USAGE if isinstance(error, UsageProblem) else FAILED) from error


def _why_java_ended(error: Exception) -> str:
    if "pyspark" not in sys.modules:
        return ""
    from dbt_afterimage.spark.session import why_java_ended

    return why_java_ended(error)


app = typer.Typer(
    cls=_Commands,
    help="History, current state and field changes from the change tables of replication tools.",
    epilog=(
        "Exit codes: 0 done; 1 failed, or found what it was asked to report as a failure; "
        "2 wrong usage; 130 interrupted. Each command has a page: afterimage COMMAND --help"
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"afterimage {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
    project_dir: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the dbt project. By default the working folder, or one above it.",
            exists=True,
            file_okay=False,
        ),
    ] = None,
) -> None:
    """Options of the program itself."""
    if project_dir is not None:
        # dbt reads it, too
        os.environ["DBT_PROJECT_DIR"] = str(project_dir.resolve())


def group(name: str, text: str) -> typer.Typer:
    """A command that has commands of its own, such as `afterimage land`."""
    commands = typer.Typer(help=text, no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(commands, name=name)
    return commands


def command(name: str, *, example: str, of: typer.Typer = app) -> Callable[[Function], Function]:
    """Register a function as a command; its docstring is the help.

    Args:
        example: a command line, or several lines, that the help ends with.
        of: the group that the command belongs to.
    """
    # \b keeps click from wrapping the lines
    shown = "\b\nExample:\n" + "\n".join(f"  {line}" for line in example.strip().splitlines())
    return of.command(name, epilog=shown)


def load_commands_of_other_distributions() -> None:
    """Load the entry points of the group `afterimage.commands`: each registers by `@command`."""
    for entry in entry_points(group="afterimage.commands"):
        entry.load()


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line with these arguments, or with those of the process."""
    return app(arguments if arguments is not None else sys.argv[1:])
