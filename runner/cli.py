"""`perfdb run` and `perfdb selftest`."""

import re
from collections.abc import Iterable
from pathlib import Path

import click

from perfdb.cli.options import (
    LazyChoice,
    db_option,
    gate_option,
    json_option,
    max_cases_option,
    only_cases_option,
    print_json,
    print_table,
    set_option,
)


def _launchers() -> Iterable[str]:
    from runner.launchers import LAUNCHERS

    return LAUNCHERS


def _ranks(_context: object, _option: object, value: str) -> str:
    """What --set makes of ranks. Raises BadParameter."""
    if not re.fullmatch(r"\d{1,6}(,\d{1,6})*", value):
        raise click.BadParameter(f"{value!r} are no ranks: write 0, or 0,8")
    return f"profile_ranks=[{value}]"


def _steps(_context: object, _option: object, value: str) -> tuple[str, str]:
    """What --set makes of the steps to profile, which are those measured. Raises BadParameter."""
    found = re.fullmatch(r"(\d{1,6})-(\d{1,6})", value)
    first, last = map(int, found.groups()) if found else (0, 0)
    if not 1 <= first <= last:
        raise click.BadParameter(f"{value!r} are no steps: write FIRST-LAST, from 1 on")
    return f"warmup_steps={first - 1}", f"measured_steps={last - first + 1}"


@click.command(no_args_is_help=True)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--output", default="runs", show_default=True, type=click.Path(path_type=Path),
              help="The folder for run directories.")  # fmt: skip
@click.option("--launcher", default="local", show_default=True, type=LazyChoice(_launchers),
              metavar="[local|slurm]", help="Where to start the processes.")  # fmt: skip
@click.option("--cluster", metavar="FILE", type=click.Path(path_type=Path),
              help="The file with the table [slurm]. [default: perfdb.toml]")  # fmt: skip
@click.option("--slurm", metavar="KEY=VALUE", multiple=True,
              help="A setting of [slurm] for this time; may be repeated.")  # fmt: skip
@click.option("--max-jobs", metavar="N", default=500, show_default=True,
              type=click.IntRange(min=1), help="Slurm jobs at once.")  # fmt: skip
@click.option("--preflight", is_flag=True,
              help="First measure every node that jobs may get; a sick one stops all.")  # fmt: skip
@click.option("--after", metavar="JOBID", multiple=True, type=click.IntRange(min=1),
              help="Start Slurm jobs once this job has ended; may be repeated.")  # fmt: skip
@click.option("--missing-for", metavar="A..B",
              help="Only cases that the store has measured at one of two releases.")  # fmt: skip
@db_option
@click.option("--dry-run", is_flag=True, help="Show the plan and the commands; run nothing.")
@only_cases_option
@set_option
@click.option("--repeat", metavar="N", default=1, show_default=True, type=click.IntRange(min=1),
              help="Finished runs wanted of each case; those there are count.")  # fmt: skip
@click.option("--profile", is_flag=True,
              help="Profile each case instead of measuring it, for no table.")  # fmt: skip
@click.option("--profile-ranks", metavar="RANKS", default="0", show_default=True, callback=_ranks,
              help="The ranks to profile; several with a comma.")  # fmt: skip
@click.option("--profile-steps", metavar="FIRST-LAST", default="20-25", show_default=True,
              callback=_steps, help="The steps to profile; the run ends after them.")  # fmt: skip
@click.option("--checkpoint", is_flag=True,
              help="Save and load a checkpoint after the steps, also for no table.")  # fmt: skip
@click.option("--fit", is_flag=True,
              help="Cut cases that do not fit this machine, to proxies that do.")  # fmt: skip
@click.option("--fit-to", metavar="SYSTEM[:GPUS]", help="Cut them to another machine's size.")
@gate_option(
    ("skipped", "unmeasured"),
    "Exit with 1 where a case was skipped, or where none was run: each was skipped or had finished "
    "before; several with a comma. [default: never]",
)
@max_cases_option
@json_option
@click.pass_context
def run(context: click.Context, /, **_options: object) -> int:
    """Run the cases of recipes that fit this machine, and leave one run directory for each.

    PATHS are recipe files or folders of them. Cases for other systems are skipped with the
    reason, or with --fit cut: fewer layers and GPUs, the same shape of a layer and kinds of
    parallelism. Such a proxy is another case, in no table of releases. The same command again
    resumes: finished cases are not run again. One that fails does not stop the others; the exit
    code is then 1.
    """
    from runner.session import Request, Tools, run_session

    tools = context.obj if isinstance(context.obj, Tools) else Tools()
    asked = context.params
    ranks, steps = (asked.pop(name) for name in ("profile_ranks", "profile_steps"))
    is_profile, is_checkpoint = (asked.pop(name) for name in ("profile", "checkpoint"))
    if asked["after"] and asked["launcher"] != "slurm":
        raise click.UsageError("--after needs --launcher slurm")
    if is_profile and is_checkpoint:
        raise click.UsageError("--profile and --checkpoint are two runs")
    kind = ("kind=profile", ranks, *steps) if is_profile else ("kind=checkpoint",)
    if asked["preflight"] and asked["launcher"] != "slurm":
        raise click.UsageError("--preflight is for --launcher slurm")
    asked["given"] += kind if is_profile or is_checkpoint else ()
    return run_session(Request(**asked), tools)


@click.command()
@click.option("--max-processes", metavar="N", default=4, show_default=True,
              type=click.IntRange(min=1), help="Leave out layouts of more processes.")  # fmt: skip
@json_option
def selftest(max_processes: int, as_json: bool) -> int:
    """Prove that this machine's runner computes correctly, before its timings are trusted.

    The same small model, seed and data are trained for four steps under different parallel
    layouts. Every layout must give the same losses and gradient norms, to float32 rounding; a
    layout that computes something else is fast for the wrong reason.
    """
    import dataclasses

    from perfdb import units
    from perfdb.cli import output
    from runner.selftest import check

    rows = check(output.console(), max_processes)
    if as_json:
        print_json({"layouts": [dataclasses.asdict(row) for row in rows]})
    else:
        print_table(
            "selftest",
            ("Layout", "Processes", "Verdict", "Largest difference", "Loss, step 4", "Reason"),
            [
                (
                    row.layout,
                    row.processes,
                    "same" if row.agrees else "WRONG",
                    None if row.difference is None else f"{row.difference:.1e}",
                    units.significant(row.loss, 7),
                    row.reason,
                )
                for row in rows
            ],
        )
    return 0 if all(row.agrees for row in rows) else 1
