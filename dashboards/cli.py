"""`perfdb dashboard`: serve the pages on this machine, and ask nothing of any other."""

import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from errno import EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

import click

from perfdb import catalog
from perfdb.cli.options import db_option, examples
from perfdb.db.session import store_url
from perfdb.errors import Diagnostic, InputError, PerfdbError

APP = Path(__file__).with_name("app.py")

SETTINGS = {
    "browser.gatherUsageStats": "false",  # else the browser calls data.streamlit.io
    "server.showEmailPrompt": "false",
    "server.fileWatcherType": "none",
    "client.toolbarMode": "viewer",
    "client.showErrorLinks": "false",
    "client.showErrorDetails": "none",  # the log has them; a visitor needs no paths
    "server.maxUploadSize": "64",  # MiB, as MOST_MIB of dashboards/upload.py
    "logger.hideWelcomeMessage": "true",
    "theme.light.primaryColor": "#0072B2",
    "theme.dark.primaryColor": "#56B4E9",
}
"""Passed on the command line, so that an installed perfdb has them too. A named server.address
(below) also keeps Streamlit from asking a service on the internet for this machine's address."""


IMPORTED = ("pandas", "perfdb.compare.across", "perfdb.ingest")
"""What takes long to import: it is there before the first visitor."""


@click.command(epilog=examples("perfdb dashboard", "perfdb dashboard --port 8600 --no-browser"))
@db_option
@click.option("--host", default="localhost", show_default=True, help="The address to listen on.")
@click.option("--port", metavar="PORT", default=8501, show_default=True,
              type=click.IntRange(1, 65535), help="The port to listen on.")  # fmt: skip
@click.option("--allow-host", "names", metavar="NAME", multiple=True, help="A host name that "
              "browsers may use, such as a proxy's, or * for any. May be repeated.")  # fmt: skip
@click.option("--base-path", metavar="PATH", default="", help="The path under a reverse proxy, "
              "such as perfdb/dashboard.")  # fmt: skip
@click.option("--no-browser", "--headless", is_flag=True, help="Do not open a browser.")
def dashboard(
    db: str | None, names: Sequence[str], base_path: str, *, no_browser: bool, **where: Any
) -> None:
    """Open the dashboard in a browser: releases, models, systems, runs, and your own files.

    The dashboard only reads the store. New results appear at the next click.
    """
    host, port = where["host"], where["port"]
    try:
        from streamlit.web import cli as streamlit
    except ModuleNotFoundError as error:
        remedy = "pip install 'perfdb[dashboard]' brings it"
        raise PerfdbError(
            f"the dashboard needs {error.name}, which is missing; {remedy}"
        ) from error
    check_free(host, port)
    catalog.systems(), catalog.models()  # what is wrong with perfdb.toml is said here, once
    os.environ["PERFDB_URL"] = store_url(db).render_as_string(hide_password=False)
    settings = SETTINGS | {
        "server.address": host,
        "server.port": str(port),
        "server.headless": str(no_browser).lower(),
        "server.baseUrlPath": base_path.strip("/"),
    }
    address = "/".join(filter(None, (f"http://{host}:{port}", base_path.strip("/"))))
    click.echo(f"perfdb dashboard: {address} (Ctrl-C ends it)", err=True)
    options = [f"--{name}={value}" for name, value in settings.items()]
    options += [f"--server.allowedHosts={name}" for name in sorted({*names, *_names(host)})]
    Thread(target=lambda: [*map(import_module, IMPORTED)], daemon=True).start()
    streamlit.main(["run", str(APP), *options], standalone_mode=False)


def _names(host: str) -> set[str]:
    """The names of this machine that a browser may call the dashboard by.

    Any other name is one that a hostile page has had point here, to read the store through a
    visitor's browser (DNS rebinding).
    """
    own = {host, "localhost", "127.0.0.1", "::1"}
    if host in {"0.0.0.0", "::"}:
        name = socket.gethostname()
        own |= {name, socket.getfqdn()}
        with suppress(OSError):
            own |= {str(address[0]) for *_, address in socket.getaddrinfo(name, None)}
    return own


def check_free(host: str, port: int) -> None:
    """Raises InputError where this machine has no such address, or cannot listen on the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (socket.gaierror, UnicodeError) as error:
        raise InputError(_no_address(host, error)) from error
    except OSError as error:
        if error.errno in {EADDRNOTAVAIL, EAFNOSUPPORT}:
            raise InputError(_no_address(host, error)) from error
        fault = "is in use" if error.errno == EADDRINUSE else f"cannot be used: {error.strerror}"
        raise InputError(Diagnostic("--port", f"{port} {fault}", remedy="name another")) from error


def _no_address(host: str, error: Exception) -> Diagnostic:
    why = error.strerror if isinstance(error, OSError) else str(error)
    remedy = "name one, such as localhost, or 0.0.0.0 for all of them"
    return Diagnostic("--host", f"{host!r} is no address of this machine: {why}", remedy=remedy)
