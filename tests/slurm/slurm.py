"""A private Slurm: munged, slurmctld and a slurmd per node, in a folder, on free ports of the loopback addresses that
are the nodes' names. Standard library only."""

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time

NODES = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
NEEDED = ["munged", "slurmctld", "slurmd", "srun", "sinfo", "scancel"]

CONFIGURATION = """\
ClusterName=lockstep
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
SlurmdSpoolDir={folder}/%n
TmpFS={folder}/%n
StateSaveLocation={folder}/state
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def find(name):
    """Finds a daemon, also in folders outside a user's PATH."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def missing():
    return [name for name in NEEDED if not find(name)]


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Slurm:
    def __init__(self, folder):
        self.folder = folder
        os.chmod(folder, 0o755)  # munged requires a reachable socket
        self.daemons = []
        self.environment = {"SLURM_CONF": os.path.join(folder, "slurm.conf")}
        ports = free_ports(1 + len(NODES))
        nodes = [f"NodeName={node} NodeHostname=localhost NodeAddr={node} Port={port} CPUs=4 State=UNKNOWN"
                 for node, port in zip(NODES, ports[1:])]
        with open(self.environment["SLURM_CONF"], "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(port=ports[0], user=getpass.getuser(), folder=folder, nodes="\n".join(nodes)))
        with open(os.path.join(folder, "cgroup.conf"), "w", encoding="utf-8") as file:
            # Not used, but without this line daemons end if control groups are missing or read-only.
            file.write("CgroupPlugin=cgroup/v1\n")
        for node in NODES:
            os.makedirs(os.path.join(folder, node))
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self):
        key = os.path.join(self.folder, "munge.key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(os.urandom(128))
        where = {name: f"--{name}={self.folder}/munge.{name.split('-')[0]}"
                 for name in ("socket", "pid-file", "log-file", "seed-file")}
        self._daemon("munged", "--foreground", f"--key-file={key}", "--num-threads=1", *where.values())
        self._wait("munged", lambda: os.path.exists(os.path.join(self.folder, "munge.socket")))
        self._daemon("slurmctld", "-D", "-c")
        for node in NODES:
            self._daemon("slurmd", "-D", "-N", node)
        self._wait("nodes", lambda: self.command("sinfo", "--noheader", "-N", "-o", "%T").split() == ["idle"] * len(NODES))

    def _daemon(self, name, *arguments):
        log = os.path.join(self.folder, f"{name}-{len(self.daemons)}.out")
        with open(log, "wb") as out:
            self.daemons.append(subprocess.Popen([find(name), *arguments], cwd=self.folder, stdin=subprocess.DEVNULL,
                                                 stdout=out, stderr=subprocess.STDOUT,
                                                 env={**os.environ, **self.environment}))

    def command(self, name, *arguments):
        return subprocess.run([find(name), *arguments], env={**os.environ, **self.environment}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=240, check=False).stdout

    def _wait(self, what, condition):
        deadline = time.monotonic() + 240
        while not condition():
            ended = [daemon.args[0] for daemon in self.daemons if daemon.poll() is not None]
            if ended or time.monotonic() > deadline:
                raise AssertionError(f"{what}: not there; ended: {ended}\n{self.told()}")
            time.sleep(0.1)

    def told(self):
        """Returns the ends of all logs."""
        texts = []
        for name in sorted(os.listdir(self.folder)):
            if name.endswith((".log", ".out")):
                with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as file:
                    texts.append(f"--- {name}\n{file.read()[-2000:]}")
        return "\n".join(texts)

    def stop(self):
        """Stops jobs first, then the nodes, the controller and munged."""
        if len(self.daemons) > 1:
            self.command("scancel", "--user", getpass.getuser(), "--signal=KILL")
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(60)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self.daemons = []
