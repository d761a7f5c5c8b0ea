"""What a hostile file, name or page does not do, and Ctrl-C at any moment."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.shell import Shell

PERFDB = [sys.executable, "-m", "perfdb"]
STARTS = [sys.executable, "-c", "from perfdb.__main__ import main; print(flush=True); main()"]
BEFORE_MAIN = """\
Traceback (most recent call last):
  File "<string>", line 1, in <module>
KeyboardInterrupt"""
"""What such a program says that a busy machine has not let begin yet."""


def test_control_characters_of_names_and_values_are_shown_on_stderr(tmp_path: Path) -> None:
    """Else they retitle the terminal, move its cursor over what was printed, or type into it."""
    recipe = tmp_path / "a\x1b[2J\x07.yaml"
    recipe.write_text('name: a\nframework: "b\\e]0;owned\\a\\x9b2J"\n')
    validated = [*PERFDB, "recipes", "validate", str(recipe)]
    for command in (validated, [*PERFDB, "\x1b[2J"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert 2 == done.returncode
        assert "\\x1b" in done.stderr
        assert {"\n"} >= {one for one in done.stderr if ord(one) < 32 or 127 <= ord(one) < 160}


@pytest.mark.parametrize("command", ["run", "ingest", "dashboard", "compare"])
@pytest.mark.parametrize("seconds", [0, 0.05, 0.2, 0.4])
def test_ctrl_c_while_a_command_starts_and_ends_leaves_no_traceback(
    command: str, seconds: float
) -> None:
    """0: it had ended; SIGINT itself: the interpreter, which is ending, has no handler any more."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [*STARTS, command, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    signal.signal(signal.SIGINT, before)
    with process:
        assert process.stdout
        assert process.stderr
        assert "\n" == process.stdout.readline()
        time.sleep(seconds + 0.02)
        process.send_signal(signal.SIGINT)
        assert process.stderr.read().strip() in ("", "interrupted", BEFORE_MAIN)
    assert process.returncode in (0, 130, -signal.SIGINT)


@pytest.mark.parametrize(
    "markup", ["recipe.yaml", "deep.yaml", "page.md", "page.rst", "page.html", "golden.json"]
)
def test_what_would_take_minutes_is_refused_in_seconds(
    perfdb: Shell, markup: str, tmp_path: Path
) -> None:
    """Unknown keys, rows, titles, and brackets in brackets."""
    text = {
        "recipe.yaml": "".join(f"key{number}: 1\n" for number in range(50_000)),
        "deep.yaml": "a: " + "[" * 20_000,
        "page.md": "# T\n\n|Model|GBS|\n|---|---|\n" + "|a|1|\n" * 100_000,
        "page.rst": "T\n====\n\n.. note::\n\n   n\n\n" * 20_000,
        "page.html": "<html>" + "<p>S\n</main>\n<footer>\n" * 10_000,
        "golden.json": '{"lm loss": ' + "[" * 500_000 + "]" * 500_000 + "}",
    }[markup]
    (tmp_path / markup).write_text(text)
    words = ["recipes", "validate"] if markup.endswith(".yaml") else ["ingest"]
    began_s = time.process_time()
    done = perfdb(*words, markup)
    assert 10 > time.process_time() - began_s
    assert 0 < done.code < 3
    assert markup in done.stderr
    assert done.stderr.count("\n") <= 3


def test_ctrl_c_within_a_callback_is_not_lost() -> None:
    """Python drops what a callback of a weak reference raises; imports have such callbacks."""
    code = """
import time, weakref, click
from perfdb import cli

@click.command()
def waiting():
    thing = type("Thing", (), {})()
    def interrupted(_):
        raise KeyboardInterrupt
    kept = weakref.ref(thing, interrupted)
    del thing
    time.sleep(20)

cli.main(group=waiting)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (130, "interrupted") == (done.returncode, done.stderr.strip())
