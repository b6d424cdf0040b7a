"""A cluster under test: the real program as a launcher or as single roles, its processes found and signalled, its run
directory read. Standard library only."""

import collections
import contextlib
import csv
import ctypes
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

PROGRAM = os.path.abspath(os.environ.get("LOCKSTEP_PROGRAM") or
                          os.path.join(os.path.dirname(__file__), "../../build/release/lockstep"))
MARK = "LOCKSTEP_TEST_JOB"
PATIENCE = 240  # seconds allowed for steps that take a few
LONGER = (1, 4, 16, 64)  # factors of epochs, if training ended before it was disturbed


class OverTooSoon(Exception):
    """The job ended before the test could disturb it."""


def eventually(condition, what, patience=PATIENCE):
    """Waits until the check returns a true value; returns it."""
    deadline = time.monotonic() + patience
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {patience} s: {what}")
        time.sleep(0.005)


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _is_zombie(pid):
    stat = _read(f"/proc/{pid}/stat")
    return not stat or stat[stat.rfind(b")") + 2 : stat.rfind(b")") + 3] in (b"Z", b"X")


class Run:
    """A run directory."""

    def __init__(self, path):
        self.path = path

    def file(self, name):
        return os.path.join(self.path, name)

    def summary(self):
        with open(self.file("summary.json"), encoding="utf-8") as file:
            return json.load(file)

    def rows(self, name="steps.csv"):
        """Reads the file as it is now: a reader of an open file that grows may miss its first line."""
        with open(self.file(name), encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file.read().splitlines()))

    def last_step(self):
        """Returns the last step in the log; 0 if there is none. Reads the end of the file alone, since tests ask often."""
        try:
            with open(self.file("steps.csv"), "rb") as file:
                column = file.readline().rstrip(b"\r\n").split(b",").index(b"step")
                file.seek(max(file.tell(), os.fstat(file.fileno()).st_size - 2000))
                lines = file.read().split(b"\n")[:-1]  # the last line may not be whole yet, as the first one here
        except (OSError, ValueError):
            return 0
        cells = [line.split(b",")[column:column + 1] for line in lines[-2:]]
        return max((int(cell[0]) for cell in cells if cell and cell[0].isdigit()), default=0)

    def losses(self):
        """Returns the results of each step, without times."""
        return [tuple(row[key] for key in ("step", "epoch", "loss", "accuracy", "learning_rate")) for row in self.rows()]

    def contributions(self):
        """Returns the parts of each version, in order: (version, [(member, examples, loss sum, batches)])."""
        made = []
        for row in self.rows("ps-0/contributions.csv"):
            version = int(row["version"])
            if row["row"] == "1":
                while made and made[-1][0] >= version:  # written again after a server died in between, or all went back
                    made.pop()
                made.append((version, []))
            batches = []
            for batch in row["batches"].split():
                of_pass, ranges = batch.split(":")
                batches.append((int(of_pass), [tuple(map(int, part.split("-"))) for part in ranges.split("+")]))
            made[-1][1].append((int(row["member"]), int(row["examples"]), float(row["loss_sum"]), batches))
        return made

    def checkpoints(self):
        folder = self.file("checkpoints")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return sorted(os.path.join(folder, name) for name in names if re.fullmatch(r"step-\d+\.ckpt", name))

    def checkpoint(self):
        """Returns header and payload of the newest checkpoint."""
        content = _read(self.checkpoints()[-1])
        header, payload = struct.unpack_from("<IQ", content, 12)
        return json.loads(content[24 : 24 + header]), content[24 + header : 24 + header + payload]


