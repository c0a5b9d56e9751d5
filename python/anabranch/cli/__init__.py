"""The command line: one module for each of its commands (`anabranch.cli.commands`)."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated

import typer
from rich.text import Text

from anabranch import _core
from anabranch._core import AlgorithmError, __version__
from anabranch.cli import completion
from anabranch.cli.commands import Commands
from anabranch.cli.console import Exit, echo, err, say_error, show_log
from anabranch.errors import InputError
from anabranch.system.programs import ToolError

app = typer.Typer(
    cls=Commands,
    help="Multipath video streaming, from the equation to the wire.",
    epilog="Start with: anabranch demo; then: anabranch list scenarios, and anabranch run sticky/base",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    # Plain tracebacks are easier to put into a bug report.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        echo(f"anabranch {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Runs the command line and ends the process with one of the documented exit codes."""
    completion.prepare()
    show_log()
    try:
        app(prog_name="anabranch")
    except InputError as error:
        say_error(str(error))
        sys.exit(Exit.WRONG_INPUT)
    except (_core.LiveError, ToolError) as error:
        say_error(str(error))
        sys.exit(Exit.RUN_FAILED)
    except AlgorithmError as error:
        if error.__cause__ is not None:
            # The author's own frames: what called them is compiled.
            err().print(Text("".join(traceback.format_exception(error.__cause__)).rstrip()), soft_wrap=True)
        say_error(str(error))
        sys.exit(Exit.RUN_FAILED)
    except KeyboardInterrupt:
        say_error("interrupted")
        sys.exit(Exit.INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has closed it. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Exit.DONE)
    except OSError as error:
        say_error(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))
        _close_output()
        sys.exit(Exit.RUN_FAILED)
    except BaseException as error:
        # A broken invariant of the compiled part, such as a link that lost count of packets.
        if type(error).__module__ != "pyo3_runtime":
            raise
        say_error(f"internal error: {error}; this is a fault of anabranch, please report it with scenario and seed")
        sys.exit(Exit.RUN_FAILED)


def _close_output() -> None:
    """Gives up what standard output cannot take, such as on a full disk: Python would complain once more at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
