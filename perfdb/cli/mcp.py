"""`perfdb mcp`: the store for agents, over the Model Context Protocol."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Final

import click

from perfdb.cli import options
from perfdb.errors import Diagnostic, InputError, PerfdbError

Tool = Callable[..., Mapping[str, object]]

MOST_ROWS: Final = 200
"""An answer is read by a model, whose context is short."""
INSTRUCTIONS: Final = """\
Published and measured performance of LLM training. Rates are per GPU; step times are in seconds; \
null is unknown, never zero. Compare figures only through the tool `compare`: it says at which \
level two results match, in what they differ, and whether a difference is larger than the noise. \
model_tflops_per_sec_per_gpu and mfu under two flops_convention values are different quantities. \
Results with an open error in `findings` may be wrong."""


@click.command(epilog=options.examples("perfdb mcp --db sqlite:///perfdb.sqlite"))
@options.db_option
def mcp(db: str | None) -> None:
    """Serve the store to agents, read-only, over standard input and output.

    The server speaks the Model Context Protocol (MCP). Its tools list releases, results, and
    findings, compare two releases, show how to reproduce a result, and run SELECT statements.
    Register the command `perfdb mcp` in your agent. It needs `pip install 'perfdb[mcp]'`.
    """
    from perfdb.db.session import reading_current, store_url

    with reading_current(store_url(db)):
        pass
    server(db).run("stdio")


def server(db: str | None) -> Any:
    """The server of a store. Raises InputError where the package `mcp` is not installed."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError:
        remedy = "pip install 'perfdb[mcp]'"
        raise InputError(Diagnostic("perfdb mcp", "mcp is not installed", remedy=remedy)) from None

    def refusing(tool: Tool) -> Tool:
        """A tool whose refusals reach the agent as messages."""

        @wraps(tool)
        def asked(*args: object, **kwargs: object) -> Mapping[str, object]:
            try:
                return tool(*args, **kwargs)
            except PerfdbError as error:
                raise ToolError(str(error)) from error

        return asked

    made = MCPServer("perfdb", instructions=INSTRUCTIONS, log_level="WARNING")
    for tool in _Tools(db).all:
        made.tool()(refusing(tool))
    return made


class _Tools:
    """What an agent can ask of a store; its docstrings are what the agent reads."""

    def __init__(self, db: str | None) -> None:
        self._db = db
        self.all = (
            self.releases, self.results, self.findings, self.compare, self.reproduce, self.sql,
        )  # fmt: skip

    def releases(self) -> Mapping[str, object]:
        """List the releases that have results, with their framework, container and count."""
        from perfdb import api

        return _page(_records(api.releases(db=self._db)), 0)

    def results(
        self,
        release: str | None = None,
        framework: str | None = None,
        system: str | None = None,
        model: str | None = None,
        offset: int = 0,
    ) -> Mapping[str, object]:
        """List current results with configuration and figures, for example of system dgx-h100.

        `withheld` says why a result has no figures. Ask for the next page with `offset`.
        """
        from perfdb import api

        narrowed = {"framework": framework, "system": system, "model": model}
        found = api.results(release=release, db=self._db, **narrowed)
        return _page(_records(found), offset)

    def findings(self, release: str | None = None, offset: int = 0) -> Mapping[str, object]:
        """List what the audit found wrong or suspicious in current results."""
        from perfdb import api

        return _page(_records(api.findings(release=release, db=self._db)), offset)

    def compare(
        self, a: str, b: str, system: str | None = None, model: str | None = None, offset: int = 0
    ) -> Mapping[str, object]:
        """Compare release B with release A, such as 'nemo 25.04'; verdicts speak of B.

        Read `level`, `differences` and `reason` before a ratio: they say what is comparable.
        """
        from perfdb import api
        from perfdb.compare import report
        from perfdb.db.session import reading_current, store_url
        from perfdb.queries.scope import Scope

        with reading_current(store_url(self._db)) as connection:
            found = api.compared(connection, a, b, Scope(system=system, model=model))
        page = _page([report.matched(match) for match in found.matched], offset)
        alone = {"only_a": len(found.only_a), "only_b": len(found.only_b)}
        return {"summary": report.summary(found), **alone, **page}

    def reproduce(self, result: str) -> Mapping[str, object]:
        """Say what belongs to a number: recipe, configuration, container, command, source line.

        `result` is a result id, a run id, a case key, a link of the site, or MODEL@SYSTEM@RELEASE.
        """
        from perfdb.cli.reproduce import DEFAULT, belonging

        return belonging(result, self._db, DEFAULT)

    def sql(self, statement: str) -> Mapping[str, object]:
        """Run one SELECT on the store. The table `results` joins `cases`, `releases`, `systems`.

        Leave out superseded results (`WHERE NOT superseded`). Figures are SI units by their names.
        """
        from perfdb.db.session import reading_current, store_url
        from perfdb.queries import sql

        with reading_current(store_url(self._db)) as connection:
            found = sql.select(connection, statement, MOST_ROWS)
        rows = [dict(zip(found.columns, map(_plain, row), strict=True)) for row in found.rows]
        return {"rows": rows, "more": found.more}


def _plain(value: object) -> object:
    """A cell as JSON has it; bytes, such as those of kept files, by their number."""
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return value if isinstance(value, str | int | float | None) else str(value)


def _records(frame: Any) -> list[dict[str, object]]:
    """The rows of a DataFrame without what is unknown: most columns of most rows are empty."""
    return [row.dropna().to_dict() for _, row in frame.astype(object).iterrows()]


def _page(rows: Sequence[object], offset: int) -> Mapping[str, object]:
    """At most MOST_ROWS of the rows, and how many there are."""
    return {"total": len(rows), "offset": offset, "rows": rows[offset : offset + MOST_ROWS]}
