"""SIGSTOP and SIGCONT of every role. A short stop disturbs nothing; a long one is noticed by its silence, named with
role, address and what was awaited, and training continues; a continued role rejoins."""

import os
import signal

from cluster_job import ClusterTest, OverTooSoon, Run, free_port, main

EXAMPLES = 3000
EPOCHS = 40
ATTEMPTS = 4
TRAIN = ["train", "lr", "--dataset", "synthetic", "--train-limit", str(EXAMPLES), "--test-limit", "300", "--threads",
         "1", "--batch", "10", "--log-every", "1", "--contributions", "--lr", "0.01"]


class UnderALauncher(ClusterTest):
    def attempt_short_stops(self, epochs):
        """Returns the ended job if all stops were short."""
        job = self.start(TRAIN + ["--workers", "3", "--ps", "1", "--evaluator", "--sync", "--epochs", str(epochs)])
        run = self.run_of("lr-1")
        self.wait_for_step(job, run, 20)
        short = True
        for victim in ("worker:1", "worker:0", "ps:0", "evaluator:0"):
            if job.over():
                raise OverTooSoon(job.told())
            short = self.pause_role(job, victim) and short
            self.let_train(job, run, 20)
        self.expect_success(job)
        self.expect_each_example_once(run, epochs, EXAMPLES)
        return short and job

    def test_a_short_stop_of_each_role_disturbs_nobody(self):
        job = None
        for _ in range(ATTEMPTS):
            self.setUp()
            job = job or self.longer_until_in_time(self.attempt_short_stops, 2 * EPOCHS)
        self.assertTrue(job, "no stop was short")
        for word in ("died", "killed", "connection closed", "no heartbeat", "goes on"):
            self.assertNotIn(word, job.output())

    def test_who_is_not_continued_is_killed_and_started_again(self):
        def attempt(epochs):
            job = self.start(TRAIN + ["--workers", "3", "--ps", "1", "--sync", "--epochs", str(epochs)])
            run = self.run_of("lr-1")
            self.wait_for_step(job, run, 20)
            for victim in ("worker:1", "ps:0"):
                job.signal(victim, signal.SIGSTOP)
            for victim in ("worker:1", "ps:0"):
                for text in ("is stopped and was not continued within 5 s; killed",
                             "died: killed by signal 9 (Killed); restarting it"):
                    job.wait_for(f"{victim} {text}", may_end=True)
            self.expect_success(job)
            self.expect_each_example_once(run, epochs, EXAMPLES)
        self.longer_until_in_time(attempt, EPOCHS)


class StartedByHand(ClusterTest):
    """Without a launcher: the roles themselves notice silence."""

    def start_roles(self, mode, *more):
        self.addresses = {task: f"127.0.0.1:{free_port()}" for task in ("worker:0", "worker:1", "worker:2", "ps:0")}
        workers = "".join(f"  - {self.addresses[f'worker:{i}']}\n" for i in range(3))
        with open(os.path.join(self.folder, "cluster.yaml"), "w", encoding="utf-8") as file:
            file.write(f"worker:\n{workers}ps:\n  - {self.addresses['ps:0']}\n")
        self.jobs = {task: self.start(TRAIN + [mode, "--epochs", str(EPOCHS), "--cluster", "cluster.yaml", "--task=" + task, "--run-dir", "run",
                                               *more]) for task in self.addresses}
        return self.jobs

    def run_folder(self):
        return Run(os.path.join(self.folder, "run"))

    def expect_all_succeed(self):
        for task, job in self.jobs.items():
            self.assertEqual(job.finish(), 0, f"{task}: {job.told()}")
        self.expect_each_example_once(self.run_folder(), EPOCHS, EXAMPLES)

    def stopped_worker(self, mode):
        jobs = self.start_roles(mode)
        self.wait_for_step(jobs["worker:0"], self.run_folder(), 20)
        # Members that have not joined yet are not missed.
        self.wait_for_step(jobs["worker:1"], Run(os.path.join(self.folder, "run", "worker-1")), 1)
        pid = jobs["worker:1"].signal("worker:1", signal.SIGSTOP)
        before = self.run_folder().last_step()
        # Within the deadline, the message names the worker, its address and what is missing.
        name = f"worker:1 at {self.addresses['worker:1']}: no heartbeat for "
        jobs["ps:0"].wait_for(name)
        if mode == "--sync":
            jobs["ps:0"].wait_for("while waiting for its push of step")
        os.kill(pid, signal.SIGCONT)
        self.expect_all_succeed()
        self.assertGreater(self.run_folder().last_step(), before)
        workers = {worker["role"]: worker for worker in self.run_folder().summary()["workers"]}
        self.assertGreater(workers["worker:1"]["examples"], 0)

    def test_a_worker_in_sync(self):
        self.stopped_worker("--sync")

    def test_a_worker_in_async(self):
        self.stopped_worker("--async")

    def test_a_ps(self):
        jobs = self.start_roles("--sync")
        self.wait_for_step(jobs["worker:0"], self.run_folder(), 20)
        pid = jobs["ps:0"].signal("ps:0", signal.SIGSTOP)
        jobs["worker:1"].wait_for(f"ps:0 at {self.addresses['ps:0']}: no heartbeat for ")
        jobs["worker:1"].wait_for("waiting for its answer to push")
        os.kill(pid, signal.SIGCONT)
        self.expect_all_succeed()
        self.assertNotIn("no heartbeat", jobs["ps:0"].told())  # it was suspended itself


if __name__ == "__main__":
    main()
