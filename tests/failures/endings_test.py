"""Abnormal ends of a cluster and resuming: Ctrl-C, a killed launcher, everything killed at once; from one
size of cluster to another, from one process to a cluster and back."""

import os
import signal

from cluster_job import ClusterTest, main

EXAMPLES = 3000


def train(*more):
    """A run without its own stop rule."""
    return ["train", "lr", "--dataset", "synthetic", "--train-limit", str(EXAMPLES), "--test-limit", "300", "--threads",
            "1", "--epochs", "1000000", "--batch", "10", "--log-every", "1", "--lr", "0.01", *more]


class Endings(ClusterTest):
    def interrupt(self, *more):
        """Returns a run interrupted after its first checkpoint."""
        job = self.start(train(*more))
        self.wait_for_step(job, self.run_of("lr-1"), 700)
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.finish(), 130, job.told())
        self.expect_nobody_left(job)
        return self.run_of("lr-1")

    def resume(self, *more):
        """Resumes to the end; checks that it starts at the newest checkpoint's step and logs each line once."""
        run = self.run_of("lr-1")
        header, _ = run.checkpoint()
        epochs = 10 + 2 * (header["state"]["examples"] // EXAMPLES)  # the servers may be ahead of the checkpoint
        self.expect_success(self.start(["train", "--resume", "lr-1", "--epochs", str(epochs), *more]))
        summary = run.summary()
        self.assertEqual(summary["examples"], epochs * EXAMPLES, summary)
        self.assertEqual(summary["stop_reason"], "epochs")
        self.assertGreater(summary["steps"], header["state"]["step"])
        self.assertGreater(summary["test_accuracy"], 0.95)
        steps = [int(row["step"]) for row in run.rows()]
        self.assertEqual(steps, sorted(set(steps)))
        return header["state"]["step"]

    def test_ctrl_c_keeps_all_that_was_done(self):
        for mode in ("--sync", "--async"):
            with self.subTest(mode):
                self.setUp()
                run = self.interrupt("--workers", "2", "--ps", "1", mode)
                self.assertEqual(run.summary()["stop_reason"], "interrupted")
                header, _ = run.checkpoint()
                self.assertEqual(header["state"]["step"], run.summary()["steps"])
                self.resume()

    def test_a_killed_launcher_leaves_nobody(self):
        job = self.start(train("--workers", "2", "--ps", "2", "--evaluator", "--async"))
        self.wait_for_step(job, self.run_of("lr-1"), 700)
        os.kill(job.process.pid, signal.SIGKILL)
        self.assertEqual(job.finish(), -signal.SIGKILL)
        self.expect_nobody_left(job)
        self.resume()

    def test_everything_killed_goes_on_with_another_cluster(self):
        for more in ((), ("--workers", "3", "--ps", "2")):
            with self.subTest(more):
                self.setUp()
                job = self.start(train("--workers", "2", "--ps", "1", "--sync"))
                self.wait_for_step(job, self.run_of("lr-1"), 700)
                for pid in job.everyone():
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                job.finish()
                self.expect_nobody_left(job)
                self.resume(*more)

    def test_a_state_that_cannot_be_used_makes_way_for_the_checkpoint(self):
        job = self.start(train("--workers", "2", "--ps", "1", "--sync"))
        self.wait_for_step(job, self.run_of("lr-1"), 700)
        job.process.kill()
        job.finish()
        self.expect_nobody_left(job)
        with open(self.run_of("lr-1").file("ps-0/state"), "r+b") as file:  # looks like a reboot
            file.seek(64)
            file.write(b"another")
        self.resume()

    def test_from_one_process_to_a_cluster(self):
        self.interrupt()
        self.resume("--workers", "2", "--ps", "2")

    def test_from_a_cluster_to_one_process(self):
        self.interrupt("--workers", "3", "--ps", "2", "--async")
        self.resume("--workers", "0")

    def test_more_epochs_for_a_run_that_had_ended(self):
        job = self.run_to_end(["train", "lr", "--dataset", "synthetic", "--train-limit", "500", "--test-limit", "100",
                               "--threads", "1", "--epochs", "2", "--batch", "10", "--workers", "2", "--ps", "1"])
        self.expect_nobody_left(job)
        self.run_to_end(["train", "--resume", "lr-1", "--epochs", "4"])
        self.assertEqual(self.run_of("lr-1").summary()["examples"], 4 * 500)


if __name__ == "__main__":
    main()
