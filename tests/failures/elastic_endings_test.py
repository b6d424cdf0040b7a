"""All-reduce: abnormal ends and resuming: Ctrl-C, a killed launcher, everything killed at once, a
worker that cannot be kept alive, a full disk."""

import contextlib
import os
import signal

from cluster_job import Run, SmallDisk, free_port, main

EXAMPLES = 3000
EPOCHS = 100


def train(*more):
    """A run without its own stop rule."""
    return ["train", "lr", "--dataset", "synthetic", "--train-limit", str(EXAMPLES), "--test-limit", "300", "--threads",
            "1", "--epochs", "1000000", "--batch", "10", "--log-every", "1", "--lr", "0.01", "--strategy", "allreduce",
            "--checkpoint-every", "500", "--eval-every", "500", *more]


class Endings(SmallDisk):
    def begin(self, *more):
        job = self.start(train(*more))
        self.wait_for_step(job, self.run_of("lr-1"), 700)
        return job

    def resume(self, *more):
        run = self.run_of("lr-1")
        header, _ = run.checkpoint()
        epochs = 20 + 2 * (header["state"]["examples"] // EXAMPLES)
        self.expect_success(self.start(["train", "--resume", "lr-1", "--epochs", str(epochs), *more]))
        self.assertGreater(run.summary()["steps"], header["state"]["step"])
        self.expect_whole(run, epochs, EXAMPLES)

    def test_ctrl_c_keeps_all_that_was_done(self):
        job = self.begin("--workers", "3", "--evaluator")
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.finish(), 130, job.told())
        self.expect_nobody_left(job)
        self.assertEqual(self.run_of("lr-1").summary()["stop_reason"], "interrupted")
        self.expect_accounted(self.run_of("lr-1"), EXAMPLES)
        self.resume()

    def test_a_killed_launcher_leaves_nobody(self):
        job = self.begin("--workers", "3", "--evaluator")
        job.process.kill()
        self.assertEqual(job.finish(), -signal.SIGKILL)
        self.expect_nobody_left(job)
        self.resume()

    def test_everything_killed_goes_on_with_other_workers(self):
        for more in (("--workers", "4"), ("--workers", "0")):
            with self.subTest(more):
                self.setUp()
                job = self.begin("--workers", "3")
                for pid in job.everyone():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                job.finish()
                self.expect_nobody_left(job)
                self.resume(*more)

    def test_a_worker_that_cannot_be_kept_alive_is_left_out(self):
        def attempt(epochs):
            job = self.begin("--workers", "3", "--restarts", "0", "--epochs", str(epochs))
            job.signal("worker:0", signal.SIGKILL)
            job.wait_for("worker:0 has no restarts left of 0; training goes on without it", may_end=True)
            self.expect_success(job)
            self.expect_whole(self.run_of("lr-1"), epochs, EXAMPLES)
        self.longer_until_in_time(attempt, EPOCHS)

    def test_fewer_than_min_workers_end_the_job(self):
        job = self.begin("--workers", "3", "--restarts", "0", "--min-workers", "3")
        job.signal("worker:1", signal.SIGKILL)
        self.assertEqual(job.finish(), 1, job.told())
        self.expect_nobody_left(job)
        self.assertEqual(job.error().count("\n"), 1, job.error())
        self.assertIn("worker:1 died (killed by signal 9 (Killed)) and has no restarts left of 0", job.error())

    def test_a_full_disk(self):
        disk = self.small_disk(64_000)
        job = self.start(train("--workers", "2", "--runs-dir", disk, "--restarts", "100000"))
        self.wait_for_step(job, Run(os.path.join(disk, "lr-1")), 500)
        with contextlib.suppress(OSError), open(os.path.join(disk, "filler"), "wb", buffering=0) as filler:
            while filler.write(bytes(4096)):
                pass
        self.expect_one_line(job)
        self.assertRegex(job.error(), "worker:[01] died")  # the last worker that writes
        self.expect_few_deaths(job)

    def test_a_full_disk_of_the_leader_alone(self):
        """Every machine has its own disk: the next member leads, and writes to its own."""
        disk = self.small_disk(2_000)
        jobs = self.start_by_hand(3, [disk + "/run", "here", "there"])
        self.assertEqual(jobs[0].finish(), 1, jobs[0].told())
        self.assertEqual(jobs[0].error().count("\n"), 1, jobs[0].error())
        self.assertIn("No space left on device", jobs[0].error())
        for job in jobs[1:]:
            self.assertEqual(job.finish(), 0, job.told())
        self.assertIn("of worker:1, worker:2 continues from step", jobs[1].told())
        self.expect_whole(Run(os.path.join(self.folder, "here")), EPOCHS, EXAMPLES)

    def start_by_hand(self, workers, folders):
        addresses = [f"127.0.0.1:{free_port()}" for _ in range(workers)]
        with open(os.path.join(self.folder, "cluster.yaml"), "w", encoding="utf-8") as file:
            file.write("worker:\n" + "".join(f"  - {address}\n" for address in addresses))
        return [self.start(train("--cluster", "cluster.yaml", f"--task=worker:{i}", "--run-dir", folders[i], "--keep",
                                 "1000", "--epochs", str(EPOCHS))) for i in range(workers)]


if __name__ == "__main__":
    main()
