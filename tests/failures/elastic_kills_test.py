"""All-reduce: kill -9 of workers, of the leader and of the evaluator at random moments, under the local launcher.
The others continue from the same step, restarted workers rejoin, and training ends well."""

import contextlib
import itertools
import os
import re
import signal
import time

from cluster_job import ClusterTest, OverTooSoon, eventually, main

EXAMPLES = 3000
EPOCHS = 120


def train(epochs, *more):
    return ["train", "lr", "--dataset", "synthetic", "--train-limit", str(EXAMPLES), "--test-limit", "300", "--threads",
            "1", "--epochs", str(epochs), "--batch", "10", "--log-every", "1", "--lr", "0.01", "--strategy", "allreduce",
            "--checkpoint-every", "500", "--eval-every", "500", "--restarts", "50", *more]


def kill(pid, number=signal.SIGKILL):
    """Returns true if there was such a process."""
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def is_stopped(pid):
    """Returns true if the process is stopped or gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] in "TZX"
    except OSError:
        return True


class Kills(ClusterTest):
    def expect_well(self, job, run, epochs):
        self.expect_success(job)
        self.expect_whole(run, epochs, EXAMPLES)
        self.assertEqual(run.summary()["test_accuracy"], 1.0)

    def kill_each(self, victims, *more, start=20, gap=200, says=()):
        """Kills the roles of each entry at once, entry by entry, with 1 to `gap` steps between; repeats until all messages
        in `says` were printed. Without a gap, kills as soon as the roles are there, or the next group is."""
        def attempt(epochs):
            job = self.start(train(epochs, "--workers", "3", *more))
            run = self.run_of("lr-1")
            if start > 0:
                self.wait_for_step(job, run, start)
            kills = 0

            def missing():
                return [text for text in says if not re.search(text, job.output())]
            for turn, together in enumerate(itertools.cycle(victims)):
                # Messages about a kill come a moment later.
                with contextlib.suppress(AssertionError):
                    if turn >= len(victims):
                        eventually(lambda: job.over() or not missing(), "what is said of kills", 10)
                if job.over() or turn >= len(victims) and not missing():
                    break
                with contextlib.suppress(OverTooSoon):
                    if gap:
                        self.let_train(job, run, gap)
                    elif self.random.random() < 0.5:
                        groups = job.output().count("group ")
                        eventually(lambda: job.over() or job.output().count("group ") > groups, "the next group", 20)
                    for pid in [job.role(name) for name in together]:
                        kills += kill(pid)
            self.expect_well(job, run, epochs)
            if kills == 0:
                raise OverTooSoon(f"nobody was killed\n{job.told()}")
            if missing():
                raise OverTooSoon(f"never said: {missing()}\n{job.told()}")
            return job
        return self.longer_until_in_time(attempt, EPOCHS)

    def test_a_worker(self):
        self.kill_each([["worker:1"]] * 3, says=(
            r"worker:1 died: killed by signal 9 \(Killed\); restarting it",
            r"worker:1 at 127\.0\.0\.1:\d+: (connection closed|it was restarted)",
            r"group \d+ of worker:0, worker:2 continues from step \d+, without worker:1",
            r"group \d+ of worker:0, worker:1, worker:2 continues from step \d+, now with worker:1"))

    def test_the_leader(self):
        self.kill_each([["worker:0"]] * 3,
                       says=(r"group \d+ of worker:1, worker:2 continues from step \d+, without worker:0",))

    def test_two_at_once(self):
        self.kill_each([["worker:0", "worker:2"], ["worker:1", "worker:2"], ["worker:0", "worker:1"]])

    def test_one_after_the_other_while_groups_are_made(self):
        names = ["worker:0", "worker:1", "worker:2"]
        self.kill_each([[self.random.choice(names)] for _ in range(10)], gap=0)

    def test_at_the_start(self):
        for victim in ("worker:0", "worker:1"):
            with self.subTest(victim):
                self.setUp()
                self.kill_each([[victim]] * 2, start=0, gap=0)

    def test_the_evaluator(self):
        job = self.kill_each([["evaluator:0"]] * 2, "--evaluator")
        for word in ("connection closed", "continues from step"):
            self.assertNotIn(word, job.output())

    def test_all_at_once_go_on_from_the_newest_checkpoint(self):
        def attempt(epochs):
            job = self.start(train(epochs, "--workers", "3"))
            run = self.run_of("lr-1")
            self.wait_for_step(job, run, 700)
            # Stopped first, so that none continues while the others are killed, or writes another checkpoint.
            roles = job.roles().values()
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in roles:
                    kill(pid, number)
                if number == signal.SIGSTOP:
                    eventually(lambda: all(map(is_stopped, roles)), "all are stopped")
                    newest = int(os.path.basename(run.checkpoints()[-1])[5:14])
            job.wait_for(f"continues from step {newest}", may_end=True)
            self.expect_well(job, run, epochs)
        self.longer_until_in_time(attempt, EPOCHS)

    def test_the_only_one(self):
        def attempt(epochs):
            job = self.start(train(epochs, "--workers", "1"))
            run = self.run_of("lr-1")
            self.wait_for_step(job, run, 700)
            job.kill("worker:0")
            self.expect_success(job)
            self.expect_whole(run, epochs, EXAMPLES)
        self.longer_until_in_time(attempt, 50)


class Closing(ClusterTest):
    """Killed after the last step, while the leader evaluates and writes."""

    # The final evaluation is most of the run.
    TRAIN = ["train", "lenet", "--dataset", "synthetic", "--train-limit", "300", "--test-limit", "2000", "--threads",
             "1", "--epochs", "1", "--batch", "20", "--strategy", "allreduce", "--eval-batch", "1", "--workers", "3"]

    @staticmethod
    def used(pid):
        """Returns the ticks of processor time."""
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return sum(map(int, file.read().rpartition(")")[2].split()[11:13]))

    def wait_for_closing(self, job):
        """Waits until only the leader computes. If the moment is missed, the checks hold anyway."""
        roles = eventually(lambda: job.over() or len(job.roles()) == 3, "three roles") and job.roles()
        while job.process.poll() is None:
            try:
                before = [self.used(pid) for _, pid in sorted(roles.items())]
                time.sleep(0.1)
                leader, *others = [self.used(pid) - was for (_, pid), was in zip(sorted(roles.items()), before)]
            except (OSError, ValueError):
                return
            if leader >= 3 and others == [0, 0]:
                return

    def kill_when(self, wait, *all_victims):
        for victims in all_victims:
            with self.subTest(victims):
                self.setUp()
                job = self.start(self.TRAIN)
                wait(job)
                roles = job.roles()
                for name in filter(roles.get, victims):
                    kill(roles[name])
                self.expect_success(job)
                self.expect_whole(self.run_of("lenet-1"), 1, 300)

    def test_at_the_last_evaluation(self):
        self.kill_when(self.wait_for_closing, ["worker:0"], ["worker:0", "worker:1", "worker:2"])

    def test_when_all_is_written(self):
        self.kill_when(lambda job: eventually(
            lambda: os.path.exists(self.run_of("lenet-1").file("summary.json")), "the summary"), ["worker:0", "worker:1"])


if __name__ == "__main__":
    main()
