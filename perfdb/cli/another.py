"""What another command of perfdb answers: the core knows no runner, and the runner no store."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from perfdb.errors import RunError


def answer(
    arguments: Sequence[str],
    *,
    python: str = sys.executable,
    variables: Mapping[str, str] | None = None,
    is_quiet: bool = False,
) -> Any:
    """What a command prints with --json, in a process of its own with these variables.

    What it says on stderr is seen as it is said, unless it is quiet. Raises RunError where it
    prints nothing, then with what it said if it was quiet.
    """
    command = [python, "-P", "-m", "perfdb", *arguments, "--json"]
    error = subprocess.PIPE if is_quiet else None
    try:
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=error, env=variables)
    except OSError as failure:
        raise RunError(f"{python} cannot be started: {failure.strerror}") from failure
    try:
        printed, said = running.communicate()
    except KeyboardInterrupt:
        running.wait()  # it was interrupted too: a runner ends its workers and its record
        raise
    if not printed:
        why = f": {said.decode(errors='replace').strip()}" if said else ""
        raise RunError(f"perfdb {arguments[0]} ended with {running.returncode}{why}")
    return json.loads(printed)
