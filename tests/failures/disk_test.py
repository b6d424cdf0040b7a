"""A full disk, at a parameter server and under the chief's checkpoints: one clear line, an end, nobody left. And what
durability checkpoint loses with its server."""

import os
import signal
import subprocess
import time

from cluster_job import ClusterTest, main

TRAIN = ["train", "lr", "--dataset", "synthetic", "--train-limit", "3000", "--test-limit", "300", "--threads", "1",
         "--epochs", "40", "--batch", "10", "--lr", "0.01", "--workers", "2", "--ps", "1", "--log-every", "1"]


class FullDisk(ClusterTest):
    def on_small_disk(self, kilobytes, *more):
        if os.geteuid() != 0:
            self.skipTest("a small disk needs root")
        disk = os.path.join(self.folder, "disk")
        os.mkdir(disk)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", disk], check=False,
                                 capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest("no mounts here: " + mounted.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=False)
        job = self.start(TRAIN + ["--runs-dir", disk, "--restarts", "3", *more])
        self.assertEqual(job.finish(), 1, job.told())
        self.expect_nobody_left(job)
        self.assertEqual(job.error().count("\n"), 1, job.error())
        self.assertIn("No space left on device", job.error())
        return job

    def test_of_a_server(self):
        self.assertIn("ps:0", self.on_small_disk(400, "--sync").error())

    def test_under_checkpoints(self):
        job = self.on_small_disk(1500 + 1600, "--async", "--checkpoint-every", "20", "--keep", "1000")
        self.assertRegex(job.error(), "worker:[01] died")  # whoever writes next


class DurabilityCheckpoint(ClusterTest):
    def test_all_go_back_to_the_last_snapshot_and_the_loss_is_counted(self):
        for mode in ("--sync", "--async"):
            with self.subTest(mode):
                self.setUp()
                job = self.start(TRAIN + [mode, "--durability", "checkpoint"])
                run = self.run_of("lr-1")
                self.wait_for_step(job, run, 500)
                time.sleep(self.random.uniform(0, 0.2))
                job.signal("ps:0", signal.SIGKILL)
                job.wait_for("a parameter server lost its state: all go back to step ")
                job.wait_for("steps are lost")
                self.expect_success(job)
                summary = run.summary()
                self.assertEqual(summary["examples"], 40 * 3000, summary)
                steps = [int(row["step"]) for row in run.rows()]
                self.assertEqual(steps, sorted(set(steps)))


if __name__ == "__main__":
    main()
