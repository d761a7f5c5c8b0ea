"""The command line: what it answers, and the one door through which errors leave."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from perfdb import catalog, cli
from perfdb.db.session import store_url
from perfdb.errors import Diagnostic, InputError, RunError
from tests.shell import Shell

PERFDB = str(Path(sys.executable).with_name("perfdb"))


def ended(
    monkeypatch: pytest.MonkeyPatch, raised: BaseException | int, *arguments: str
) -> int | str | None:
    """How the console script ends when a command raises, or returns a code."""

    @click.command()
    def command() -> int:
        if isinstance(raised, int):
            return raised
        raise raised

    monkeypatch.setattr("sys.argv", ["perfdb", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main(group=command)
    return caught.value.code


def test_every_way_to_end_has_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    for raised, code in (
        (0, 0), (1, 1), (InputError(Diagnostic("a.yaml", "wrong")), 2),
        (RunError("torchrun cannot be started"), 1), (KeyboardInterrupt(), 130),
        (ZeroDivisionError("ours"), 3),
    ):  # fmt: skip
        assert code == ended(monkeypatch, raised)


def test_a_defect_leaves_its_traceback_in_a_file_and_problems_a_line_each(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended(monkeypatch, ZeroDivisionError("ours"))
    said = capsys.readouterr().err
    assert "Traceback" not in said
    report = Path(said.split("report it with ")[1].strip())
    assert "ZeroDivisionError: ours" in report.read_text()
    report.unlink()
    problems = [
        Diagnostic("a.yaml", "wrong", "num_gpus", 3, "add it"),
        Diagnostic("b.yaml", "empty"),
    ]
    ended(monkeypatch, InputError(problems))
    assert "error: a.yaml:3: num_gpus: wrong; add it\nb.yaml: empty\n" == capsys.readouterr().err


def helps(command: click.Command, *words: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """A command and all below it, each with the words that call it."""
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below
            yield from helps(below, *words, name)


@pytest.mark.parametrize("command", list(cli.COMMANDS))
def test_every_command_explains_itself_and_its_options_in_eighty_columns(command: str) -> None:
    """No option without a word, and no line of a list of commands that is cut off."""
    top = cli.cli.get_command(click.Context(cli.cli), command)
    assert top
    for words, one in helps(top, command):
        said = CliRunner().invoke(cli.cli, [*words, "--help"], terminal_width=80).output
        assert said.startswith(f"Usage: cli {' '.join(words)} ")
        assert max(map(len, said.splitlines())) <= 80
        assert "..." not in said.partition("\nCommands:")[2]
        assert all(it.help for it in one.params if isinstance(it, click.Option))


EVERY = [(" ".join(words), one) for words, one in helps(cli.cli, "perfdb")]


def test_every_help_has_examples_that_the_command_line_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are parsed, and not run."""
    monkeypatch.chdir(tmp_path)
    commands = dict(EVERY)
    for name, command in EVERY:
        lines = [line.strip() for line in (command.epilog or "").splitlines()]
        examples = [line.partition("  ")[0] for line in lines if line.startswith("perfdb ")]
        assert examples, name
        for example in examples:
            assert example.startswith(name)
            words = shlex.split(example)
            for word in words:
                if word.endswith((".md", ".yaml", ".log")):
                    (tmp_path / word).touch()
            paths = (" ".join(words[:count]) for count in range(len(words), 0, -1))
            path = next(it for it in paths if it in commands)
            commands[path].make_context(path, words[len(path.split()) :])


def test_sentences_of_help_are_short() -> None:
    """At most 20 words each, in the descriptions of commands and options."""
    said = [command.help or "" for _, command in EVERY]
    said += [
        it.help or ""
        for _, command in EVERY
        for it in command.params
        if isinstance(it, click.Option)
    ]
    texts = [re.sub(r"\[default: .*?\]|\x08[^\n]*\n(?:.+\n?)*", "", text) for text in said]
    sentences = [it for text in texts for it in re.split(r"(?<=[.:?])\s|\n\n", text)]
    assert [] == [it for it in sentences if len(it.split()) > 20]


