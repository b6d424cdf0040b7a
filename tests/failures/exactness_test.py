"""Synchronous training with parameter servers killed at random moments: step for step the same losses, and at the end
the same parameters, bit for bit, as an undisturbed run."""

import contextlib
import os
import signal
import subprocess

from cluster_job import ClusterTest, OverTooSoon, main

REPLAY = os.environ.get("LOCKSTEP_REPLAY") or os.path.join(os.path.dirname(__file__),
                                                           "../../build/release/tests/failures/replay")
EXAMPLES = 2000
EPOCHS = 30


def train(name, epochs, *more):
    return ["train", "lr", "--dataset", "synthetic", "--train-limit", str(EXAMPLES), "--test-limit", "200",
            "--threads", "1", "--epochs", str(epochs), "--batch", "10", "--log-every", "1", "--contributions", "--lr", "0.01",
            "--optimizer", "momentum", "--sync", "--restarts", "100", "--name", name, *more]


def kill(pid):
    """Returns true if there was such a process."""
    try:
        if pid:
            os.kill(pid, signal.SIGKILL)
        return bool(pid)
    except ProcessLookupError:
        return False


class Exactness(ClusterTest):
    def expect_same(self, *arguments, epochs=EPOCHS, **options):
        self.longer_until_in_time(lambda longer: self.shake(*arguments, epochs=longer, **options), epochs)

    def shake(self, servers, *more, kills=4, epochs=EPOCHS):
        self.run_to_end(train("calm", epochs, *more))
        calm = self.run_of("calm-1")
        job = self.start(train("shaken", epochs, *more))
        shaken = self.run_of("shaken-1")
        self.wait_for_step(job, shaken, 1)
        killed = 0
        with contextlib.suppress(OverTooSoon):
            while killed < kills:
                self.let_train(job, shaken, 150)
                killed += kill(job.roles().get(self.random.choice(servers)))
        self.expect_success(job)
        if killed < 2:
            raise OverTooSoon
        self.assertEqual(shaken.losses(), calm.losses(), job.told())
        self.assertEqual(shaken.checkpoint()[1], calm.checkpoint()[1])
        self.expect_each_example_once(shaken, epochs, EXAMPLES)

    def test_one_worker_and_one_ps(self):
        self.expect_same(["ps:0"], "--workers", "1", "--ps", "1")

    def test_a_synced_ps(self):
        self.expect_same(["ps:0"], "--workers", "1", "--ps", "1", "--durability", "machine", kills=3, epochs=5)

    def test_three_workers(self):
        self.expect_same(["ps:0"], "--workers", "3", "--ps", "1")

    def test_two_servers(self):
        self.expect_same(["ps:0", "ps:1"], "--workers", "2", "--ps", "2")

    def test_any_kills_with_the_same_contributions(self):
        """Killed workers change who contributes; with the same contributions one process computes the same losses."""
        self.longer_until_in_time(self.shake_and_replay, EPOCHS)

    def shake_and_replay(self, epochs):
        job = self.start(train("shaken", epochs, "--workers", "3", "--ps", "1"))
        run = self.run_of("shaken-1")
        self.wait_for_step(job, run, 1)
        killed = 0
        with contextlib.suppress(OverTooSoon):
            for _ in range(8):
                self.let_train(job, run, 100)
                killed += kill(self.random.choice(sorted(job.roles().values()) or [None]))
        self.expect_success(job)
        if killed == 0:
            raise OverTooSoon(f"nobody was killed\n{job.told()}")
        self.expect_each_example_once(run, epochs, EXAMPLES)

        updates = [(version, [batch for contribution in made for batch in contribution[3]])
                   for version, made in run.contributions()]
        lines = [" ".join([str(version)] + [f"{of}:" + "+".join(f"{a}-{b}" for a, b in ranges) for of, ranges in batches])
                 for version, batches in updates if batches]
        replayed = subprocess.run([REPLAY, run.file("config.yaml")], input="\n".join(lines) + "\n", capture_output=True,
                                  text=True, check=True).stdout
        expected = {int(version): float(loss) for version, loss in map(str.split, replayed.splitlines())}
        self.assertEqual(len(expected), len(lines))
        # The workers' results by the record, and by the chief's log, which has gaps while the chief was away.
        found = {version: sum(one[2] for one in made) / sum(one[1] for one in made)
                 for version, made in run.contributions() if any(one[1] for one in made)}
        self.assertEqual(set(found), set(expected))
        logged = {int(row["step"]): float(row["loss"]) for row in run.rows()}
        self.assertTrue(logged)
        for losses in (found, logged):
            for step, loss in losses.items():
                self.assertAlmostEqual(loss, expected[step], delta=1e-4 * max(1, abs(loss)), msg=f"step {step}")


if __name__ == "__main__":
    main()
