"""The protocol, and what policies see of it, without the program."""

import io
import json
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import volary
from volary._random import Membership
from volary._serve import Session, loop

EXAMPLES = Path(__file__).parents[2] / "examples"
PACKAGE = str(Path(volary.__file__).parents[1])
SEED = "1234567890123456789"


def hello(**changes):
    """The greeting of a run with a scheduler and four nodes of two cores."""
    about = {"protocol": 1, "volary": "0.1.0", "level": "central", "parameters": {}, "schedulers": 1, "nodes": 4}
    return {"hello": {**about, "cores": 2, "kinds": 1, "lossy": True, "actors": ["scheduler:0"], **changes}}


def start(epoch=0):
    return {"event": "start", "epoch": epoch, "seed": SEED}


def job(number, tasks=1, **more):
    return {"event": "job", "job": number, "tasks": tasks, "estimate": 1.0, "arrival": 0.5, "class": 0, **more}


def ended(number, task, node, last=False):
    return {"event": "ended", "job": number, "task": task, "node": node, "last": last}


def left(number, task, node):
    return {"event": "left", "job": number, "task": task, "node": node}


def ready(number, task):
    return {"event": "ready", "job": number, "task": task, "lost": True}


class Run:
    """A run of a policy, as volary sees it."""

    def __init__(self, *kinds, **changes):
        self.session = Session(*kinds)
        self.greeting = self.ask(hello(**changes))["hello"]

    def ask(self, request):
        return json.loads(self.session.answer(json.dumps(request).encode()))

    def tell(self, at, *events, actor="scheduler:0", **more):
        """The actions for events."""
        return self.ask({"at": at, "actor": actor, **more, "events": events}).get("do")

    def actor(self, name="scheduler:0"):
        return self.session._actors[name]


def launch(number, task, node):
    return {"do": "launch", "job": number, "task": task, "node": node}


class FirstFree(volary.Central):
    """Each task to the first free node."""

    def decide(self):
        for task in self.queue:
            node = next((node for node in self.nodes if node.free), None)
            if node:
                self.launch(task, node)