def _end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Job:
    """A process of the program and all its children."""

    def __init__(self, folder, words, prefix=()):
        self.folder = folder
        self.mark = uuid.uuid4().hex
        self.log = os.path.join(folder, f"log-{self.mark[:8]}.txt")
        self.errors = os.path.join(folder, f"err-{self.mark[:8]}.txt")
        environment = dict(os.environ, **{MARK: self.mark})
        environment.pop("TF_CONFIG", None)
        with open(self.log, "wb") as out, open(self.errors, "wb") as err:
            self.process = subprocess.Popen([*prefix, PROGRAM, *words], cwd=folder, env=environment, stdout=out,
                                            stderr=err, stdin=subprocess.DEVNULL,
                                            preexec_fn=_end_with_parent)  # no process outlives a killed test

    def output(self):
        return _read(self.log).decode()

    def error(self):
        return _read(self.errors).decode()

    def everyone(self):
        """Returns the numbers of all live processes of the job."""
        wanted = f"{MARK}={self.mark}".encode()
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        return [pid for pid in pids if wanted in _read(f"/proc/{pid}/environ").split(b"\0") and not _is_zombie(pid)]

    def roles(self):
        """Returns the live roles by name."""
        found = {}
        for pid in self.everyone():
            for word in _read(f"/proc/{pid}/cmdline").split(b"\0"):
                if word.startswith(b"--task="):
                    found[word[7:].decode()] = pid
        return found

    def over(self):
        return self.process.poll() is not None

    def role(self, name):
        """Waits for the process of a role; raises OverTooSoon if the job ends first."""
        def find():
            ended = self.over()
            pid = self.roles().get(name)
            if pid is None and ended and self.process.returncode == 0:
                raise OverTooSoon(self.told())
            assert pid or not ended, f"ended with {self.process.returncode}:\n{self.told()}"
            return pid
        return eventually(find, f"{name} runs")

    def signal(self, name, number):
        pid = self.role(name)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        return pid

    def wait_for(self, text, patience=PATIENCE, may_end=False):
        """Waits until the output has the text. If the job ends without it, the test fails, or raises OverTooSoon if allowed."""
        def said():
            ended = self.over()
            if text in self.output() + self.error():
                return True
            if ended and may_end and self.process.returncode == 0:
                raise OverTooSoon(self.told())
            assert not ended, f"ended with {self.process.returncode} without saying '{text}':\n{self.told()}"
            return False
        try:
            eventually(said, f"'{text}' in the output", patience)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.told()}") from None

    def kill(self, name):
        """Waits until its launcher has noticed; raises OverTooSoon if the job ends first."""
        died = f"{name} died: killed by signal 9 (Killed); restarting it"
        before = self.output().count(died)
        self.signal(name, signal.SIGKILL)

        def noticed():
            ended = self.over()
            if self.output().count(died) > before:
                return True
            if ended and self.process.returncode == 0:
                raise OverTooSoon(self.told())
            assert not ended, f"ended with {self.process.returncode}:\n{self.told()}"
            return False
        eventually(noticed, f"'{died}'")

    def told(self):
        return self.output() + self.error()

    def finish(self, patience=PATIENCE):
        try:
            return self.process.wait(patience)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {patience} s: {self.roles()}\n{self.told()}") from None

    def end(self):
        """Ends all processes, however the test went."""
        for pid in self.everyone():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(60)


