"""`perfdb` without the time that its imports take: `python -m tests.preloaded FOLDER`.

A server that has imported everything forks for each command; FOLDER/perfdb asks it to.
"""

import importlib
import json
import os
import pkgutil
import signal
import socket
import sys
import tempfile
from pathlib import Path

import perfdb
import runner
from perfdb import cli

CLIENT = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    asked = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(asked).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(asked)
    code = server.recv(1)
sys.exit(code[0] if code else 70)
"""


def main() -> None:
    """Serve until the process is ended; `ready` is printed when commands may come."""
    address = Path(sys.argv[1]) / "socket"
    for package in (perfdb, runner):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith(("runner.megatron", "runner.automodel")):
                importlib.import_module(module.name)
    client = Path(sys.argv[1]) / "perfdb"
    client.write_text(CLIENT.format(python=sys.executable, address=str(address)))
    client.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(address))
        listening.listen()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            connection, _ = listening.accept()
            if not os.fork():
                listening.close()
                answer(connection)
            connection.close()


def answer(connection: socket.socket) -> None:
    """Run the command that a client asks for, in its folder, environment and streams."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, streams, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as asked:
        arguments, folder, environment = json.loads(asked.read(int.from_bytes(head, "big")))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    sys.argv = ["perfdb", *arguments]
    sys.modules["__main__"].__package__ = None  # click takes the name of the program from it
    code = 1
    try:
        cli.main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    sys.stdout.flush()
    sys.stderr.flush()
    connection.sendall(bytes([code]))
    os._exit(0)


if __name__ == "__main__":
    main()