class CentralTest(unittest.TestCase):
    def test_loads_follow_launches_ends_and_crashes(self):
        run = Run(FirstFree)
        self.assertEqual(run.tell(0, start(), job(0, 3)), [launch(0, 0, 0), launch(0, 1, 0), launch(0, 2, 1)])
        self.assertEqual([node.free for node in run.actor().nodes], [0, 1, 2, 2])
        self.assertEqual(run.tell(1, ended(0, 0, 0), job(1)), [launch(1, 0, 0)])
        down = [{"event": "down", "actor": "node:0"}, ready(0, 1), ready(1, 0)]
        self.assertEqual(run.tell(2, *down), [launch(0, 1, 1), launch(1, 0, 2)])
        self.assertEqual([node.free for node in run.actor().nodes], [0, 0, 1, 2])
        self.assertEqual(run.tell(3, {"event": "up", "actor": "node:0"}, job(2)), [launch(2, 0, 0)])
        run.tell(4, {"event": "unreachable", "node": 0}, ended(0, 1, 1), ended(0, 2, 1, last=True))
        self.assertEqual([node.free for node in run.actor().nodes], [0, 2, 1, 2])
        self.assertEqual(sorted(run.actor().jobs), [1, 2])

    def test_a_task_that_left_its_node_waits_until_it_is_ready(self):
        run = Run(FirstFree)
        run.tell(0, start(), job(0))
        self.assertEqual(run.tell(1, left(0, 0, 0)), [])
        self.assertEqual((run.actor().nodes[0].load, len(run.actor().queue)), (0, 0))
        self.assertEqual(run.tell(2, ready(0, 0)), [launch(0, 0, 0)])
        # An earlier copy has ended, which this scheduler had given up; the later one leaves its node afterwards.
        run.tell(3, {"event": "ended", "job": 0, "task": 0, "last": True})
        self.assertEqual((run.actor().nodes[0].load, run.actor().jobs), (1, {}))
        run.tell(4, left(0, 0, 0))
        self.assertEqual([node.load for node in run.actor().nodes], [0] * 4)

    def test_gangs_preemption_timers_notes_and_time_are_actions(self):
        class Mixed(volary.Central):
            def decide(self):
                if self.jobs:
                    self.gang(self.jobs[0], self.nodes[:2])
                    self.preempt(self.jobs[0].tasks[1])
                    self.fired = self.timer(0.25)
                    self.note("queue", len(self.queue))
                    self.took(0.002)

        run = Run(Mixed)
        answer = run.ask({"at": 0, "actor": "scheduler:0", "events": [start(), job(0, 2)]})
        self.assertEqual(answer["took"], 0.002)
        gang, preempt, timer, note = answer["do"]
        self.assertEqual(gang, {"do": "gang", "job": 0, "nodes": [0, 1]})
        self.assertEqual(preempt, {"do": "preempt", "job": 0, "task": 1})
        self.assertEqual(timer, {"do": "timer", "id": run.actor().fired, "after": 0.25})
        self.assertEqual(note, {"do": "note", "name": "queue", "value": 1.0})
        self.assertEqual([task.index for task in run.actor().queue], [1])

    def test_a_suspended_task_stays_at_its_node_and_holds_no_core(self):
        run = Run(FirstFree)
        run.tell(0, start(), job(0))
        scheduler = run.actor()
        task, node = scheduler.jobs[0].tasks[0], scheduler.nodes[0]
        scheduler.suspend(task)
        self.assertRaises(ValueError, scheduler.suspend, task)
        self.assertEqual((task.node, task.suspended, node.load), (node, True, 0))
        scheduler.resume(task)
        self.assertRaises(ValueError, scheduler.resume, task)
        self.assertEqual(node.load, 1)
        orders = [{"do": verb, "job": 0, "task": 0} for verb in ("suspend", "resume")]
        self.assertEqual(run.tell(1, job(1))[:2], orders)
        scheduler.suspend(task)
        others = node.load
        run.tell(2, left(0, 0, 0))
        self.assertEqual((task.suspended, node.load), (False, others))

    def test_a_killed_job_has_ended_and_its_tasks_wait_no_longer(self):
        run = Run(FirstFree)
        run.tell(0, start(), job(0, 2), job(1))
        scheduler = run.actor()
        victim, over = scheduler.jobs[0], []
        scheduler.job_ended = over.append
        run.tell(1, left(0, 0, 0), left(0, 1, 0), {"event": "killed", "job": 0})
        self.assertEqual((over, victim.killed, list(scheduler.queue)), ([victim], True, []))
        self.assertEqual(([node.load for node in scheduler.nodes], list(scheduler.jobs)), ([0, 1, 0, 0], [1]))

    def test_mistakes_of_a_policy_are_errors(self):
        run = Run(FirstFree)
        run.tell(0, start(), job(0, 2))
        scheduler = run.actor()
        task, node = scheduler.jobs[0].tasks[0], scheduler.nodes[3]
        for mistake in (
            lambda: scheduler.launch(task, node),
            lambda: scheduler.gang(scheduler.jobs[0], [node]),
            lambda: scheduler.note("queue", float("inf")),
            lambda: scheduler.timer(float("nan")),
        ):
            self.assertRaises(ValueError, mistake)
        scheduler.preempt(task)
        self.assertRaises(ValueError, scheduler.preempt, task)
        self.assertRaises(TypeError, Session, volary.Central, volary.Node)
        self.assertRaises(RuntimeError, Run, FirstFree, protocol=2)

    def test_a_restart_forgets_everything(self):
        run = Run(FirstFree)
        run.tell(0, start(), job(0))
        run.tell(5, start(epoch=1))
        self.assertEqual((run.actor().epoch, run.actor().jobs), (1, {}))
        self.assertEqual(run.tell(6, job(0)), [launch(0, 0, 0)])

    def test_a_job_has_what_volary_says_of_it(self):
        run = Run(FirstFree, cores=[1, 2, 3, 4])
        more = {"deadline": 9.0, "requested": 60, "gang": True, "features": {"user": 3}}
        run.tell(2, start(), job(0, 2, estimates=[1.0, 3.0], **more), job(1))
        jobs = run.actor().jobs
        self.assertEqual([task.estimate for task in jobs[0].tasks], [1.0, 3.0])
        self.assertEqual((jobs[0].deadline, jobs[0].requested, jobs[0].since, jobs[0].arrival), (9.0, 60, 2, 0.5))
        self.assertEqual((jobs[1].deadline, jobs[1].requested, jobs[1].gang), (None, 1.0, False))
        self.assertEqual((jobs[0].gang, jobs[0].features), (True, {"user": 3}))
        self.assertEqual([node.cores for node in run.actor().nodes], [1, 2, 3, 4])


