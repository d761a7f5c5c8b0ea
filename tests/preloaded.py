"""`perfdb`, torchrun and its workers without the time that their imports take.

`PYTHONPATH=. python -P tests/preloaded.py FOLDER PID` imports everything once and forks for each
command, until process PID is gone. FOLDER/bin/perfdb and FOLDER/python ask it to; with FOLDER on
PYTHONPATH, torchrun does, and so do its workers. FOLDER/alone/python asks for `-P -m perfdb` alone,
which starts all else anew. Each is the real program in a process of its own.
"""

import atexit
import gc
import importlib
import inspect
import json
import os
import pkgutil
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import perfdb
import runner
from perfdb import cli

CLIENT = """\
#!{python} -IS
import json, os, signal, socket, sys
what = [word for word in sys.argv[1:] if word != "-u"][:2]
if sys.argv[0].endswith("/python") and what[:1] != ["-c"] and what not in {served}:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    asked = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(asked).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(asked)
    signal.signal(signal.SIGTERM, lambda *_: server.shutdown(socket.SHUT_WR))
    code = server.recv(1)
sys.exit(code[0] if code else 70)
"""
TORCHRUN = """\
import os, sys
os.execv({client!r}, [{client!r}, "-m", "torch.distributed.run", *sys.argv[1:]])
"""
MODULES = ("runner.megatron.train", "runner.megatron.fake_world", "torch.distributed.run")
"""What `python -m` does not wait for."""
WITH_TORCH = ("runner.megatron.train", "torch.distributed.run", "torch._dynamo")
SLOW = ("runner.megatron", "runner.automodel", "runner.node_check")
"""They import torch."""


def main(folder: Path, process: int) -> None:
    """Serve until a process is gone, in the background as soon as commands may come."""
    gc.disable()
    import_everything()
    inspect.stack()  # as torchrun does often, which seeks the module of each file in all modules
    gc.freeze()  # what each process begins with is searched for garbage in none
    gc.enable()
    address = folder / "socket"
    write_clients(folder, address)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(address))
        listening.listen()
        listening.settimeout(1)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        if os.fork():
            os._exit(0)
        while Path(f"/proc/{process}").exists():
            with suppress(TimeoutError):
                connection, _ = listening.accept()
                if not os.fork():
                    listening.close()
                    answer(connection, folder)
                connection.close()
    shutil.rmtree(folder)


def import_everything() -> None:
    """What a command may need, and where there is Megatron-Core what a training needs."""
    for package in (perfdb, runner):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith(SLOW):
                importlib.import_module(module.name)
    if find_spec("torch") and find_spec("megatron"):
        for name in WITH_TORCH:
            importlib.import_module(name)


def write_clients(folder: Path, address: Path) -> None:
    """A `perfdb`, two of `python`, and a package `torch` that has torchrun alone."""
    modules = [["-m", name] for name in MODULES]
    for name, served in (("bin/perfdb", []), ("python", modules), ("alone/python", [["-P", "-m"]])):
        client = folder / name
        client.parent.mkdir(exist_ok=True)
        filled = CLIENT.format(python=sys.executable, served=served, address=str(address))
        client.write_text(filled)
        client.chmod(0o755)
    stand_in = folder / "torch" / "distributed"
    stand_in.mkdir(parents=True)
    for package_folder in (stand_in, stand_in.parent):
        (package_folder / "__init__.py").touch()
    (stand_in / "run.py").write_text(TORCHRUN.format(client=str(folder / "python")))


def answer(connection: socket.socket, folder: Path) -> None:
    """Run the command that a client asks for, in its folder, environment and streams."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    connection.setblocking(True)
    head, streams, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as asked:
        arguments, cwd, environment = json.loads(asked.read(int.from_bytes(head, "big")))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    if arguments[0] != str(folder / "alone" / "python"):
        sys.executable = str(folder / "python")
    tempfile.tempdir = None
    threading.Thread(target=end_with, args=(connection,), daemon=True).start()
    code = exit_code(arguments)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    connection.sendall(bytes([code]))
    os._exit(0)


def end_with(connection: socket.socket) -> None:
    """Get the signal that the client got, or that would end it."""
    connection.recv(1)
    os.kill(os.getpid(), signal.SIGTERM)


def exit_code(arguments: Sequence[str]) -> int:
    """Do what a client was called for, and end as the interpreter does."""
    name, *words = arguments
    if words[:3] == ["-P", "-m", "perfdb"]:
        name, words = "perfdb", words[3:]
    try:
        if Path(name).name == "perfdb":
            sys.argv = ["perfdb", *words]
            sys.modules["__main__"].__package__ = None  # click takes the program's name from it
            cli.main()
        else:
            run_module(words)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001  # as the interpreter does
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def run_module(words: Sequence[str]) -> None:
    """What `python` does with `-u -m MODULE ARGUMENT…`, or with `-c CODE`."""
    option, what, *arguments = [word for word in words if word != "-u"]
    if option == "-c":
        sys.argv = ["-c", *arguments]
        exec(what, {"__name__": "__main__"})
        return
    if "OMP_NUM_THREADS" in os.environ and "torch" in sys.modules:  # torch was loaded without it
        sys.modules["torch"].set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    found = find_spec(what)
    assert found
    sys.argv = [str(found.origin), *arguments]
    # Of no file or module that a process which it spawns would load again, with torch.
    sys.modules["__main__"] = module = ModuleType("__main__")
    exec(found.loader.get_code(what), vars(module))  # type: ignore[union-attr]  # a file's


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
