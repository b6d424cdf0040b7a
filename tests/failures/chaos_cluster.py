"""The clusters of a chaos run: under the launcher on emulated nodes, or started by hand in network namespaces with etcd.
Their roles can be killed, stopped and cut off, and their disk can be filled."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

from chaos_plan import Line
from cluster_job import PROGRAM, Job, _read

DISK_KILOBYTES = 64_000
RESTART = 0.3  # seconds until a role that was started by hand is started again
ETCD_RESTART = 2
MOST_FAILURES = 100  # exit codes that are not of a signal: full disks, and what goes wrong


def ip(*words, program="ip", check=True):
    return subprocess.run([program, *words], check=check, capture_output=True, text=True)


def enter_private_mounts():
    """Starts this script again where its mounts and its claims of cores are its own; they vanish with it."""
    if os.environ.get("LOCKSTEP_CHAOS_PRIVATE") or os.geteuid() != 0:
        return
    private = ["unshare", "--mount", "--propagation", "private"]
    with contextlib.suppress(OSError):
        if subprocess.run([*private, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], check=False, capture_output=True).returncode == 0:
            os.environ["LOCKSTEP_CHAOS_PRIVATE"] = "1"
            os.execvp(private[0], [*private, sys.executable, *sys.argv])


def allowed(kinds):
    """Returns the kinds of faults that this machine allows; says which ones it does not."""
    possible = set(kinds)
    if not os.environ.pop("LOCKSTEP_CHAOS_PRIVATE", ""):
        possible -= {"cut", "fill"}
        print("without cuts and full disks: they need root and mounts", flush=True)
        return [kind for kind in kinds if kind in possible]
    os.makedirs("/run/lockstep", exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=700", "tmpfs", "/run/lockstep"], check=True)
    if "cut" in kinds:
        told = json.loads(subprocess.run([PROGRAM, "info", "--json"], check=True, capture_output=True, text=True).stdout)
        if told["emulate"] != "yes":
            possible.discard("cut")
            print(f"without cuts: {told['emulate']}", flush=True)
    return [kind for kind in kinds if kind in possible]


class Disk:
    """A small disk of its own for runs, if mounting is possible."""

    def __init__(self, folder, small):
        self.path = os.path.join(folder, "disk")
        self.filler = os.path.join(self.path, "filler")
        self.small = small
        os.mkdir(self.path)
        if small:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_KILOBYTES}k", "tmpfs", self.path], check=True)

    def fill(self):
        with contextlib.suppress(OSError), open(self.filler, "wb", buffering=0) as file:
            for size in (1 << 20, 4096):
                with contextlib.suppress(OSError):
                    while file.write(bytes(size)):
                        pass

    def free(self):
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.filler)

    def remove(self):
        if self.small:
            subprocess.run(["umount", "-l", self.path], check=False)


class Logs:
    """The lines of all processes, each with the time at which it was seen, a few milliseconds after it was printed."""

    def __init__(self):
        self.files = {}
        self.lines = []

    def follow(self, source, path):
        self.files[path] = [source, 0, b""]

    def look(self):
        now = time.monotonic()
        for path, state in self.files.items():
            source, at, rest = state
            with contextlib.suppress(OSError):
                if os.path.getsize(path) > at:
                    with open(path, "rb") as file:
                        file.seek(at)
                        new = file.read()
                    *whole, state[2] = (rest + new).split(b"\n")
                    state[1] = at + len(new)
                    self.lines += [Line(now, source, text.decode(errors="replace")) for text in whole]

    def told(self, last=60):
        return "\n".join(f"  {line.source}: {line.text}" for line in self.lines[-last:])


class Links:
    """The links of nodes that a switch connects: namespaces PREFIXswitch and PREFIXnodeK, with portK and eth0."""

    def __init__(self, prefix):
        self.prefix = prefix

    def set_up(self, node, up):
        ip("-n", self.prefix + "switch", "link", "set", f"port{node}", "up" if up else "down", check=False)

    def hurry(self, nodes):
        """Removes the limits of all links."""
        for node in range(1, nodes + 1):
            ip("-n", self.prefix + "switch", "qdisc", "del", "dev", f"port{node}", "root", program="tc", check=False)
            ip("-n", f"{self.prefix}node{node}", "qdisc", "del", "dev", "eth0", "root", program="tc", check=False)


class Namespaces(Links):
    """Nodes made here: 10.88.0.K each. `rate`: of their links."""

    def __init__(self, nodes, rate):
        super().__init__(f"lockstep-chaos-{os.getpid()}-")
        self.names = [self.prefix + "switch"] + [f"{self.prefix}node{node}" for node in range(1, nodes + 1)]
        for name in self.names:
            ip("netns", "add", name)
        switch = self.names[0]
        ip("-n", switch, "link", "add", "switch", "type", "bridge", "forward_delay", "0")
        ip("-n", switch, "link", "set", "switch", "up")
        for node, name in enumerate(self.names[1:], 1):
            ip("link", "add", f"port{node}", "netns", switch, "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("-n", switch, "link", "set", f"port{node}", "master", "switch", "up")
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "addr", "add", f"10.88.0.{node}/24", "dev", "eth0")
            for where, device in ((switch, f"port{node}"), (name, "eth0")):
                ip("-n", where, "qdisc", "add", "dev", device, "root", "tbf", "rate", rate, "burst", "128kb", "latency",
                   "50ms", program="tc")

    def remove(self):
        for name in self.names:
            ip("netns", "del", name, check=False)


class Launched:
    """A cluster that the launcher starts, and whose roles it restarts. `rate`: of the links of emulated nodes, if any."""

    def __init__(self, folder, words, rate):
        self.logs = Logs()
        self.job = Job(folder, [*words, *(["--emulate", f"rate={rate}"] if rate else [])])
        self.logs.follow("launcher", self.job.log)
        self.logs.follow("launcher", self.job.errors)
        self.emulated = bool(rate)

    def tick(self):
        self.logs.look()

    def over(self):
        return self.job.over()

    def code(self):
        return self.job.process.returncode

    def pid(self, role):
        return self.job.roles().get(role)

    def links(self):
        mine = f"lockstep-{self.job.process.pid}-"
        found = [name for name in os.listdir("/run/netns") if name.startswith(mine) and name.endswith("-switch")]
        return Links(found[0].removesuffix("switch")) if found else None

    def node(self, role):
        """Returns the number of the role's node; none if the role is not there."""
        for word in _read(f"/proc/{self.pid(role)}/environ").split(b"\0"):
            if word.startswith(b"LOCKSTEP_NODE=node"):
                return int(word.removeprefix(b"LOCKSTEP_NODE=node"))
        return None

    def hurry(self, roles):
        if self.emulated and self.links():
            self.links().hurry(len(roles))

    def left(self):
        """Returns what must not be there after the end."""
        found = [f"process {pid}" for pid in self.job.everyone()]
        mine = f"lockstep-{self.job.process.pid}-"
        for folder in ("/run/netns", "/run/lockstep"):
            with contextlib.suppress(OSError):
                found += [f"{folder}/{name}" for name in os.listdir(folder) if name.startswith(mine)]
        for parent, folders, _ in os.walk("/sys/fs/cgroup"):
            found += [f"{parent}/{name}" for name in folders if name.startswith(mine)]
        return found

    def end(self):
        self.job.end()