class ActorTest(unittest.TestCase):
    def setUp(self):
        sys.path.insert(0, str(EXAMPLES / "python"))
        self.addCleanup(sys.path.remove, str(EXAMPLES / "python"))
        import reserved

        self.run_ = Run(reserved.ShortestOfFew, reserved.ReservingNode, level="actor", parameters={"probe_timeout": 1})

    def asked(self, actions):
        """The nodes that are asked, and the number of the question."""
        return [(action["to"], action["values"][1]) for action in actions if action["do"] == "send"]

    def answer(self, node, number, length, at=0):
        event = {"event": "message", "from": node, "name": "length", "values": [[7, 0], number, length]}
        return self.run_.tell(at, event)

    def test_the_shortest_of_three_queues_gets_the_task(self):
        self.assertEqual((self.run_.greeting["nodes"], len(self.run_.greeting["messages"])), (True, 2))
        (a, _), (b, _), (c, _) = self.asked(self.run_.tell(0, start(), job(7)))
        self.assertEqual(self.answer(a, 1, 4), [])
        self.assertEqual(self.answer(b, 1, -1), [])
        self.assertEqual(self.answer(b, 1, -1), [], "a datagram can arrive twice")
        self.assertEqual(self.answer(c, 1, 2), [launch(7, 0, int(b.partition(":")[2]))])

    def test_missing_answers_are_waited_for_only_so_long(self):
        # In floating point 0.14 + 1 is more than 1.14, at which the timer goes off.
        self.run_.tell(0.14, start(), job(7))
        again = self.run_.tell(1.14, {"event": "timer", "id": 1})
        self.assertEqual([number for _, number in self.asked(again)], [2, 2, 2])
        self.assertEqual(again[-1]["after"], 2)
        self.assertEqual(self.answer(self.asked(again)[0][0], 2, 9, at=1.2), [])
        self.assertEqual(len(self.run_.tell(3.14, {"event": "timer", "id": 2})), 1, "the one that answered")

    def test_a_task_of_a_crashed_node_is_placed_again(self):
        nodes = [node for node, _ in self.asked(self.run_.tell(0, start(), job(7)))]
        for length, node in enumerate(nodes):
            self.answer(node, 1, length)
        again = self.run_.tell(1, {"event": "down", "actor": nodes[0]}, ready(7, 0))
        self.assertEqual(len(self.asked(again)), 3)
        self.assertNotIn(nodes[0], [node for node, _ in self.asked(again)])
        self.assertTrue(all(action["repair"] for action in again if action["do"] == "send"))

    def test_a_place_counts_until_it_expires_or_its_task_comes(self):
        def ask(number, at=0.0, length=-1):
            values = [[number, 0], 1, False]
            event = {"event": "message", "from": "scheduler:0", "name": "ask", "values": values}
            (action,) = self.run_.tell(at, event, actor="node:2", length=length)
            self.assertEqual((action["to"], action["name"]), ("scheduler:0", "length"))
            return action["values"][2]

        self.run_.tell(0, start(), actor="node:2", length=-1)
        self.assertEqual([ask(7), ask(8), ask(8)], [-1, 0, 0])
        self.run_.tell(0, {"event": "launch", "job": 7, "task": 0}, actor="node:2", length=-1)
        self.assertEqual([ask(9, length=1), ask(10, at=0.1, length=1)], [2, 1])


class RandomTest(unittest.TestCase):
    def test_numbers_are_those_of_splitmix64(self):
        # The first outputs for the state 1234567, as published with the generator.
        rng = volary.Rng(1234567)
        published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
        self.assertEqual([rng.bits() for _ in published], published)
        self.assertEqual(volary.Rng(1234567).unit(), (published[0] >> 11) / 2**53)
        self.assertEqual(volary.Rng(1234567).getrandbits(8), published[0] >> 56)

    def test_methods_of_the_standard_library_draw_from_it(self):
        rngs = map(volary.Rng, [5, 5, 6])
        draws = [[rng.choice("abcdef"), rng.expovariate(1.0), rng.sample(range(99), 3)] for rng in rngs]
        self.assertEqual(draws[0], draws[1])
        self.assertNotEqual(draws[0], draws[2])

    def test_samples_are_distinct_live_nodes(self):
        rng, members = volary.Rng(3), Membership(20)
        members.down(3)
        members.down(3)
        for count in (0, 2, 5, 12, 19, 40):
            hits = [0] * 20
            for _ in range(2000):
                sample = members.sample(rng.below, count)
                self.assertEqual(len(set(sample)), min(count, 19))
                for node in sample:
                    hits[node] += 1
            expected = 2000 * min(count, 19) / 19
            self.assertEqual(hits.pop(3), 0)
            self.assertLess(max(abs(n - expected) for n in hits), 5 * expected**0.5 + 1)
        members.up(3)
        self.assertEqual(sorted(members.sample(rng.below, 40)), list(range(20)))


