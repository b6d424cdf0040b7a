"""Training under srun: the ranks' roles, their engine, and the results. One node of this Slurm is one
loopback address of this machine."""

import os
import shutil
import signal
import tempfile
import unittest

import slurm
from cluster_job import ClusterTest, main

EXAMPLES = 3000
EPOCHS = 4


def train(*more):
    return ["train", "lr", "--dataset", "synthetic", "--train-limit", str(EXAMPLES), "--test-limit", "300", "--threads",
            "1", "--epochs", str(EPOCHS), "--batch", "10", "--log-every", "1", "--lr", "0.01", *more]


def program_of(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""  # it has ended


@unittest.skipIf(slurm.missing(), f"Slurm is not installed: {', '.join(slurm.missing())}")
class SlurmTest(ClusterTest):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp(prefix="lockstep-slurm-")
        cls.addClassCleanup(shutil.rmtree, cls.home, ignore_errors=True)
        cls.slurm = slurm.Slurm(cls.home)
        cls.addClassCleanup(cls.slurm.stop)

    def setUp(self):
        super().setUp()
        os.environ.update(self.slurm.environment)
        os.environ["OMPI_MCA_btl_tcp_if_include"] = "lo"  # otherwise Open MPI uses other interfaces between nodes
        os.environ["SLURM_PMIX_FENCE"] = "tree"  # with its default a rank may die in MPI_Init (docs/mpi-and-slurm.md)

    def srun(self, ranks, nodes, words, *more):
        # If one rank dies, the others end, so that the nodes are free for the next test.
        return self.start(words, prefix=["srun", f"--ntasks={ranks}", f"--nodes={nodes}", "--kill-on-bad-exit=1", *more])

    def expect_trained(self, job, engine, workers):
        self.assertEqual(job.finish(), 0, job.told() + self.slurm.told())
        summary = self.run_of("lr-1").summary()
        self.assertEqual(summary["examples"], EPOCHS * EXAMPLES)
        self.assertEqual([worker["role"] for worker in summary["workers"]], [f"worker:{i}" for i in range(workers)])
        self.assertGreater(summary["test_accuracy"], 0.9)
        if engine:
            self.assertEqual(summary["communication"]["engine"], engine)
            self.assertEqual(summary["steps"], EPOCHS * EXAMPLES // 10 // workers)
        return self.run_of("lr-1").losses()

    def test_ranks_train_by_all_reduce_over_the_nodes_addresses(self):
        self.expect_trained(self.srun(3, 3, train()), "gloo", 3)

    def test_two_ranks_of_a_node_share_its_address(self):
        self.expect_trained(self.srun(3, 2, train()), "gloo", 3)

    def test_with_pmix_ranks_use_mpi_and_get_the_bits_of_mpirun(self):
        losses = self.expect_trained(self.srun(3, 3, train(), "--mpi=pmix"), "mpi", 3)
        self.setUp()
        os.environ["OMPI_ALLOW_RUN_AS_ROOT"] = os.environ["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
        mpirun = self.start(train(), prefix=["mpirun", "-q", "--oversubscribe", "--bind-to", "none", "-n", "3"])
        self.assertEqual(losses, self.expect_trained(mpirun, "mpi", 3))

    def test_ranks_of_one_node_use_its_memory(self):
        self.expect_trained(self.srun(2, 1, train(), "--mpi=pmix"), "mpi", 2)

    def test_with_servers_the_first_rank_is_one(self):
        self.expect_trained(self.srun(3, 3, train("--ps", "1", "--sync")), None, 2)

    def test_a_silent_rank_ends_the_step_with_the_command_that_goes_on(self):
        words = train("--patience", "8", "--epochs", "1000000", "--checkpoint-every", "100")
        job = self.srun(3, 3, words, "--mpi=pmix")
        self.wait_for_step(job, self.run_of("lr-1"), 300)
        ranks = [pid for pid in job.everyone() if program_of(pid) == "lockstep"]
        os.kill(max(ranks), signal.SIGSTOP)
        self.assertNotEqual(job.finish(), 0)
        self.assertRegex(job.error(), r"nothing for 8 s: an MPI job cannot continue without one of its ranks; to resume:  "
                                      r"srun --mpi=pmix -n 3 lockstep train --resume runs/lr-1\n")
        self.expect_nobody_left(job)


if __name__ == "__main__":
    main()
