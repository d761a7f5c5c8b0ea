"""A real Slurm on this machine: two virtual nodes, in a folder and on ports of its own; as root.

`python -m tests.slurm.service FOLDER` starts one and says how to use it, until Ctrl-C.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
PACKAGES = "munge slurmctld slurmd slurm-client slurm-wlm-basic-plugins"
ACCOUNTING_PACKAGES = "slurmdbd slurm-wlm-mysql-plugin mariadb-server"
STARTED_S = 30
PYXIS = Path(__file__).with_name("pyxis_options.c")
"""Pyxis is not to be had here: a plugin takes its options, so that srun parses them."""

CONF = """\
ClusterName=perfdb
FirstJobId={first_job}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/{accounting}
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
ReturnToService=2
SlurmdTimeout={slurmd_timeout_s}
SlurmctldTimeout=30
InactiveLimit=0
KillWait=3
MessageTimeout=4
MinJobAge={min_job_age_s}
SchedulerParameters=sched_interval=1,bf_interval=1,default_queue_depth=1000
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4 RealMemory=8000 Gres=gpu:h100:8
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=4 RealMemory=8000 Gres=gpu:h100:8
PartitionName=batch Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""  # noqa: E501


DATABASE = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={ports[3]}
SlurmUser=root
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={ports[4]}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm
"""
USER = "create user slurm@'{host}' identified by 'slurm'; grant all on slurm.* to slurm@'{host}';"


def why_not() -> str | None:
    """Why no Slurm can be started here; None if one can."""
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        return f"no {', '.join(missing)} here: apt-get install {PACKAGES}"
    return None if os.geteuid() == 0 else "the daemons of the test Slurm are started as root"


def without_accounting() -> str | None:
    """Why no Slurm with accounting can be started here; None if one can."""
    names = ("slurmdbd", "mariadbd", "mariadb-install-db", "mariadb")
    if missing := [name for name in names if shutil.which(name) is None]:
        return f"no {', '.join(missing)} here: apt-get install {ACCOUNTING_PACKAGES}"
    return None


def without_pyxis() -> str | None:
    """Why the options of pyxis cannot be tried here; None if they can."""
    if shutil.which("gcc") is None or not Path("/usr/include/slurm/spank.h").is_file():
        return "no gcc, or no headers of Slurm here: apt-get install gcc libc6-dev libslurm-dev"
    return None


@dataclass(frozen=True)
class TestCluster:
    """A Slurm that runs. `start` and `stop` are of its controller and its nodes, by their names."""

    __test__ = False
    folder: Path

    @property
    def variables(self) -> dict[str, str]:
        """The environment in which Slurm's programs speak to this one."""
        return {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def run(self, *command: str) -> str:
        """What a program of Slurm prints."""
        done = subprocess.run(
            command, env=self.variables, capture_output=True, text=True, check=True
        )
        return done.stdout

    def start(self, daemon: str) -> None:
        """Start `slurmctld`, or the slurmd of a node."""
        self.run(*(["slurmctld"] if daemon == "slurmctld" else ["slurmd", "-N", daemon]))

    def stop(self, daemon: str) -> None:
        """End `slurmctld`, or the slurmd of a node, and wait for it; kill one that hangs."""
        name = daemon if daemon == "slurmctld" else f"slurmd-{daemon}"
        with suppress(FileNotFoundError, ProcessLookupError, ValueError):
            number = int((self.folder / f"{name}.pid").read_text())
            for sent in (signal.SIGTERM, signal.SIGKILL):
                os.kill(number, sent)
                with suppress(TimeoutError):
                    until(lambda: has_ended(number), seconds=15)
                    return

    def ready(self) -> bool:
        """Whether the controller answers and both nodes are idle."""
        sinfo = ["sinfo", "-h", "-N", "-o", "%T"]
        done = subprocess.run(
            sinfo, env=self.variables, capture_output=True, text=True, check=False
        )
        return ["idle", "idle"] == done.stdout.split()


def has_ended(number: int) -> bool:
    """Whether a process is gone, or waits only for its parent to notice."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def until(what: Callable[[], object], seconds: float = STARTED_S) -> None:
    """Wait until a function says true. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds} s")
        time.sleep(0.05)


