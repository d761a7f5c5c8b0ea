"""`perfdb`: the table of commands, and the one door through which errors leave."""

import gc
import signal
import sys
import tempfile
import threading
import traceback
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from perfdb import __version__
from perfdb.cli import output
from perfdb.errors import PerfdbError, suggestion

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("runner.cli:run", "Run benchmark recipes on this machine or on Slurm."),
    "jobs": ("runner.slurm.cli:jobs", "List the Slurm jobs of unfinished runs."),
    "logs": ("runner.slurm.cli:logs", "Print the log of a case's Slurm job."),
    "cancel": ("runner.slurm.cli:cancel_jobs", "Cancel Slurm jobs."),
    "ingest": ("perfdb.cli.ingest:ingest", "Read runs, published pages, and logs into the store."),
    "withdraw": ("perfdb.cli.ingest:withdraw", "Withdraw the results of a page, file, or run."),
    "releases": ("perfdb.cli.results:releases", "List the releases in the store."),
    "results": ("perfdb.cli.results:results", "List the results in the store."),
    "compare": ("perfdb.cli.compare:compare", "Compare two releases."),
    "report": ("perfdb.cli.report:report", "Report what changed in a release, with your notes."),
    "baseline": ("perfdb.cli.baseline:baseline", "Name a set of releases to compare with."),
    "trend": ("perfdb.cli.trend:trend", "Follow results across releases and find regressions."),
    "reproduce": ("perfdb.cli.reproduce:reproduce", "Show how to reproduce a result."),
    "bisect": ("perfdb.cli.bisect:bisect", "Find the version that changed a case's speed."),
    "diff": ("perfdb.cli.results:diff", "Show the differences between two runs."),
    "audit": ("perfdb.cli.audit:audit", "Find results that contradict themselves."),
    "verify": ("perfdb.cli.verify:verify", "Check the store against its original files."),
    "recompute": ("perfdb.cli.verify:recompute", "Recompute figures from stored steps."),
    "export": ("perfdb.cli.export:export", "Export as CSV, JSON, Parquet, Markdown, or PyTorch."),
    "publish": ("perfdb.cli.publish:publish", "Write release pages for another project's docs."),
    "recipes": ("perfdb.cli.recipes:recipes", "List, show, and check recipes."),
    "systems": ("perfdb.cli.catalog:systems", "List the systems, and detect this one."),
    "models": ("perfdb.cli.catalog:models", "List the models and their shapes."),
    "db": ("perfdb.cli.db:db", "Upgrade, check, and copy the store."),
    "selftest": ("runner.cli:selftest", "Check that training on this machine is correct."),
    "mcp": ("perfdb.cli.mcp:mcp", "Serve the store to agents, read-only."),
    "dashboard": ("dashboards.cli:dashboard", "Open the dashboard in a browser."),
}
"""Each command's module and function, imported on use, and its line in the help."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called, so that `--help` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order people meet them."""
        return list(COMMANDS)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names and options that begin so, without importing any command."""
        if not incomplete.startswith("-"):
            return [
                CompletionItem(name, help=line)
                for name, (_, line) in COMMANDS.items()
                if name.startswith(incomplete)
            ]
        return click.Command.shell_complete(self, ctx, incomplete)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, imported now."""
        if cmd_name not in COMMANDS:
            return None
        module, function = COMMANDS[cmd_name][0].split(":")
        command = getattr(import_module(module), function)
        assert isinstance(command, click.Command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Raises UsageError for an empty word, which is a variable that is not set.

        As a path it would be this folder, and as an option's value often as if it were not there.
        """
        for before, word in pairwise(["perfdb", *args]):
            if not word or (word.startswith("--") and word.endswith("=")):
                what = word or f"what follows {before}"
                ctx.fail(f"{what} is empty: is a variable not set?")
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of the first word. Raises UsageError, which says what may be meant."""
        word = args[0] if args else ""
        if word and not word.startswith("-") and self.get_command(ctx, word) is None:
            ctx.fail(f"no command {word!r}; {suggestion(word, COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


EPILOG = """\b
Examples:
  perfdb run recipes/                   run the recipes that fit this machine
  perfdb ingest                         read the runs into the store
  perfdb compare 25.07 25.09            compare two releases
  perfdb dashboard                      explore the results in a browser
\b
Exit codes:
  0    success
  1    something failed, or --fail-on found a problem
  2    invalid input
  3    a bug in perfdb
  130  interrupted
  141  the reader of a pipe stopped reading
"""


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EPILOG)
@click.version_option(__version__, prog_name="perfdb")
def cli() -> None:
    """The system of record for LLM training performance.

    The store is perfdb.sqlite in the current folder. --db or PERFDB_URL names another one. Scripts
    use --json. NO_COLOR turns off colors.
    """


def main(obj: object = None, group: click.Command = cli) -> None:
    """The console script: every error that leaves perfdb leaves through here.

    `obj` is the click context's object, such as `runner.session.Tools`.
    """
    output.check()
    sys.unraisablehook = _again
    gc.set_threshold(4_000_000)  # a command makes much that it keeps to its end, and hardly a cycle
    try:
        code = _ended(group, obj)
        output.flush()
    except output.ReaderGoneError:
        code = output.CLOSED
        output.drop(sys.stdout)
        output.drop(sys.stderr)
    except output.OutputError as error:
        code = error.exit_code
        output.drop(sys.stdout)
        with suppress(output.OutputError, output.ReaderGoneError):
            click.echo(f"error: {error}", err=True)
        output.drop(sys.stderr)
    gc.freeze()  # what is left ends with the process: to look for cycles in it takes long
    sys.exit(code)


def _again(ignored: "sys.UnraisableHookArgs") -> None:
    """Interrupt once more where Ctrl-C came within a callback of imports, which drops it."""
    if ignored.exc_type is KeyboardInterrupt:
        main_thread = threading.main_thread().ident or 0
        # At once it would be dropped again.
        later = threading.Timer(0.01, signal.pthread_kill, (main_thread, signal.SIGINT))
        later.daemon = True
        later.start()
    else:
        sys.__unraisablehook__(ignored)


def _ended(group: click.Command, obj: object) -> int:
    """The exit code of the command. Raises where it cannot write."""
    try:
        code = group.main(standalone_mode=False, obj=obj)
        return code if isinstance(code, int) else 0
    except (output.OutputError, output.ReaderGoneError):
        raise
    except PerfdbError as error:
        click.echo(f"error: {error}", err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return 130
    except Exception as error:  # noqa: BLE001  the door: what arrives here is a defect of ours
        with tempfile.NamedTemporaryFile(
            "w", prefix="perfdb-defect-", suffix=".txt", delete=False
        ) as file:
            traceback.print_exception(error, file=file)
        click.echo(
            f"defect: {type(error).__name__}: {error}\nThis is a bug in perfdb {__version__}. "
            f"Please report it with {Path(file.name)}",
            err=True,
        )
        return 3
