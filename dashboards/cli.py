"""`perfdb dashboard`: serve the pages on this machine, and ask nothing of any other."""

import os
import socket
from collections.abc import Sequence
from errno import EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT
from pathlib import Path

import click

from perfdb.cli.options import db_option
from perfdb.db.session import store_url
from perfdb.errors import Diagnostic, InputError, PerfdbError

APP = Path(__file__).with_name("app.py")

SETTINGS = {
    "browser.gatherUsageStats": "false",  # else the browser calls data.streamlit.io
    "server.showEmailPrompt": "false",
    "server.fileWatcherType": "none",
    "client.toolbarMode": "viewer",
    "client.showErrorLinks": "false",
    "logger.hideWelcomeMessage": "true",
    "theme.light.primaryColor": "#0072B2",
    "theme.dark.primaryColor": "#56B4E9",
}
"""Passed on the command line, so that an installed perfdb has them too. A named server.address
(below) also keeps Streamlit from asking a service on the internet for this machine's address."""


@click.command()
@db_option
@click.option("--host", default="localhost", show_default=True, help="The address to listen on.")
@click.option("--port", metavar="PORT", default=8501, show_default=True,
              type=click.IntRange(1, 65535), help="The port to listen on.")  # fmt: skip
@click.option("--no-browser", "--headless", is_flag=True, help="Open no browser.")
def dashboard(db: str | None, host: str, port: int, no_browser: bool) -> None:
    """Open the dashboard: compare releases, explore results, look into runs.

    It only reads the store, and shows what is ingested while it runs at the next click.
    """
    try:
        from streamlit.web import cli as streamlit
    except ModuleNotFoundError as error:
        remedy = "pip install 'perfdb[dashboard]' brings it"
        raise PerfdbError(
            f"the dashboard needs {error.name}, which is missing; {remedy}"
        ) from error
    check_free(host, port)
    os.environ["PERFDB_URL"] = store_url(db).render_as_string(hide_password=False)
    settings = SETTINGS | {
        "server.address": host,
        "server.port": str(port),
        "server.headless": str(no_browser).lower(),
    }
    click.echo(f"perfdb dashboard: http://{host}:{port} (Ctrl-C ends it)", err=True)
    options = [f"--{name}={value}" for name, value in settings.items()]
    streamlit.main(["run", str(APP), *options], standalone_mode=False)


def check_free(host: str, port: int) -> None:
    """Raises InputError where this machine has no such address, or cannot listen on the port."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise InputError(_no_address(host, error)) from error
    reasons = [_unbound(how, address, port) for *how, _, address in found]
    if reasons[0] and all(reasons):
        raise InputError(_no_address(host, reasons[0]))


def _unbound(how: Sequence[int], address: tuple[object, ...], port: int) -> OSError | None:
    """Why this machine lacks the address; of several that `localhost` has one may be missing."""
    try:
        with socket.socket(*how) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno in {EADDRNOTAVAIL, EAFNOSUPPORT}:
            return error
        what = "is in use" if error.errno == EADDRINUSE else f"cannot be used: {error.strerror}"
        raise InputError(Diagnostic("--port", f"{port} {what}", remedy="name another")) from error
    return None


def _no_address(host: str, error: Exception) -> Diagnostic:
    why = error.strerror if isinstance(error, OSError) else str(error)
    remedy = "name one, such as localhost, or 0.0.0.0 for all of them"
    return Diagnostic("--host", f"{host!r} is no address of this machine: {why}", remedy=remedy)
