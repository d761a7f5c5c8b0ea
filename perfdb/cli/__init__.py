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

from perfdb import __version__
from perfdb.cli import output
from perfdb.errors import PerfdbError, suggestion

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("runner.cli:run", "Run recipes: plan, execute, leave one run directory per case."),
    "jobs": ("runner.slurm.cli:jobs", "List the Slurm jobs of runs that have not ended."),
    "logs": ("runner.slurm.cli:logs", "Print what the Slurm job of a case prints."),
    "cancel": ("runner.slurm.cli:cancel_jobs", "Cancel the Slurm jobs of cases."),
    "ingest": ("perfdb.cli.ingest:ingest", "Read runs, published pages and logs into the store."),
    "withdraw": ("perfdb.cli.withdraw:withdraw", "Withdraw what a page stated or a run measured."),
    "compare": ("perfdb.cli.compare:compare", "Compare two releases, case by case."),
    "trend": ("perfdb.cli.trend:trend", "Follow figures over releases, and find regressions."),
    "reproduce": ("perfdb.cli.reproduce:reproduce", "Say how to get a number; get it again."),
    "bisect": ("perfdb.cli.bisect:bisect", "Find the version at which a case became slower."),
    "diff": ("perfdb.cli.diff:diff", "Say in what two runs differ."),
    "audit": ("perfdb.cli.audit:audit", "Find numbers that cannot be true."),
    "verify": ("perfdb.cli.verify:verify", "Prove that the store's figures follow from its bytes."),
    "recompute": ("perfdb.cli.recompute:recompute", "Recompute measured figures from their steps."),
    "export": (
        "perfdb.cli.export:export",
        "Write results as CSV, JSON, Parquet, Markdown or PyTorch.",
    ),
    "publish": ("perfdb.cli.publish:publish", "Write release pages for another project's docs."),
    "recipes": ("perfdb.cli.recipes:recipes", "List, show and validate recipes; their schema."),
    "systems": ("perfdb.cli.catalog:systems", "List the systems; detect this machine's."),
    "models": ("perfdb.cli.catalog:models", "List the models and their shapes."),
    "db": ("perfdb.cli.db:db", "Upgrade and check the store's schema; copy the store."),
    "selftest": ("runner.cli:selftest", "Prove that this machine's runner computes correctly."),
    "mcp": ("perfdb.cli.mcp:mcp", "Serve the store to agents, read-only."),
    "dashboard": ("dashboards.cli:dashboard", "Open the Streamlit dashboard."),
}
"""Each command's module and function, loaded when it is asked for, and its line in the help."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called, so that `--help` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order people meet them."""
        return list(COMMANDS)

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
                ctx.fail(f"{what} is empty: is a variable not set? leave out what is not meant")
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


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="perfdb")
def cli() -> None:
    """The system of record for LLM training performance.

    \b
    perfdb run recipes/        run the benchmark recipes that fit this machine
    perfdb ingest              read the runs into the store
    perfdb dashboard           explore and compare them by release

    The store is perfdb.sqlite in the current folder unless --db or PERFDB_URL names another.
    Exit codes: 0 done, 1 something failed or a gate (--fail-on) closed, 2 bad input, 3 a defect of
    perfdb, 130 interrupted, 141 nobody reads the output any more.
    """


def main(obj: object = None, group: click.Command = cli) -> None:
    """The console script: every error that leaves perfdb leaves through here.

    `obj` is the click context's object, such as `runner.session.Tools`.
    """
    output.check()
    sys.unraisablehook = _again
    gc.set_threshold(1_000_000)  # a command makes much that it keeps to its end, and hardly a cycle
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
            f"defect: {type(error).__name__}: {error}\nThis is a fault of perfdb {__version__}, "
            f"not yours. Please report it with {Path(file.name)}",
            err=True,
        )
        return 3
