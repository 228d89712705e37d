"""The examples for rigid jobs, on a cluster that is simulated here: no network, no faults but those of the test."""

import heapq
import json
import sys
import unittest
from pathlib import Path

from volary._serve import Session

EXAMPLES = Path(__file__).parents[2] / "examples" / "python"


def starts(policy, jobs, cores=4, crash=None):
    """When each task of each job starts first; jobs are (arrival, tasks, run time, requested time).

    `crash` is (time, node): the node goes down then and is back a second later. All nodes have one core.
    """
    session = Session(policy)

    def ask(request):
        return json.loads(session.answer(json.dumps(request).encode()))

    about = {"protocol": 1, "level": "central", "schedulers": 1, "nodes": cores, "cores": 1, "lossy": False}
    ask({"hello": about})
    # Ends before arrivals, and arrivals in order.
    inputs = [(arrival, 1, number, "job", None) for number, (arrival, *_) in enumerate(jobs)]
    if crash:
        inputs += [(crash[0], 2, crash[1], "down", None), (crash[0] + 1, 2, crash[1], "up", None)]
    heapq.heapify(inputs)
    at, first, left = {}, {}, [tasks for _, tasks, *_ in jobs]
    events = [{"event": "start", "epoch": 0, "seed": "1"}]
    while inputs:
        now = inputs[0][0]
        while inputs and inputs[0][0] == now:
            _, _, number, kind, task = heapq.heappop(inputs)
            if kind == "job":
                arrival, tasks, run, requested = jobs[number]
                about = {"job": number, "tasks": tasks, "estimate": run, "arrival": arrival, "class": 0}
                events.append({"event": "job", **about, "requested": requested, "gang": True})
            elif kind == "ended" and at.get(task[0]) == task[1]:
                (job, index), (node, _) = task
                left[job] -= 1
                del at[task[0]]
                about = {"job": job, "task": index, "node": node, "last": left[job] == 0}
                events.append({"event": "ended", **about})
            elif kind != "ended":
                events.append({"event": kind, "actor": f"node:{number}"})
                for job, index in [lost for lost, (node, _) in at.items() if node == number]:
                    del at[job, index]
                    events.append({"event": "ready", "job": job, "task": index, "lost": True})
        answer = ask({"at": now, "actor": "scheduler:0", "events": events})
        events = []
        for action in answer["do"]:
            nodes = action["nodes"] if action["do"] == "gang" else [action["node"]]
            for index, node in enumerate(nodes, action.get("task", 0)):
                task = (action["job"], index)
                assert node not in [busy for busy, _ in at.values()], f"node {node} has two tasks at {now}"
                at[task] = (node, now)
                first.setdefault(task, now)
                heapq.heappush(inputs, (now + jobs[task[0]][2], 0, task[0], "ended", (task, (node, now))))
    assert not any(left), f"tasks are left: {left}"
    return [[first[number, index] for index in range(tasks)] for number, (_, tasks, *_) in enumerate(jobs)]


def of_jobs(policy, jobs, **more):
    """When each job starts; all of its tasks start together."""
    at = starts(policy, jobs, **more)
    assert all(len(set(tasks)) == 1 for tasks in at), at
    return [tasks[0] for tasks in at]


#: A job on three of four cores, one that needs all, and four that could overtake it.
JOBS = [
    (0, 3, 10, 10),
    (1, 4, 5, 5),
    (2, 1, 8, 8),  # ends when the second may start
    (3, 1, 9, 9),
    (4, 2, 3, 3),
    (5, 1, 4, 4),
]


class RigidTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, str(EXAMPLES))
        cls.addClassCleanup(sys.path.remove, str(EXAMPLES))
        from conservative import Conservative
        from easy import Easy
        from fcfs import Fcfs

        cls.fcfs, cls.easy, cls.conservative = Fcfs, Easy, Conservative
        cls.all = [Fcfs, Easy, Conservative]

    def test_nobody_overtakes_under_fcfs(self):
        self.assertEqual(of_jobs(self.fcfs, JOBS), [0, 10, 15, 15, 15, 18])

    def test_backfilling_fills_gaps_that_end_before_the_reservation(self):
        expected = [0, 10, 2, 15, 15, 15]
        self.assertEqual(of_jobs(self.easy, JOBS), expected)
        self.assertEqual(of_jobs(self.conservative, JOBS), expected)

    def test_easy_may_delay_all_but_the_first(self):
        # The fourth fits beside the first two, and then delays the third, which needs all cores.
        jobs = [(0, 3, 10, 10), (1, 2, 20, 20), (2, 4, 5, 5), (3, 1, 100, 100)]
        self.assertEqual(of_jobs(self.easy, jobs), [0, 10, 103, 3])
        self.assertEqual(of_jobs(self.conservative, jobs), [0, 10, 30, 35])

    def test_jobs_that_end_early_or_late_are_planned_again(self):
        # Times at which a nanosecond more is the same number.
        late = 1e8
        jobs = [(0, 4, 5, 10), (1, 3, 20, 10), (2, 2, 1, 1), (22, 1, 1, 1)]
        jobs = [(late + arrival, *more) for arrival, *more in jobs]
        for policy in self.all:
            self.assertEqual(of_jobs(policy, jobs)[:3], [late, late + 5, late + 25], policy.__name__)

    def test_a_lost_task_starts_again_before_the_line(self):
        for policy in self.all:
            at = starts(policy, [(0, 2, 10, 10), (1, 4, 5, 5), (2, 3, 5, 5)], crash=(4, 0))
            self.assertEqual(at[0], [0, 0], policy.__name__)
            self.assertEqual(at[1], [14] * 4, policy.__name__)

    def test_lost_tasks_of_a_killed_job_do_not_start_again(self):
        for policy in self.all:
            session = Session(policy)
            about = {"protocol": 1, "level": "central", "schedulers": 1, "nodes": 2, "cores": 1, "lossy": False}
            session.answer(json.dumps({"hello": about}).encode())
            job = {"event": "job", "tasks": 2, "estimate": 1, "arrival": 0, "class": 0}
            for at, events in enumerate(
                [
                    [{"event": "start", "epoch": 0, "seed": "1"}, {**job, "job": 0}, {**job, "job": 1}],
                    [{"event": "down", "actor": "node:0"}, {"event": "ready", "job": 0, "task": 0, "lost": True}],
                    [{"event": "left", "job": 0, "task": 1, "node": 1}, {"event": "killed", "job": 0}],
                    [{"event": "up", "actor": "node:0"}],
                ]
            ):
                request = {"at": at, "actor": "scheduler:0", "events": events}
                answer = json.loads(session.answer(json.dumps(request).encode()))
            self.assertEqual(answer["do"], [{"do": "gang", "job": 1, "nodes": [0, 1]}], policy.__name__)

    def test_a_job_that_can_never_start_is_an_error(self):
        for policy in self.all:
            self.assertRaisesRegex(ValueError, "needs 5 cores at once", starts, policy, [(0, 5, 1, 1)])


if __name__ == "__main__":
    unittest.main()
