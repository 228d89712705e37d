#!/usr/bin/env python3
"""Conservative backfilling of rigid jobs: a job may overtake others if none of them is planned to start later for it.

All jobs that wait are planned again in the order of their arrival whenever something happens, each at the first moment
from which on enough cores are free for the time that it requested. A. W. Mu'alem and D. G. Feitelson, Utilization,
predictability, workloads, and user runtime estimates in scheduling the IBM SP2 with backfilling, IEEE Transactions on
Parallel and Distributed Systems 12(6), 2001.
"""

import volary
from fcfs import Fcfs


class Conservative(Fcfs):
    def decide(self):
        super().decide()
        plan = Plan(self.now, self.free(), self.releases())
        for job in list(self.line):
            if plan.free[0] == 0:
                return
            if plan.place(len(job.tasks), job.requested):
                self.start(job)


class Plan:
    """The number of free cores from each of some moments on, up to the next one."""

    def __init__(self, now, free, releases):
        self.times, self.free = [now], [free]
        for end, cores in sorted(releases):
            self.times.append(end)
            self.free.append(self.free[-1] + cores)

    def place(self, size, span):
        """Takes cores for a span at the first moment at which they are free, and returns whether they are free now."""
        first = 0
        for at, free in enumerate(self.free):
            if at > first and self.times[at] >= self.times[first] + span:
                break
            if free < size:
                first = at + 1
        # Otherwise nodes are down, and the moment is unknown.
        if first < len(self.times):
            for at in range(first, self.split(self.times[first] + span)):
                self.free[at] -= size
        return first == 0

    def split(self, time):
        """The index of a moment, which it adds if it is missing."""
        at = next((at for at, other in enumerate(self.times) if other >= time), len(self.times))
        if at == len(self.times) or self.times[at] != time:
            self.times.insert(at, time)
            self.free.insert(at, self.free[at - 1])
        return at


if __name__ == "__main__":
    volary.serve(Conservative)
