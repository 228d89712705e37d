#!/usr/bin/env python3
"""Conservative backfilling of rigid jobs: a job may overtake others if this delays the planned start of none of them.

After every event all waiting jobs are planned again, in the order of their arrival: each job at the earliest time from
which enough cores stay free for its requested time. A. W. Mu'alem and D. G. Feitelson, Utilization, predictability,
workloads, and user runtime estimates in scheduling the IBM SP2 with backfilling, IEEE Transactions on Parallel and
Distributed Systems 12(6), 2001.
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
    """The number of free cores over time: `free[i]` from `times[i]` to the next time."""

    def __init__(self, now, free, releases):
        self.times, self.free = [now], [free]
        for end, cores in sorted(releases):
            self.times.append(end)
            self.free.append(self.free[-1] + cores)

    def place(self, size, span):
        """Reserves cores for a span at the earliest possible time, and returns whether that time is now."""
        first = 0
        for at, free in enumerate(self.free):
            if at > first and self.times[at] >= self.times[first] + span:
                break
            if free < size:
                first = at + 1
        # If no time is found, too many nodes are down, and the job cannot be planned.
        if first < len(self.times):
            for at in range(first, self.split(self.times[first] + span)):
                self.free[at] -= size
        return first == 0

    def split(self, time):
        """The index of a time in `times`; a missing time is added."""
        at = next((at for at, other in enumerate(self.times) if other >= time), len(self.times))
        if at == len(self.times) or self.times[at] != time:
            self.times.insert(at, time)
            self.free.insert(at, self.free[at - 1])
        return at


if __name__ == "__main__":
    volary.serve(Conservative)
