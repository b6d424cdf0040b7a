"""All-reduce: SIGSTOP and SIGCONT of workers. A short stop disturbs nothing; a long one is noticed by its silence and
named, the others continue if they are enough, and a continued worker rejoins."""

import os
import signal

from cluster_job import ClusterTest, Run, eventually, free_port, main

EXAMPLES = 3000
ATTEMPTS = 4
TRAIN = ["train", "lr", "--dataset", "synthetic", "--train-limit", str(EXAMPLES), "--test-limit", "300", "--threads",
         "1", "--epochs", "1000000", "--batch", "10", "--log-every", "100", "--lr", "0.001", "--checkpoint-every",
         "5000", "--eval-every", "5000", "--strategy", "allreduce"]


class UnderALauncher(ClusterTest):
    def begin(self):
        self.job = self.start(TRAIN + ["--workers", "3"])
        self.run = self.run_of("lr-1")
        self.wait_for_step(self.job, self.run, 200)

    def finish(self):
        self.job.process.send_signal(signal.SIGINT)
        self.assertEqual(self.job.finish(), 130, self.job.told())
        self.expect_nobody_left(self.job)
        self.expect_accounted(self.run, EXAMPLES)

    def stop_shortly(self):
        """Returns true if all stops were short."""
        self.begin()
        short = True
        for victim in ("worker:1", "worker:0"):
            short = self.pause_role(self.job, victim) and short
            self.wait_for_step(self.job, self.run, self.run.last_step() + 200)
        self.finish()
        return short

    def test_a_short_stop_disturbs_nobody(self):
        for _ in range(ATTEMPTS):
            if short := self.stop_shortly():
                break
            self.setUp()
        self.assertTrue(short, "no stop was short")
        for word in ("died", "killed", "connection closed", "no heartbeat", "continues from"):
            self.assertNotIn(word, self.job.output())

    def test_who_is_not_continued_is_killed_and_started_again(self):
        self.begin()
        self.job.signal("worker:1", signal.SIGSTOP)
        self.job.wait_for("worker:1 is stopped and was not continued within 5 s; killed")
        self.job.wait_for("worker:1 died: killed by signal 9 (Killed); restarting it")
        self.job.wait_for("now with worker:1")
        self.finish()


class StartedByHand(ClusterTest):
    """Without a launcher: the members themselves notice silence."""

    def begin(self, workers, *more):
        addresses = [f"127.0.0.1:{free_port()}" for _ in range(workers)]
        with open(os.path.join(self.folder, "cluster.yaml"), "w", encoding="utf-8") as file:
            file.write("worker:\n" + "".join(f"  - {address}\n" for address in addresses))
        self.run = Run(os.path.join(self.folder, "run"))
        self.jobs = [self.start(TRAIN + ["--cluster", "cluster.yaml", f"--task=worker:{i}", "--run-dir", "run", *more])
                     for i in range(workers)]
        self.names = [f"worker:{i} at {address}" for i, address in enumerate(addresses)]
        self.wait_for_step(self.jobs[0], self.run, 200)

    def step(self):
        return self.run.last_step()

    def expect_progress(self):
        before = self.step()
        eventually(lambda: self.step() > before + 500, "all go on")

    def finish(self, *jobs):
        jobs = jobs or self.jobs
        for job in jobs:
            job.process.send_signal(signal.SIGINT)
        for job in jobs:
            self.assertEqual(job.finish(), 130, job.told())
        self.expect_accounted(self.run, EXAMPLES)

    def test_a_worker_and_the_leader(self):
        self.begin(3)
        together = "of worker:0, worker:1, worker:2 continues from step"
        for victim, other in ((1, 0), (0, 1)):
            groups = self.jobs[0].told().count(together)
            pid = self.jobs[victim].signal(f"worker:{victim}", signal.SIGSTOP)
            self.jobs[other].wait_for(f"{self.names[victim]}: no heartbeat for")
            before = self.step()
            eventually(lambda: self.step() > before + 500, "the others go on")
            os.kill(pid, signal.SIGCONT)
            eventually(lambda: self.jobs[0].told().count(together) > groups, "all together again")
            self.expect_progress()
        self.finish()

    def test_of_two_the_one_without_the_lowest_number_waits(self):
        self.begin(2)
        pid = self.jobs[0].signal("worker:0", signal.SIGSTOP)
        self.jobs[1].wait_for(f"{self.names[0]}: no heartbeat for")
        self.jobs[1].wait_for("more than half of the 2 members are needed, or half with worker:0; worker:1 is here")
        self.assertNotIn("continues from", self.jobs[1].told())
        os.kill(pid, signal.SIGCONT)
        self.jobs[0].wait_for("continues from")
        self.expect_progress()
        self.finish()

    def test_allow_split_lets_it_go_on(self):
        self.begin(2, "--allow-split")
        pid = self.jobs[0].signal("worker:0", signal.SIGSTOP)
        self.jobs[1].wait_for("of worker:1 continues from")
        before = self.step()
        eventually(lambda: self.step() > before + 500, "it goes on")
        os.kill(pid, signal.SIGCONT)
        self.jobs[0].wait_for("of worker:0, worker:1 continues from")
        self.expect_progress()
        self.finish()

    def leave_behind(self):
        """Stops the leader; the other member continues without it, and no checkpoint shows it."""
        self.begin(2, "--allow-split", "--checkpoint-every", "0", "--steps-per-epoch", "1000000000",
                   "--eval-every", "0")
        pid = self.jobs[0].signal("worker:0", signal.SIGSTOP)
        self.jobs[1].wait_for("of worker:1 continues from")
        self.expect_progress()
        return pid

    def test_who_is_continued_when_all_is_over_ends_too(self):
        pid = self.leave_behind()
        self.finish(self.jobs[1])
        before = self.run.summary()
        os.kill(pid, signal.SIGCONT)
        self.assertEqual(self.jobs[0].finish(), 130, self.jobs[0].told())
        self.assertIn("worker:0: training is over: it ended without this worker", self.jobs[0].told())
        self.assertEqual(self.run.summary(), before)

    def test_a_leader_who_is_interrupted_on_its_way_back_replaces_nothing(self):
        pid = self.leave_behind()
        self.jobs[0].process.send_signal(signal.SIGINT)
        os.kill(pid, signal.SIGCONT)
        self.assertEqual(self.jobs[0].finish(), 130, self.jobs[0].told())
        self.assertFalse(os.path.exists(self.run.file("summary.json")), "the other one trains on")
        self.expect_progress()
        self.finish(self.jobs[1])


if __name__ == "__main__":
    main()