class ProgramTest(unittest.TestCase):
    def talk(self, command, requests):
        """How a program ends that is asked, and its answers."""
        environment = {**os.environ, "PYTHONPATH": PACKAGE, "VOLARY_PROTOCOL": "1"}
        lines = "".join(json.dumps(request) + "\n" for request in requests)
        done = subprocess.run(command, input=lines, capture_output=True, text=True, env=environment, check=False)
        return done, [json.loads(line) for line in done.stdout.splitlines()]

    def test_prints_and_reads_of_a_policy_do_not_disturb_the_protocol(self):
        text = """
import os, volary
@volary.policy
def mine(task, cluster):
    print("printed")
    os.system("echo from a child; cat")
    return cluster.nodes[0]
raise AssertionError("the program ends where the policy is served")
"""
        requests = [hello(), {"at": 0, "actor": "scheduler:0", "events": [start(), job(0)]}]
        done, answers = self.talk([sys.executable, "-c", text], requests)
        self.assertEqual((done.returncode, len(answers)), (0, 2), done.stderr)
        self.assertIn("printed", done.stderr)
        self.assertIn("from a child", done.stderr)

    def two_choices(self, command, file, lines):
        """Checks a program that should send each task to the less loaded of two nodes."""
        self.assertLessEqual(len((EXAMPLES / file).read_text().splitlines()), lines)
        events = [start(), job(0, 200), {"event": "down", "actor": "node:7"}]
        # One of these nodes has it.
        back = [*(left(0, 1, node) for node in range(100)), ready(0, 1)]
        more = [ended(0, 0, 1), *back, {"event": "up", "actor": "node:7"}, job(1, 5)]
        requests = [hello(nodes=100)]
        requests += [{"at": at, "actor": "scheduler:0", "events": some} for at, some in enumerate((events, more))]
        done, (_, first, second) = self.talk([*command, str(EXAMPLES / file)], requests)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        nodes = [action["node"] for action in first["do"]]
        self.assertEqual(
            [(action["job"], action["task"]) for action in first["do"]], [(0, task) for task in range(200)]
        )
        self.assertIn(max(map(nodes.count, nodes)), (3, 4), "a mean of two; random choices give about seven")
        self.assertNotIn(7, nodes)
        again = [(action["job"], action["task"]) for action in second["do"]]
        self.assertEqual(again, [(0, 1), *((1, task) for task in range(5))])

    def test_two_choices_prefers_the_less_loaded_node(self):
        self.two_choices([sys.executable], "python/two_choices.py", 15)

    @unittest.skipUnless(shutil.which("node"), "there is no interpreter of JavaScript")
    def test_the_same_in_javascript(self):
        self.two_choices(["node"], "javascript/two_choices.mjs", 60)

    def test_an_exception_ends_the_program_with_its_traceback(self):
        text = "import volary\n@volary.policy\ndef mine(task, cluster):\n    return cluster.missing\n"
        done, answers = self.talk(
            [sys.executable, "-c", text], [hello(), {"at": 0, "actor": "scheduler:0", "events": [start(), job(0)]}]
        )
        self.assertEqual((done.returncode, len(answers)), (1, 1))
        self.assertIn("missing", done.stderr)

    def test_a_program_that_nobody_asks_says_how_it_is_used(self):
        environment = {**os.environ, "PYTHONPATH": PACKAGE}
        command = [sys.executable, str(EXAMPLES / "python" / "reserved.py")]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, check=False
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("[[policy]]", done.stderr)

    def test_answers_are_written_one_by_one(self):
        class Answers(io.BytesIO):
            flushed = 0

            def flush(self):
                self.flushed += 1

        lines, answers = [hello(), {"at": 0, "actor": "scheduler:0", "events": [start()]}], Answers()
        loop(Session(FirstFree), io.BytesIO(b"".join(json.dumps(line).encode() + b"\n" for line in lines)), answers)
        self.assertEqual((answers.flushed, answers.getvalue().count(b"\n")), (2, 2))


if __name__ == "__main__":
    unittest.main()