@contextmanager
def started(
    folder: Path, min_job_age_s: int = 300, *, accounting: bool = False
) -> Iterator[TestCluster]:
    """A Slurm in a folder of short path; its daemons are gone afterwards."""
    cluster = TestCluster(folder)
    _configure(folder, min_job_age_s, accounting=accounting)
    with ExitStack() as stack:
        munge, socket_path = folder / "munge", folder / "munge" / "socket"
        stack.enter_context(_process(
            "munged", "--foreground", "--force", f"--key-file={munge}/key",
            f"--socket={socket_path}", f"--pid-file={munge}/pid", f"--seed-file={munge}/seed",
            f"--log-file={munge}/log",
        ))  # fmt: skip
        until(socket_path.exists)
        if accounting:
            stack.enter_context(_accounts(cluster))
        for daemon in ("slurmctld", "n1", "n2"):
            stack.callback(cluster.stop, daemon)
            cluster.start(daemon)
        stack.callback(_cancel_all, cluster)
        until(cluster.ready)
        yield cluster


@contextmanager
def _process(*command: str, **options: Any) -> Iterator[None]:  # of Popen
    child = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options
    )
    try:
        yield
    finally:
        child.terminate()
        child.wait()


@contextmanager
def _accounts(cluster: TestCluster) -> Iterator[None]:
    """A database of its own, and a slurmdbd that writes there."""
    data = cluster.folder / "mysql"
    data.mkdir()
    shutil.chown(data, "mysql")
    cluster.run("mariadb-install-db", "--no-defaults", "--user=mysql", f"--datadir={data}",
                "--auth-root-authentication-method=normal", "--skip-test-db")  # fmt: skip
    port = next(line for line in (cluster.folder / "slurmdbd.conf").read_text().splitlines()
                if line.startswith("StoragePort=")).partition("=")[2]  # fmt: skip
    with _process("mariadbd", "--no-defaults", "--user=mysql", f"--datadir={data}",
                  "--bind-address=127.0.0.1", f"--port={port}",
                  f"--socket={data}/socket"):  # fmt: skip
        until((data / "socket").exists)
        users = "".join(USER.format(host=host) for host in ("127.0.0.1", "localhost"))
        cluster.run("mariadb", "--no-defaults", f"--socket={data}/socket", "--user=root",
                    f"--execute=create database slurm; {users}")  # fmt: skip
        with _process("slurmdbd", "-D", env=cluster.variables):
            until(lambda: _says(cluster, "sacctmgr", "--noheader", "show", "cluster") is not None)
            cluster.run("sacctmgr", "--immediate", "add", "cluster", "perfdb")
            yield


def _says(cluster: TestCluster, *command: str) -> str | None:
    with suppress(subprocess.CalledProcessError):
        return cluster.run(*command)
    return None


def _cancel_all(cluster: TestCluster) -> None:
    _says(cluster, "scancel", "--quiet", "--user=root")


def _configure(folder: Path, min_job_age_s: int, *, accounting: bool) -> None:
    for name in ("state", "munge", "dev"):
        (folder / name).mkdir()
    (folder / "munge").chmod(0o755)
    key = folder / "munge" / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    for number in range(8):  # as null is: a GPU that nobody computes on
        os.mknod(folder / "dev" / f"nvidia{number}", 0o20666, os.makedev(1, 3))
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(5)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    host = socket.gethostname().split(".")[0]
    kind = (
        f"slurmdbd\nAccountingStorageHost=127.0.0.1\nAccountingStoragePort={ports[3]}\n"
        f"AccountingStoragePass={folder}/munge/socket"  # so Slurm names the socket there
    )
    # A busy machine answers late: a node is taken for failed only where a test has it fail.
    slurmd_timeout_s = 20 if accounting else 300
    # No job of two clusters at once has the same number, up to a hundred jobs of each.
    conf = CONF.format(folder=folder, host=host, ports=ports, first_job=101 * ports[0],
                       min_job_age_s=min_job_age_s, slurmd_timeout_s=slurmd_timeout_s,
                       accounting=kind if accounting else "none")  # fmt: skip
    (folder / "slurm.conf").write_text(conf)
    if accounting:
        database = folder / "slurmdbd.conf"
        database.write_text(DATABASE.format(folder=folder, host=host, ports=ports))
        database.chmod(0o600)
    gpus = f"Name=gpu Type=h100 File={folder}/dev/nvidia[0-7]\n"
    (folder / "gres.conf").write_text(f"NodeName=n1 {gpus}NodeName=n2 {gpus}")
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    if without_pyxis() is None:
        made = folder / "pyxis_options.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", made, PYXIS], check=True)
        (folder / "plugstack.conf").write_text(f"required {made}\n")


if __name__ == "__main__":
    with started(Path(sys.argv[1])) as made:
        sys.stdout.write(f"export SLURM_CONF={made.folder}/slurm.conf\n")
        sys.stdout.flush()
        with suppress(KeyboardInterrupt):
            signal.pause()
