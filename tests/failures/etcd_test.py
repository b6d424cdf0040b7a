"""All-reduce without a launcher, with etcd as the authority: a group survives the loss of etcd until its members change;
then it waits, says so, and goes on when etcd is back. A single survivor goes on."""

import os
import re
import shutil
import signal
import subprocess
import unittest

from cluster_job import ClusterTest, Run, eventually, free_port, main

EXAMPLES = 3000
TRAIN = ["train", "lr", "--dataset", "synthetic", "--train-limit", str(EXAMPLES), "--test-limit", "300", "--threads",
         "1", "--epochs", "1000000", "--batch", "10", "--lr", "0.001", "--log-every", "100", "--checkpoint-every",
         "5000", "--eval-every", "5000", "--cluster", "cluster.yaml"]


@unittest.skipUnless(shutil.which("etcd"), "etcd-server is missing")
class Etcd(ClusterTest):
    def setUp(self):
        super().setUp()
        self.ports = free_port(), free_port()

    def start_etcd(self):
        client, peer = (f"http://127.0.0.1:{port}" for port in self.ports)
        etcd = subprocess.Popen(
            ["etcd", f"--data-dir={self.folder}/etcd", f"--listen-client-urls={client}",
             f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
             f"--initial-cluster=default={peer}", "--unsafe-no-fsync", "--logger=zap", "--log-level=fatal"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.stop, etcd)
        return etcd

    @staticmethod
    def stop(etcd):
        etcd.kill()
        etcd.wait()

    def worker(self, index):
        return self.start([*TRAIN, f"--task=worker:{index}", f"--membership=etcd://127.0.0.1:{self.ports[0]}",
                           "--run-dir", "run"])

    def test_a_group_survives_the_loss_of_etcd(self):
        with open(os.path.join(self.folder, "cluster.yaml"), "w", encoding="utf-8") as file:
            file.write(f"worker: [{', '.join(f'127.0.0.1:{free_port()}' for _ in range(3))}]\n")
        run = Run(os.path.join(self.folder, "run"))
        etcd = self.start_etcd()
        jobs = [self.worker(i) for i in range(3)]
        self.wait_for_step(jobs[0], run, 200)

        self.stop(etcd)
        before = run.last_step()
        eventually(lambda: run.last_step() > before + 500, "the group goes on without etcd")

        jobs[1].end()
        jobs[0].wait_for("waiting for etcd at ")
        jobs[2].end()
        self.assertNotIn("continues from step", jobs[0].told())
        etcd = self.start_etcd()
        jobs[0].wait_for("answers again")
        jobs[0].wait_for("of worker:0 continues from step")  # alone, one of three
        before = run.last_step()
        eventually(lambda: run.last_step() > before + 500, "the survivor goes on")

        jobs[1] = self.worker(1)
        jobs[0].wait_for("now with worker:1")
        numbers = [int(number) for number in re.findall(r"group (\d+) of", jobs[0].told())]
        self.assertEqual(numbers, sorted(set(numbers)), "numbers rise")
        jobs[0].signal("worker:0", signal.SIGINT)
        for job in jobs[:2]:
            self.assertEqual(job.finish(), 130, job.told())
        self.expect_accounted(run, EXAMPLES)

    def test_what_cannot_work_is_refused_in_one_line(self):
        with open(os.path.join(self.folder, "cluster.yaml"), "w", encoding="utf-8") as file:
            file.write(f"worker: [127.0.0.1:{free_port()}, 127.0.0.1:{free_port()}]\n")
        for words, why in ((["--membership=etcd://localhost"], "etcd://HOST:PORT"),
                           (["--membership=etcd://10.0.0.1:2379"], "beyond this machine"),
                           (["--membership=etcd://127.0.0.1:2379", "--etcd-user=root"], "LOCKSTEP_ETCD_PASSWORD"),
                           (["--membership=etcd://127.0.0.1:2379", "--etcd-ca=/nowhere"], "cannot read /nowhere"),
                           (["--membership=etcd://127.0.0.1:2379", "--allow-split"], "one group"),
                           (["--etcd-user=root"], "only with --membership"),
                           (["--membership=zookeeper://a:1"], "etcd://HOST:PORT,HOST:PORT")):
            job = self.start([*TRAIN, "--task=worker:0", "--run-dir", "run", *words])
            self.assertNotEqual(job.finish(), 0, job.told())
            self.assertIn(why, job.error())
            self.assertEqual(job.error().count("\n"), 1, job.error())


if __name__ == "__main__":
    main()
