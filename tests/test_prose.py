"""The prose linter finds what it is there for, and where."""

from pathlib import Path

import click

from tests import prose

LONG = "This sentence has exactly as many words as it takes to be longer than what we allow"
PAGE = f"""---
description: A page whose sentences are riddles.
---

# Words

Plain words, `code whose words do not count` and *whatever is quoted*.
{LONG}, and it goes on until there are twenty-six words.

| name | meaning |
|---|---|
| a | the colour of a bar |

```console
$ perfdb trend beside
```
"""


def test_it_names_the_line_of_each_long_sentence_and_riddle(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    found = prose.problems(list(prose.documents([page])))
    assert [
        f"{page}:2: 'whose': say with, of which. [perfdb.plain] 'whose'",
        f"{page}:7: A sentence of 26 words; at most 25. [perfdb.long] {LONG[:60]!r}",
        f"{page}:12: 'colour': say the American spelling. [perfdb.plain] 'colour'",
    ] == found


def test_it_reads_the_help_of_commands_and_options_but_no_examples() -> None:
    option = click.Option(["--all"], help="Whatever there is.")
    child = click.Command(
        "child", help="Said well.\n\n\b\nExamples:\n  child beside", params=[option]
    )
    group = click.Group("group", commands={"child": child})
    found = prose.problems(list(prose.helps(group, "group")))
    assert ["Said", "Whatever"] == [line.rpartition(" ")[2].strip("'") for line in found]
