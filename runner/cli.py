"""`perfdb run` and `perfdb selftest`."""

import re
from collections.abc import Iterable
from pathlib import Path

import click

from perfdb.cli.options import (
    LazyChoice,
    db_option,
    examples,
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
        raise click.BadParameter(f"{value!r} is not a list of ranks; write 0, or 0,8")
    return f"profile_ranks=[{value}]"


def _steps(_context: object, _option: object, value: str) -> tuple[str, str]:
    """What --set makes of the steps to profile, which are those measured. Raises BadParameter."""
    found = re.fullmatch(r"(\d{1,6})-(\d{1,6})", value)
    first, last = map(int, found.groups()) if found else (0, 0)
    if not 1 <= first <= last:
        raise click.BadParameter(f"{value!r} is not a range of steps; write FIRST-LAST, from 1")
    return f"warmup_steps={first - 1}", f"measured_steps={last - first + 1}"


@click.command(
    no_args_is_help=True,
    epilog=examples(
        "perfdb run recipes/ --dry-run",
        "perfdb run recipes/ --only 'smoke-*' --repeat 3",
        "perfdb run recipes/ --launcher slurm --max-jobs 8 --preflight",
    ),
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--output", default="runs", show_default=True, type=click.Path(path_type=Path),
              help="The folder for run directories.")  # fmt: skip
@click.option("--launcher", default="local", show_default=True, type=LazyChoice(_launchers),
              metavar="[local|slurm]", help="Where to run.")  # fmt: skip
@click.option("--cluster", metavar="FILE", type=click.Path(path_type=Path),
              help="The file with the [slurm] table. [default: perfdb.toml]")  # fmt: skip
@click.option("--slurm", metavar="KEY=VALUE", multiple=True,
              help="A [slurm] setting for this command. May be repeated.")  # fmt: skip
@click.option("--max-jobs", metavar="N", default=500, show_default=True,
              type=click.IntRange(min=1), help="The most Slurm jobs at once.")  # fmt: skip
@click.option("--preflight", is_flag=True,
              help="Test every node first. A bad node stops everything.")  # fmt: skip
@click.option("--after", metavar="JOBID", multiple=True, type=click.IntRange(min=1),
              help="Start Slurm jobs after this job. May be repeated.")  # fmt: skip
@click.option("--missing-for", metavar="A..B",
              help="Only cases that exactly one of two releases has measured.")  # fmt: skip
@db_option
@click.option("--dry-run", is_flag=True, help="Show the plan and the commands, and run nothing.")
@only_cases_option
@set_option
@click.option("--repeat", metavar="N", default=1, show_default=True, type=click.IntRange(min=1),
              help="Finished runs per case. Existing runs count.")  # fmt: skip
@click.option("--profile", is_flag=True,
              help="Profile each case. Profiles are not results.")  # fmt: skip
@click.option("--profile-ranks", metavar="RANKS", default="0", show_default=True, callback=_ranks,
              help="The ranks to profile, separated by commas.")  # fmt: skip
@click.option("--profile-steps", metavar="FIRST-LAST", default="20-25", show_default=True,
              callback=_steps, help="The steps to profile. The run ends after them.")  # fmt: skip
@click.option("--checkpoint", is_flag=True,
              help="Save and load a checkpoint after the steps. Not a result.")  # fmt: skip
@click.option("--fit", is_flag=True,
              help="Shrink cases that do not fit this machine.")  # fmt: skip
@click.option("--fit-to", metavar="SYSTEM[:GPUS]", help="Shrink cases to another machine's size.")
@gate_option(
    ("skipped", "unmeasured"),
    "Exit with 1 if a case was skipped, or if no case ran. Separate several with commas. "
    "[default: never]",
)
@max_cases_option
@json_option
@click.pass_context
def run(context: click.Context, /, **_options: object) -> int:
    """Run the cases of recipes that fit this machine.

    PATHS are recipe files or folders. Each case leaves one run directory. perfdb skips cases for
    other systems, and says why. With --fit, it shrinks them to fewer layers and GPUs. Such a proxy
    is a different case, and is never compared with releases. Run the same command again to resume:
    perfdb does not repeat finished cases. A failed case does not stop the others, and the exit code
    is 1.
    """
    from runner.session import Request, Tools, run_session

    tools = context.obj if isinstance(context.obj, Tools) else Tools()
    asked = context.params
    ranks, steps = (asked.pop(name) for name in ("profile_ranks", "profile_steps"))
    is_profile, is_checkpoint = (asked.pop(name) for name in ("profile", "checkpoint"))
    if asked["after"] and asked["launcher"] != "slurm":
        raise click.UsageError("--after needs --launcher slurm")
    if is_profile and is_checkpoint:
        raise click.UsageError("--profile and --checkpoint exclude each other")
    kind = ("kind=profile", ranks, *steps) if is_profile else ("kind=checkpoint",)
    if asked["preflight"] and asked["launcher"] != "slurm":
        raise click.UsageError("--preflight needs --launcher slurm")
    asked["given"] += kind if is_profile or is_checkpoint else ()
    return run_session(Request(**asked), tools)


@click.command(epilog=examples("perfdb selftest", "perfdb selftest --max-processes 2"))
@click.option("--max-processes", metavar="N", default=4, show_default=True,
              type=click.IntRange(min=1), help="Skip layouts with more processes.")  # fmt: skip
@json_option
def selftest(max_processes: int, as_json: bool) -> int:
    """Check that training on this machine is correct.

    This trains the same small model with the same seed and data under several parallel layouts.
    After four steps, all losses and gradient norms must agree to float32 rounding. Do not trust
    timings from a machine that fails.
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
            "Self-test",
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
