"""A full disk, at a parameter server and under the chief's checkpoints: one clear line, an end, no process
left. Also the loss of a server with durability checkpoint."""

import contextlib
import os
import re

from cluster_job import ClusterTest, Run, SmallDisk, eventually, main

TRAIN = ["train", "lr", "--dataset", "synthetic", "--train-limit", "3000", "--test-limit", "300", "--threads", "1",
         "--epochs", "40", "--batch", "10", "--lr", "0.01", "--workers", "2", "--ps", "1", "--log-every", "1"]


PATIENT = ["--restarts", "100000"]  # the launcher itself must notice that restarts do not help


class FullDisk(SmallDisk):
    def test_of_a_server(self):
        job = self.start(TRAIN + PATIENT + ["--runs-dir", self.small_disk(400), "--sync"])
        self.expect_one_line(job)
        self.assertIn("ps:0 died", job.error())
        self.expect_few_deaths(job)

    def test_under_checkpoints(self):
        disk = self.small_disk(64_000)
        job = self.start(TRAIN + PATIENT + ["--runs-dir", disk, "--async", "--checkpoint-every", "20", "--epochs", "1000000"])
        self.wait_for_step(job, Run(os.path.join(disk, "lr-1")), 20)
        with contextlib.suppress(OSError), open(os.path.join(disk, "filler"), "wb", buffering=0) as filler:
            while filler.write(bytes(4096)):
                pass
        self.expect_one_line(job)
        self.assertRegex(job.error(), "worker:[01] died")  # the next worker that writes
        self.assertNotIn(".tmp-", job.told())
        self.expect_few_deaths(job)


class FullDiskOfOneProcess(SmallDisk):
    def test_says_what_is_saved_and_how_to_go_on(self):
        disk = self.small_disk(1500)  # room for one checkpoint of 741 kB
        job = self.start(["train", "lenet", "--dataset", "synthetic", "--train-limit", "2000", "--test-limit", "200",
                          "--threads", "1", "--epochs", "3", "--keep", "5", "--runs-dir", disk])
        self.assertEqual(job.finish(), 1, job.told())
        self.assertRegex(job.error(), r"^lockstep: cannot write \S+step-000000064.ckpt: No space left on device; step 32 is "
                                      r"saved: `lockstep train --resume \S+/lenet-1` resumes from it\n$")
        job = self.start(["train", "--resume", os.path.join(disk, "lenet-1"), "--epochs", "1"])
        self.assertEqual(job.finish(), 0, job.told())


class UnwritableCheckpoints(SmallDisk):
    """Replaces the folder by a file, which stops root as well."""

    def expect_end(self, train, *how):
        job = self.start(train + PATIENT + [*how, "--checkpoint-every", "20", "--epochs", "1000000"])
        run = self.run_of("lr-1")
        self.wait_for_step(job, run, 40)
        os.rename(run.file("checkpoints"), run.file("elsewhere"))
        with open(run.file("checkpoints"), "wb"):
            pass
        self.assertEqual(job.finish(), 1, job.told())
        self.expect_nobody_left(job)
        self.assertEqual(job.error().count("\n"), 1, job.error())
        self.assertRegex(job.error(), "worker:[01] died .*checkpoints.*would fail again")
        self.expect_few_deaths(job)

    def test_of_a_chief(self):
        self.expect_end(TRAIN, "--async")

    def test_of_whoever_leads_an_all_reduce(self):
        servers = TRAIN.index("--ps")
        self.expect_end(TRAIN[:servers] + TRAIN[servers + 2:], "--strategy", "allreduce")


class FreedDisk(SmallDisk):
    def test_training_goes_on(self):
        """Frees space between two failures: the job ends well."""
        disk = self.small_disk(64_000)
        job = self.start(TRAIN + ["--runs-dir", disk, "--sync", "--checkpoint-every", "20", "--epochs", "30"])
        filler = os.path.join(disk, "filler")
        run = Run(os.path.join(disk, "lr-1"))
        self.wait_for_step(job, run, 20)
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        job.wait_for("No space left on device")
        os.remove(filler)
        self.expect_success(job)


class DurabilityCheckpoint(ClusterTest):
    BACK = "a parameter server lost its state; all workers go back to step "
    LOST = r"\d+ steps after step \d+ are lost"

    def lose_steps(self, mode, epochs):
        job = self.start(TRAIN + [mode, "--durability", "checkpoint", "--train-limit", "10000", "--epochs", str(epochs),
                                  "--batch", "4"])
        run = self.run_of("lr-1")
        self.wait_for_step(job, run, 500)
        # A kill right at a checkpoint loses nothing; then it is repeated.
        for _ in range(10):
            self.let_train(job, run, 100)
            before = job.output().count(self.BACK)
            job.kill("ps:0")
            eventually(lambda: job.output().count(self.BACK) > before or job.over(), "all go back")
            if re.search(self.LOST, job.output()):
                break
        self.expect_success(job)
        self.assertRegex(job.output(), self.LOST)
        summary = run.summary()
        self.assertEqual(summary["examples"], epochs * 10000, summary)
        steps = [int(row["step"]) for row in run.rows()]
        self.assertEqual(steps, sorted(set(steps)))

    def test_all_go_back_to_the_last_snapshot_and_the_loss_is_counted(self):
        for mode in ("--sync", "--async"):
            with self.subTest(mode):
                self.setUp()
                self.longer_until_in_time(lambda epochs: self.lose_steps(mode, epochs), 12)


if __name__ == "__main__":
    main()