class ClusterTest(unittest.TestCase):
    """Each test has a folder, where runs/ appears, and jobs that end with it."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lockstep-failures-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        seed = int(os.environ.get("LOCKSTEP_TEST_SEED", time.time_ns() % 1_000_000))
        self.random = random.Random(seed)
        print(f"{self.id()}: LOCKSTEP_TEST_SEED={seed}", flush=True)

    def start(self, words, prefix=()):
        job = Job(self.folder, words, prefix)
        self.addCleanup(job.end)
        return job

    def longer_until_in_time(self, attempt, epochs):
        """Calls `attempt(epochs)`, again with more epochs if training was over too soon."""
        for factor in LONGER:
            try:
                return attempt(factor * epochs)
            except OverTooSoon as over:
                print(f"{factor * epochs} epochs were over too soon", flush=True)
                last = over
                self.doCleanups()
                self.setUp()
        raise AssertionError(f"over too soon each time; the last one:\n{last}")

    def run_to_end(self, words, code=0):
        job = self.start(words)
        self.assertEqual(job.finish(), code, job.told())
        return job

    def run_of(self, name):
        return Run(os.path.join(self.folder, "runs", name))

    def expect_success(self, job, patience=PATIENCE):
        self.assertEqual(job.finish(patience), 0, job.told())
        self.expect_nobody_left(job)

    def expect_nobody_left(self, job):
        eventually(lambda: not job.everyone(), f"nobody left of {job.roles()}")

    def wait_for_step(self, job, run, step):
        """Waits until the servers are up (a role's status shows it long before a log is on the disk)."""
        def reached():
            ended = job.over()
            if run.last_step() >= step:
                return True
            if ended:
                raise AssertionError(f"ended with {job.process.returncode} before step {step}\n{job.told()}")
            return False
        eventually(reached, f"step {step}")

    def let_train(self, job, run, most):
        """Waits for 1 to `most` more steps; raises OverTooSoon if the job ends well first."""
        goal = run.last_step() + self.random.randint(1, most)

        def reached():
            ended = job.over()
            if run.last_step() >= goal:
                return True
            if ended and job.process.returncode == 0:
                raise OverTooSoon(job.told())
            assert not ended, f"ended with {job.process.returncode}:\n{job.told()}"
            return False
        eventually(reached, f"step {goal}")

    def pause_role(self, job, name):
        """Stops it for a second and continues it; returns false if the stop took too long on a busy machine."""
        pid = job.signal(name, signal.SIGSTOP)
        began = time.monotonic()
        time.sleep(1)
        with contextlib.suppress(ProcessLookupError):  # a launcher kills processes that are stopped for long
            os.kill(pid, signal.SIGCONT)
        return time.monotonic() - began < 2

    def expect_each_example_once(self, run, epochs, examples):
        """Checks that each example was applied once per pass, by the run's own record and by its sum."""
        seen = collections.defaultdict(list)
        for _, contributions in run.contributions():
            for _, _, _, batches in contributions:
                for of_pass, ranges in batches:
                    seen[of_pass].extend(ranges)
        for of_pass, ranges in sorted(seen.items()):
            at = 0
            for begin, end in sorted(ranges):
                self.assertEqual(begin, at, f"pass {of_pass}: {'twice' if begin < at else 'never'} from {min(at, begin)}"
                                            f" to {max(at, begin)}")
                at = end
            self.assertEqual(at, examples, f"pass {of_pass}")
        self.assertEqual(sorted(seen), list(range(epochs)))
        summary = run.summary()
        self.assertEqual(summary["examples"], epochs * examples, summary)

    def expect_accounted(self, run, examples):
        """Checks an all-reduce at any moment: the applied examples and those left in the newest checkpoint make whole
        passes; each step was logged at most once and in order."""
        summary = run.summary()
        header, _ = run.checkpoint()
        left = header["state"]["remainder"]
        missing = sum(end - begin for part in left["parts"] for begin, end in part["ranges"])
        self.assertEqual(header["state"]["examples"], left["next_pass"] * examples - missing, left)
        self.assertEqual(header["state"]["examples"], summary["examples"], summary)
        self.assertEqual(header["state"]["step"], summary["steps"])
        self.assertGreater(header["state"]["group"], 0)
        if "communication" in summary:  # absent if one process went on, or nothing was left to do
            self.assertLessEqual(header["state"]["group"], summary["communication"]["group"])
        kept = os.listdir(run.file("checkpoints"))
        self.assertFalse([name for name in kept if name.endswith(".abandoned")], "nobody goes back to older state")
        for file in ("steps.csv", "evals.csv"):
            steps = [int(row["step"]) for row in run.rows(file)]
            self.assertEqual(steps, sorted(set(steps)), file)
            self.assertLessEqual(max(steps, default=0), summary["steps"], file)

    def expect_whole(self, run, epochs, examples):
        """Checks that an all-reduce trained to the end, with each example once per epoch."""
        summary = run.summary()
        self.assertEqual(summary["stop_reason"], "epochs", summary)
        self.assertEqual(summary["examples"], epochs * examples, summary)
        self.expect_accounted(run, examples)


class SmallDisk(ClusterTest):
    """Tests with a disk that fills up."""

    def small_disk(self, kilobytes):
        if os.geteuid() != 0:
            self.skipTest("a small disk needs root")
        disk = os.path.join(self.folder, "disk")
        os.mkdir(disk)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", disk], check=False,
                                 capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest("mounting a small disk is not allowed here")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=False)
        return disk

    def expect_few_deaths(self, job):
        """Checks that there were no useless restarts; up to three faults may mix while a disk fills."""
        self.assertLessEqual(len(re.findall(r"^\S+ died", job.output(), re.MULTILINE)), 12, job.told())

    def expect_one_line(self, job):
        self.assertEqual(job.finish(), 1, job.told())
        self.expect_nobody_left(job)
        self.assertEqual(job.error().count("\n"), 1, job.error())
        self.assertIn("No space left on device", job.error())


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def main():
    """Runs the tests of the script; exits with 77 if all were skipped."""
    program = unittest.main(module="__main__", verbosity=2, exit=False)
    skipped = program.result.skipped
    if skipped and len(skipped) == program.result.testsRun:
        print("skipped: " + skipped[0][1], flush=True)
        sys.exit(77)
    sys.exit(not program.result.wasSuccessful())