def test_completion_names_the_commands_and_imports_none(tmp_path: Path) -> None:
    """In bash, of a half-written line."""
    variables = {"_PERFDB_COMPLETE": "bash_complete", "COMP_WORDS": "perfdb re", "COMP_CWORD": "1"}
    words = [sys.executable, "-X", "importtime", PERFDB]
    done = subprocess.run(
        words, env=os.environ | variables, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    names = [line.partition(",")[2] for line in done.stdout.splitlines()]
    assert ["releases", "results", "report", "reproduce", "recompute", "recipes"] == names
    assert not re.search(r"\b(sqlalchemy|rich|runner)\b", done.stderr)


def test_the_readme_has_a_line_for_every_command() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    assert [] == [name for name in cli.COMMANDS if f"perfdb {name}" not in readme]


@pytest.mark.parametrize(
    "command", ["systems", "systems detect", "models", "recipes list", "recipes show smoke-dp2"]
)
def test_every_list_can_be_json_and_nothing_else_is_on_stdout(
    perfdb: Shell, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(Path(__file__).parents[1])
    done = perfdb(*command.split(), "--json")
    assert 0 == done.code
    assert json.loads(done.stdout)


def test_a_narrow_terminal_shows_a_line_for_each_name_of_the_catalogue(
    perfdb: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")  # without colors
    monkeypatch.setenv("COLUMNS", "80")
    for command, entries, left_out in (
        ("models", list(catalog.models()), "Source, KV heads, Heads, FFN"),
        ("systems", list(catalog.systems()), "NVLink domain"),
    ):
        _, out, err = perfdb(command)
        _, _, _, _, *lines, air = out.splitlines()
        assert (entries, "") == ([line.split()[0] for line in lines], air)
        assert f"not shown: {left_out}; --wide shows all\n" == err
        assert max(map(len, lines)) <= 80


def test_a_variable_that_is_not_set_is_not_taken_for_this_folder(
    perfdb: Shell, tmp_path: Path
) -> None:
    """Nor for an option that is left out."""
    before = set(tmp_path.iterdir())
    for line, told in {
        "ingest ": "what follows ingest is empty",
        "ingest --db x.sqlite --window ": "what follows --window is empty",
        "ingest page.md --db ": "what follows --db is empty",
        "run --dry-run ": "what follows --dry-run is empty",
        "publish --output=": "--output= is empty",
        "recompute --window ": "what follows --window is empty",
    }.items():
        code, out, err = perfdb(*line.split(" "))
        assert (2, "") == (code, out)
        assert f"Error: {told}: is a variable not set?" in err
    assert before == set(tmp_path.iterdir())


def test_a_misspelt_command_says_what_may_be_meant(perfdb: Shell) -> None:
    code, _, err = perfdb("rnu")
    assert (2, True) == (code, "no command 'rnu'; did you mean run?" in err)


def ended_in_shell(line: str) -> tuple[int, str]:
    """The exit code of a command line, and what it says on stderr."""
    words = ["bash", "-c", f"set -o pipefail; {line.replace('perfdb', PERFDB)}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "line", ["perfdb systems", "perfdb systems --json", "perfdb --help", "perfdb nonsense 2>&1"]
)
def test_a_closed_pipe_ends_as_any_program_does_there(line: str) -> None:
    """128 + SIGPIPE; by rich and click it is 1."""
    assert (141, "") == ended_in_shell(f"{line} | true")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
@pytest.mark.parametrize("line", ["perfdb systems", "perfdb systems --json", "perfdb --help"])
def test_a_full_disk_is_no_defect(line: str) -> None:
    said = "error: cannot write the output: No space left on device\n"
    assert (2, said) == ended_in_shell(f"{line} > /dev/full")
    assert (2, "") == ended_in_shell(f"{line} > /dev/full 2>&1")


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://nobody@127.0.0.1:1/x?password=hunter2",
        "postgresql://127.0.0.1:1/x?user=nobody&password=hunter2",
        "postgresql://nobody:hunter2@127.0.0.1:1/x",
        "postgresql://nobody:hunter2@127.0.0.1:port/x",
        "postgresql:/nobody:hunter2@127.0.0.1/x",
        "mysql://nobody:hunter2@127.0.0.1/x",
        "sqlite://nobody:hunter2@host/x",
        "sqlite:///x?password=hunter2",
        "postgresql://nobody@127.0.0.1:1/x?sslpassword=hunter2",
    ],
)
def test_a_password_in_the_address_of_a_store_is_never_printed(
    perfdb: Shell, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """Nobody listens at port 1."""
    monkeypatch.setenv("PERFDB_URL", address)
    code, out, err = perfdb("verify")
    assert (2, "") == (code, out)
    assert err
    assert "hunter2" not in err


def test_a_password_in_options_is_that_of_the_address() -> None:
    """Also where PERFDB_URL is handed on to the dashboard's process."""
    given = store_url("postgresql://h/x?password=p%40s&user=me&connect_timeout=3")
    expected = "postgresql+psycopg://me:p%40s@h/x?connect_timeout=3"
    assert expected == given.render_as_string(hide_password=False)
