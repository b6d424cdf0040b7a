"""Ranks of an MPI job: our launcher restarts mpirun from the newest checkpoint; under the user's own mpirun a rank that is
silent ends the job, with the command that resumes it."""

import os
import shutil
import signal
import unittest

from cluster_job import ClusterTest, eventually, main

EXAMPLES = 3000
EPOCHS = 30
MPIRUN = ["mpirun", "-q", "--oversubscribe", "--bind-to", "none", "-n"]


def train(*more):
    return ["train", "lr", "--dataset", "synthetic", "--train-limit", str(EXAMPLES), "--test-limit", "300", "--threads",
            "1", "--epochs", str(EPOCHS), "--batch", "10", "--log-every", "1", "--lr", "0.01", "--eval-every", "1000",
            "--checkpoint-every", "100", *more]


def launched(*more):
    return train("--workers", "3", "--strategy", "allreduce", "--collective", "mpi", *more)


@unittest.skipUnless(shutil.which("mpirun"), "mpirun is not installed")
class Mpi(ClusterTest):
    def setUp(self):
        super().setUp()
        os.environ["OMPI_ALLOW_RUN_AS_ROOT"] = os.environ["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"

    def rank(self, job, number):
        """Returns the process of that rank."""
        wanted = f"OMPI_COMM_WORLD_RANK={number}".encode()

        def find():
            for pid in job.everyone():
                try:
                    with open(f"/proc/{pid}/environ", "rb") as file:
                        if wanted in file.read().split(b"\0"):
                            return pid
                except OSError:
                    pass
            return None
        return eventually(find, f"rank {number}")

    def expect_whole(self, run):
        summary = run.summary()
        self.assertEqual(summary["examples"], EPOCHS * EXAMPLES, summary)
        self.assertEqual(summary["stop_reason"], "epochs")
        steps = [int(row["step"]) for row in run.rows()]
        self.assertEqual(steps, list(range(1, EPOCHS * EXAMPLES // 30 + 1)))

    def test_a_killed_rank_is_made_up_for_from_the_newest_checkpoint_with_the_same_bits(self):
        self.expect_success(self.start(launched("--name", "calm")))
        for number, step in ((2, 700), (0, 1200)):
            name = f"killed-{number}"
            job = self.start(launched("--name", name))
            self.wait_for_step(job, self.run_of(f"{name}-1"), step)
            os.kill(self.rank(job, number), signal.SIGKILL)
            self.expect_success(job)
            self.assertIn("mpirun died: ", job.told())
            self.assertIn("restarting it (1 of 10)", job.told())
            self.expect_whole(self.run_of(f"{name}-1"))
            self.assertEqual(self.run_of(f"{name}-1").losses(), self.run_of("calm-1").losses())

    def test_ctrl_c_keeps_all_that_was_done(self):
        job = self.start(launched())
        self.wait_for_step(job, self.run_of("lr-1"), 750)
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.finish(), 130, job.told())
        self.expect_nobody_left(job)
        run = self.run_of("lr-1")
        self.assertEqual(run.summary()["stop_reason"], "interrupted")
        header, _ = run.checkpoint()
        self.assertEqual(header["state"]["step"], run.summary()["steps"])
        self.expect_success(self.start(["train", "--resume", "lr-1"]))
        self.expect_whole(run)

    def test_a_killed_launcher_or_mpirun_leaves_nobody(self):
        job = self.start(launched())
        self.wait_for_step(job, self.run_of("lr-1"), 700)
        os.kill(job.process.pid, signal.SIGKILL)
        self.assertEqual(job.finish(), -signal.SIGKILL)
        self.expect_nobody_left(job)

    def test_a_silent_rank_ends_the_users_own_mpirun_with_the_command_that_goes_on(self):
        job = self.start(train("--patience", "8"), prefix=[*MPIRUN, "3"])
        self.wait_for_step(job, self.run_of("lr-1"), 700)
        os.kill(self.rank(job, 2), signal.SIGSTOP)
        self.assertNotEqual(job.finish(), 0)
        self.expect_nobody_left(job)
        self.assertRegex(job.error(), r"2 (sent|took) nothing for 8 s: an MPI job cannot continue without one of its ranks; "
                                      r"to resume:  mpirun -n 3 lockstep train --resume runs/lr-1\n")
        self.expect_success(self.start(["train", "--resume", "runs/lr-1", "--patience", "60"], prefix=[*MPIRUN, "3"]))
        self.expect_whole(self.run_of("lr-1"))

    def test_a_wrong_setting_is_told_once_and_not_tried_again(self):
        job = self.run_to_end(launched("--evaluator"), 2)
        self.assertIn("no place for an evaluator", job.error())
        job = self.run_to_end(launched("--cpu-quota", "0.5"), 2)
        self.assertIn("--cpu-quota", job.error())


if __name__ == "__main__":
    main()
