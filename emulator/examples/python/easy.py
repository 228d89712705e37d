#!/usr/bin/env python3
"""EASY backfilling of rigid jobs: a job may overtake others if this does not delay the first job in the queue.

The first job has a reservation: the time at which enough running jobs will have used up their requested times. D. G.
Feitelson and A. M. Weil, Utilization and predictability in scheduling the IBM SP2 with backfilling, IPPS 1998.
"""

import volary
from fcfs import Fcfs


class Easy(Fcfs):
    def decide(self):
        super().decide()
        if not self.line:
            return
        free = self.free()
        start, spare = self.reservation(self.line[0], free)
        for job in self.line[1:]:
            size, ends_before = len(job.tasks), self.now + job.requested <= start
            if size <= free and (ends_before or size <= spare):
                self.start(job)
                free -= size
                spare -= 0 if ends_before else size

    def reservation(self, job, free):
        """The latest start of a job, and the number of cores that it leaves free then; `free` cores are free now."""
        start = None
        for end, cores in sorted(self.releases()):
            if start is not None and end > start:
                break
            free += cores
            if free >= len(job.tasks):
                start = end
        # While nodes are down there may be too few cores for the job; until they are back, any job that fits may run.
        return (start, free - len(job.tasks)) if start is not None else (float("inf"), 0)


if __name__ == "__main__":
    volary.serve(Easy)