class ByHand:
    """Workers, an evaluator and etcd, each on its own node; a role that dies is started again with the same command."""

    def __init__(self, folder, words, workers, rate):
        self.folder = folder
        self.words = words
        self.logs = Logs()
        self.jobs = {}
        self.ended = {}
        self.started = []
        self.nodes = {f"worker:{i}": i + 1 for i in range(workers)} | {"evaluator:0": workers + 1, "etcd": workers + 2}
        self.spaces = Namespaces(len(self.nodes), rate)
        self.address = {role: f"10.88.0.{node}" for role, node in self.nodes.items()}
        with open(os.path.join(folder, "cluster.yaml"), "w", encoding="utf-8") as file:
            file.write("worker: [" + ", ".join(self.address[f"worker:{i}"] + ":4000" for i in range(workers)) +
                       f"]\nevaluator: [{self.address['evaluator:0']}:4000]\n")
        self.failures = 0
        self.back = {}  # when a role that ended is started again
        self.etcd = self.start_etcd()
        for role in self.nodes:
            if role != "etcd":
                self.start(role)

    def inside(self, role):
        return ["ip", "netns", "exec", f"{self.spaces.prefix}node{self.nodes[role]}"]

    def start_etcd(self):
        client, peer = (f"http://{self.address['etcd']}:{port}" for port in (2379, 2380))
        log = open(os.path.join(self.folder, "etcd.txt"), "ab")  # pylint: disable=consider-using-with
        with log:
            return subprocess.Popen([*self.inside("etcd"), "etcd", f"--data-dir={self.folder}/etcd",
                                     f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
                                     f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
                                     f"--initial-cluster=default={peer}", "--unsafe-no-fsync", "--logger=zap",
                                     "--log-level=fatal"], stdout=log, stderr=log)

    def start(self, role):
        job = Job(self.folder, [*self.words, "--cluster", "cluster.yaml", f"--task={role}", "--insecure",
                                f"--membership=etcd://{self.address['etcd']}:2379"], self.inside(role))
        self.jobs[role] = job
        self.started.append(job)
        self.logs.follow(role, job.log)
        self.logs.follow(role, job.errors)

    def tick(self):
        self.logs.look()
        now = time.monotonic()
        for role, job in list(self.jobs.items()):
            code = job.process.poll()
            if code == 0:
                self.ended[role] = self.jobs.pop(role)
            elif code is not None and now >= self.back.setdefault(role, now + RESTART):
                del self.back[role]
                self.failures += code > 0
                assert self.failures <= MOST_FAILURES, f"roles fail without end:\n{self.logs.told()}"
                self.start(role)
        if self.etcd.poll() is not None and now >= self.back.setdefault("etcd", now + ETCD_RESTART):
            del self.back["etcd"]
            self.etcd = self.start_etcd()

    def over(self):
        return not self.jobs

    def code(self):
        return 0 if not self.jobs else None

    def pid(self, role):
        process = self.etcd if role == "etcd" else self.jobs[role].process if role in self.jobs else None
        return process.pid if process and process.poll() is None else None

    def links(self):
        return self.spaces

    def node(self, role):
        return self.nodes[role]

    def hurry(self, _):
        self.spaces.hurry(len(self.nodes))

    def left(self):
        self.stop_etcd()
        marks = {f"LOCKSTEP_TEST_JOB={job.mark}".encode() for job in self.started}
        found = [name for name in os.listdir("/proc") if name.isdigit() and
                 marks & set(_read(f"/proc/{name}/environ").split(b"\0"))]
        return [f"process {pid}" for pid in found]

    def stop_etcd(self):
        if self.etcd.poll() is None:
            os.kill(self.etcd.pid, signal.SIGCONT)
            self.etcd.kill()
            self.etcd.wait()

    def end(self):
        for job in self.jobs.values():
            job.process.kill()
            job.process.wait(60)
        self.stop_etcd()
        self.spaces.remove()
