"""A full disk, at a parameter server and under the chief's checkpoints: one clear line, an end, nobody left. And what
durability checkpoint loses with its server."""

import contextlib
import os
import re
import signal
import time

from cluster_job import ClusterTest, Run, SmallDisk, eventually, main

TRAIN = ["train", "lr", "--dataset", "synthetic", "--train-limit", "3000", "--test-limit", "300", "--threads", "1",
         "--epochs", "40", "--batch", "10", "--lr", "0.01", "--workers", "2", "--ps", "1", "--log-every", "1"]


class FullDisk(SmallDisk):
    def test_of_a_server(self):
        job = self.start(TRAIN + ["--runs-dir", self.small_disk(400), "--sync"])
        self.expect_one_line(job)
        self.assertIn("ps:0 died", job.error())

    def test_under_checkpoints(self):
        disk = self.small_disk(64_000)
        job = self.start(TRAIN + ["--runs-dir", disk, "--async", "--checkpoint-every", "20"])
        self.wait_for_step(job, Run(os.path.join(disk, "lr-1")), 20)
        with contextlib.suppress(OSError), open(os.path.join(disk, "filler"), "wb", buffering=0) as filler:
            while filler.write(bytes(4096)):
                pass
        self.expect_one_line(job)
        self.assertRegex(job.error(), "worker:[01] died")  # whoever writes next


class DurabilityCheckpoint(ClusterTest):
    def test_all_go_back_to_the_last_snapshot_and_the_loss_is_counted(self):
        for mode in ("--sync", "--async"):
            with self.subTest(mode):
                self.setUp()
                job = self.start(TRAIN + [mode, "--durability", "checkpoint", "--train-limit", "10000",
                                           "--epochs", "12", "--batch", "4"])
                run = self.run_of("lr-1")
                self.wait_for_step(job, run, 500)
                # Nothing is lost where the kill falls on a checkpoint: then once more.
                for kills in range(1, 4):
                    time.sleep(self.random.uniform(0, 0.2))
                    job.signal("ps:0", signal.SIGKILL)
                    eventually(lambda: job.output().count("a parameter server lost its state: all go back to step ")
                               == kills or job.process.poll() is not None, "all go back")
                    if re.search(r"\d+ steps after step \d+ are lost", job.output()):
                        break
                self.expect_success(job)
                self.assertRegex(job.output(), r"\d+ steps after step \d+ are lost")
                summary = run.summary()
                self.assertEqual(summary["examples"], 12 * 10000, summary)
                steps = [int(row["step"]) for row in run.rows()]
                self.assertEqual(steps, sorted(set(steps)))


if __name__ == "__main__":
    main()
