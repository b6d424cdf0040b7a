"""Kill -9 of every role, under the local launcher: training continues and ends well. tests/simulation/ plays kills of every
role in every mode; here real processes show some of them."""

import signal

from cluster_job import ClusterTest, main

EXAMPLES = 3000
EPOCHS = 40


def train(epochs, *more):
    return ["train", "lr", "--dataset", "synthetic", "--train-limit", str(EXAMPLES), "--test-limit", "300",
            "--threads", "1", "--epochs", str(epochs), "--batch", "10", "--log-every", "1", "--contributions", "--lr", "0.01", *more]


class Kills(ClusterTest):
    def kill_each(self, victims, *more, times=1):
        def attempt(epochs):
            job = self.start(train(epochs, "--restarts", "50", *more))
            run = self.run_of("lr-1")
            self.wait_for_step(job, run, 20)
            for victim in victims * times:
                self.let_train(job, run, 200)
                job.kill(victim)
            self.expect_success(job)
            self.expect_each_example_once(run, epochs, EXAMPLES)
        self.longer_until_in_time(attempt, EPOCHS)

    def test_a_worker_in_async(self):
        self.kill_each(["worker:1"], "--workers", "3", "--ps", "1", "--async", times=3)

    def test_the_chief_in_sync(self):
        self.kill_each(["worker:0"], "--workers", "3", "--ps", "1", "--sync", times=2)

    def test_the_clock_of_a_restarted_chief_goes_on(self):
        job = self.start(train(EPOCHS, "--workers", "2", "--ps", "1", "--sync", "--eval-every", "1000000"))
        run = self.run_of("lr-1")
        self.wait_for_step(job, run, 20)
        job.kill("worker:0")
        self.expect_success(job)
        # The server's clock runs from its start on; the launcher's began earlier.
        finished = [worker["finished_seconds"] for worker in run.summary()["workers"]]
        self.assertGreaterEqual(run.summary()["seconds"], max(finished))

    def test_each_of_two_ps_in_sync(self):
        self.kill_each(["ps:1", "ps:0"], "--workers", "2", "--ps", "2", "--sync", times=2)

    def test_each_of_two_ps_in_async(self):
        self.kill_each(["ps:1", "ps:0"], "--workers", "2", "--ps", "2", "--async", times=2)

    def test_the_evaluator(self):
        self.kill_each(["evaluator:0"], "--workers", "2", "--ps", "1", "--async", "--evaluator", times=2)

    def test_with_a_backup_worker(self):
        self.kill_each(["worker:2", "worker:0"], "--workers", "3", "--ps", "1", "--sync", "--aggregate", "2")

    def test_with_bounded_staleness(self):
        self.kill_each(["worker:2", "ps:0", "worker:1"], "--workers", "3", "--ps", "1", "--max-staleness", "2")

    def test_worker_and_ps_at_once(self):
        def attempt(epochs):
            job = self.start(train(epochs, "--workers", "3", "--ps", "2", "--sync", "--restarts", "50"))
            run = self.run_of("lr-1")
            self.wait_for_step(job, run, 20)
            for victims in (("worker:0", "ps:0"), ("worker:1", "ps:1"), ("ps:0", "ps:1")):
                for victim in victims:
                    job.signal(victim, signal.SIGKILL)
                self.let_train(job, run, 200)
            self.expect_success(job)
            self.expect_each_example_once(run, epochs, EXAMPLES)
        self.longer_until_in_time(attempt, EPOCHS)

    def test_a_worker_with_the_second_ps_again_and_again(self):
        job = self.start(train(1000000, "--workers", "3", "--ps", "2", "--sync", "--restarts", "50"))
        run = self.run_of("lr-1")
        for _ in range(6):
            self.wait_for_step(job, run, run.last_step() + 20)
            # ps:1 loses the others' answers; worker:2 causes a new plan, which these answers contain.
            for victim in ("ps:1", "worker:2"):
                job.signal(victim, signal.SIGKILL)
        self.wait_for_step(job, run, run.last_step() + 20)
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.finish(), 130, job.told())
        self.expect_nobody_left(job)


if __name__ == "__main__":
    main()
