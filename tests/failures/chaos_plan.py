"""The faults of a chaos run as plain data, without processes and clocks: which are made, and which line names each."""

import dataclasses
import re
import statistics

# Kinds and how often each is chosen.
KINDS = {"kill": 70, "stop": 12, "cut": 11, "fill": 7}
SEVERAL = 0.12  # share of the kills that hit several roles at once
NAMED_DEAD = 2.0  # seconds in which a killed role must be named
NAMED_SILENT = 7.0  # seconds in which a silent role must be named
SILENCE = 5.5  # a shorter silence need not be named
SETTLED = 3.0  # seconds in which a new process may be on its way to the others: they need not miss it yet
CALM = 0.6  # share of the long silences that are alone: no fault shortly before and none while they last
NOTICED = 1.0  # a group may be announced so long after one of its members was disturbed, before the others notice

SAID_BY = re.compile(r"(\w+:\d+): (.*)")
GROUP = re.compile(r"group (\d+) of ((?:\w+:\d+(?:, )?)+) (?:starts at|continues from) step")


@dataclasses.dataclass
class Fault:
    after: float  # seconds since the fault before
    kind: str
    targets: list
    seconds: float = 0.0  # how long it lasts; 0: a kill
    at: float = -1.0  # when it was made; -1: not yet
    ages: dict = dataclasses.field(default_factory=dict)  # seconds since the processes of its targets were started

    def text(self):
        lasts = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"after {self.after:.2f} s {self.kind} {' '.join(self.targets)}{lasts}"


@dataclasses.dataclass
class Line:
    at: float
    source: str  # the process that printed it
    text: str

    def by_another_than(self, role):
        """Returns the text without the role that says it; nothing if the role says it itself."""
        said = SAID_BY.match(self.text)
        if not said:
            return self.text
        return "" if said.group(1) == role else said.group(2)


def plan(chance, count, roles, kinds, gap):
    """Returns `count` faults; the same seed makes the same faults."""
    faults = []
    pause = 0
    for _ in range(count):
        kind = chance.choices(list(kinds), [KINDS[kind] for kind in kinds])[0]
        after = pause + min(chance.expovariate(1 / gap), 4 * gap)
        pause = 0
        if kind == "kill":
            several = chance.randint(2, len(roles)) if chance.random() < SEVERAL else 1
            faults.append(Fault(after, kind, sorted(chance.sample(roles, several))))
        elif kind == "fill":
            faults.append(Fault(after, kind, ["disk"], chance.uniform(0.3, 2)))
        else:
            seconds = chance.uniform(1, 8)
            if seconds > SILENCE and chance.random() < CALM:
                after, pause = after + 2 * SETTLED, seconds
            faults.append(Fault(after, kind, [chance.choice(roles)], seconds))
    return faults


def spans(faults, role):
    """Returns the times in which this role was killed, stopped or cut off: (begin, end)."""
    return [(fault.at, fault.at + fault.seconds) for fault in faults if role in fault.targets and fault.at >= 0]


def undisturbed(faults, fault, role, begin, end):
    """True if no other fault hit the role between the two times."""
    return not any(a <= end and b >= begin for other in faults if other is not fault for a, b in spans([other], role))


def group_at(lines, at):
    """Returns when the latest all-reduce group before that time was announced, and its members; none if there was none."""
    number, since, members = 0, at, None
    for line in lines:
        found = GROUP.search(line.text) if line.at <= at else None
        if found and int(found.group(1)) > number:
            number, since, members = int(found.group(1)), line.at, set(found.group(2).split(", "))
    return since, members


class Naming:
    """Finds for each fault the first line that names it. A line names one fault."""

    def __init__(self, faults, lines, roles, launched):
        self.faults = [fault for fault in faults if fault.at >= 0]
        self.lines = sorted(lines, key=lambda line: line.at)
        self.roles = roles
        self.launched = launched
        self.taken = set()

    def first(self, role, how, at, patience):
        """Returns the seconds until another one says so of the role, and marks the line as taken; none if nobody did."""
        sought = re.compile(rf"\b{role}{how}")
        for index, line in enumerate(self.lines):
            if line.at < at or index in self.taken or not sought.search(line.by_another_than(role)):
                continue
            if line.at - at > patience:
                return None
            self.taken.add(index)
            return line.at - at
        return None

    def missed(self, fault, role):
        """True if the other roles must miss this one: it is among them, and one who must miss it is undisturbed."""
        if role.startswith(("evaluator", "etcd")) or fault.ages.get(role, 0) < SETTLED:
            return False
        since, members = group_at(self.lines, fault.at)
        if members is None:  # servers: the first one misses workers and other servers, and all workers miss a server
            since = fault.at - SETTLED
            members = {name for name in self.roles if name == "ps:0" or name == role or
                       role.startswith("ps") and name.startswith("worker")}
        since -= NOTICED
        until = fault.at + (SILENCE if fault.seconds else NAMED_DEAD)
        return role in members and undisturbed(self.faults, fault, role, since, until) and any(
            undisturbed(self.faults, fault, other, since, until) for other in members - set(fault.targets))

    def deaths(self):
        """Returns (by the launcher, by other roles): the seconds of each kill, none where nobody named it."""
        launcher, others = [], []
        for fault in self.faults:
            for role in fault.targets if fault.kind == "kill" else ():
                if self.launched:
                    launcher.append((role, fault, self.first(role, " died: killed by signal 9", fault.at, 60)))
                if role.startswith("worker") and self.missed(fault, role):  # a server is waited for without a word
                    others.append((role, fault, self.first(role, r"( at \S+)?: ", fault.at, 60)))
        return launcher, others

    def silences(self):
        """Returns the seconds of each stop and cut that had to be named."""
        found = []
        for fault in self.faults:
            if fault.kind not in ("stop", "cut") or fault.seconds < SILENCE:
                continue
            for role in fault.targets:
                if self.launched and fault.kind == "stop":
                    alone = undisturbed(self.faults, fault, role, fault.at, fault.at + SILENCE)
                else:
                    alone = self.missed(fault, role)
                if alone:
                    how = r"(( at \S+)?: (no heartbeat|cannot connect)| is stopped and was not)"
                    found.append((role, fault, self.first(role, how, fault.at, 60)))
        return found


def measure(found, limit, what, began=0):
    """Returns "in N of M cases, median S, worst S", and the cases that nobody named or that took longer."""
    times = sorted(seconds for _, _, seconds in found if seconds is not None)
    text = f"{what}: named {len(times)} of {len(found)}"
    if times:
        text += f", median {statistics.median(times):.2f} s, worst {times[-1]:.2f} s"
    late = [f"{role}, {fault.text()} (at {fault.at - began:.1f}): " + ("never" if seconds is None else f"{seconds:.2f} s")
            for role, fault, seconds in found if seconds is None or seconds > limit]
    return text, late
