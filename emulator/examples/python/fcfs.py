#!/usr/bin/env python3
"""First come, first served, for rigid jobs: a job starts when every one of its tasks has a core.

No job overtakes another. A task whose node crashed starts again alone, on the next free core.
"""

import volary


class Fcfs(volary.Central):
    def __init__(self):
        self.line = []  # jobs that have not started, in the order of their arrival
        self.running = {}  # jobs that have started, with their expected ends
        self.lost = []  # tasks of started jobs that need a core again

    def job_arrived(self, job):
        cores = sum(node.cores for node in self.nodes)
        if len(job.tasks) > cores:
            raise ValueError(f"job {job.number} needs {len(job.tasks)} cores at once, and the cluster has {cores}")
        self.line.append(job)

    def task_ready(self, task):
        if task.job in self.running:
            self.lost.append(task)

    def job_ended(self, job):
        del self.running[job]
        if job.killed:
            self.lost = [task for task in self.lost if task.job is not job]

    def decide(self):
        while self.lost and self.free():
            self.launch(self.lost.pop(0), next(node for node in self.nodes if node.free))
        while self.line and len(self.line[0].tasks) <= self.free():
            self.start(self.line[0])

    def free(self):
        """The number of free cores."""
        return sum(node.free for node in self.nodes)

    def start(self, job):
        """Starts a job on the first free cores."""
        self.line.remove(job)
        self.running[job] = self.now + job.requested
        cores = [node for node in self.nodes for _ in range(node.free)]
        self.gang(job, cores[: len(job.tasks)])

    def releases(self):
        """Expected releases of cores: time and number. A job that runs longer than requested may end at any time."""
        for job, end in self.running.items():
            yield max(end, self.now), sum(task.node is not None for task in job.tasks)


if __name__ == "__main__":
    volary.serve(Fcfs)
