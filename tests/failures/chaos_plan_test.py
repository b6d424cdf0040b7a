"""Which faults a seed makes, and which line names a fault, without processes."""

import random
import unittest

from chaos_plan import KINDS, Fault, Line, Naming, group_at, measure, plan

ROLES = ["worker:0", "worker:1", "worker:2", "ps:0", "evaluator:0"]


def killed(role, at):
    return Fault(0, "kill", [role], at=at, ages={role: 100})


def silent(kind, role, at, seconds):
    return Fault(0, kind, [role], seconds, at=at, ages={role: 100})


class Plan(unittest.TestCase):
    def test_a_seed_makes_the_same_faults(self):
        first, again, other = (plan(random.Random(seed), 200, ROLES, list(KINDS), 1) for seed in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)
        self.assertEqual({fault.kind for fault in first}, set(KINDS))
        self.assertEqual({role for fault in first for role in fault.targets}, {*ROLES, "disk"})
        self.assertTrue(any(len(fault.targets) > 1 for fault in first))


class Names(unittest.TestCase):
    def naming(self, faults, lines, launched=True):
        return Naming(faults, [Line(at, "launcher", text) for at, text in lines], ROLES, launched)

    def test_each_kill_needs_a_line_of_its_own(self):
        died = "worker:1 died: killed by signal 9 (Killed); restarting it"
        launcher, _ = self.naming([killed("worker:1", 10), killed("worker:1", 11)], [(11.5, died)]).deaths()
        text, late = measure(launcher, 2, "kills")
        self.assertEqual(text, "kills: named 1 of 2, median 1.50 s, worst 1.50 s")
        self.assertEqual(late, ["worker:1, after 0.00 s kill worker:1 (at 11.0): never"])

    def test_a_line_before_the_kill_or_of_another_role_does_not_count(self):
        lines = [(9, "worker:0: worker:1 at h:1: connection closed"), (11, "worker:0: worker:2 at h:2: connection closed"),
                 (11, "worker:1: worker:0 at h:0: connection closed")]
        _, others = self.naming([killed("worker:1", 10)], lines).deaths()
        self.assertEqual([seconds for _, _, seconds in others], [None])

    def test_who_is_not_in_the_group_need_not_be_missed(self):
        lines = [(5, "group 3 of worker:0, worker:2 continues from step 7, without worker:1")]
        self.assertEqual(group_at([Line(5, "", lines[0][1])], 6), (5, {"worker:0", "worker:2"}))
        _, others = self.naming([killed("worker:1", 10), killed("worker:2", 30)], lines).deaths()
        self.assertEqual([role for role, _, _ in others], ["worker:2"])

    def test_who_has_not_come_back_into_a_group_need_not_be_missed(self):
        lines = [(1, "group 1 of worker:0, worker:1 starts at step 0"), (30, "group 2 of worker:0, worker:1 continues from step 9")]
        faults = [killed("worker:1", 10), killed("worker:1", 20), killed("worker:1", 40)]
        _, others = self.naming(faults, lines).deaths()
        self.assertEqual([fault.at for _, fault, _ in others], [10, 40])

    def test_a_new_process_need_not_be_missed(self):
        fault = Fault(0, "kill", ["worker:1"], at=10, ages={"worker:1": 0.2})
        launcher, others = self.naming([fault], []).deaths()
        self.assertEqual((len(launcher), len(others)), (1, 0))

    def test_who_was_killed_shortly_before_need_not_be_missed(self):
        _, others = self.naming([killed("worker:1", 10), killed("worker:1", 12.5)], []).deaths()
        self.assertEqual([fault.at for _, fault, _ in others], [10])

    def test_only_long_silence_must_be_named(self):
        faults = [silent("cut", "worker:1", 10, 4), silent("cut", "worker:2", 30, 7), silent("stop", "evaluator:0", 50, 8),
                  silent("cut", "evaluator:0", 70, 8)]
        lines = [(35.2, "ps:0: worker:2 at h:2: no heartbeat for 5.1 s; training goes on"),
                 (55.3, "evaluator:0 is stopped and was not continued within 5 s; killed")]
        found = self.naming(faults, lines).silences()
        self.assertEqual([(role, round(seconds, 1)) for role, _, seconds in found], [("worker:2", 5.2), ("evaluator:0", 5.3)])


if __name__ == "__main__":
    unittest.main()
