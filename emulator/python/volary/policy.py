"""Policies in Python: classes and a decorator for schedulers that volary asks over standard input and output.

A policy is one of three things, from the smallest to the largest:

- a function of a task and the cluster that returns a node, decorated with `@volary.policy`;
- a subclass of `Central`: one scheduler that sees all jobs and nodes, and is asked once an instant;
- a subclass of `Scheduler`, and of `Node` if nodes take part: actors that know only what messages tell them.

`serve` answers volary until the run is over. All times and durations are seconds.
"""

from __future__ import annotations

import difflib
import json
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import (
    Any,
    Callable,
    ClassVar,
    NoReturn,
)

from volary import _serve
from volary._random import Membership, Rng

__all__ = ["Central", "Job", "Node", "NodeView", "Rng", "Scheduler", "Task", "policy", "serve"]

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class Task(tuple[int, int]):
    """A task of a job. It equals and hashes like the pair (number of the job, index within the job).

    Messages carry tasks as such pairs.
    """

    #: Its job.
    job: Job
    #: The expected time that it takes on a healthy core, seconds.
    estimate: float
    #: The node that has it, as far as this scheduler knows.
    node: NodeView | None
    #: Whether it needs a node.
    waits: bool
    #: Since when it needs a node, or has been at its node, seconds.
    since: float
    #: Whether it is suspended at its node.
    suspended: bool
    #: Whether its next launch repairs a loss: the node that had it is gone.
    lost: bool
    #: Whether it is finished. A later copy can still be at a node then, until it is preempted or leaves.
    finished: bool

    def __new__(cls, job: Job, index: int, estimate: float) -> Task:
        """Task `index` of `job`, which needs a node."""
        task = super().__new__(cls, (job.number, index))
        task.job, task.estimate, task.node, task.waits = job, estimate, None, True
        task.since, task.lost, task.finished, task.suspended = job.since, False, False, False
        return task

    @property
    def index(self) -> int:  # type: ignore[override]
        """Its index within the job."""
        return self[1]


class Job:
    """A job that has not ended, with its tasks."""

    def __init__(self, now: float, event: dict[str, Any]) -> None:
        #: Its number.
        self.number: int = event["job"]
        #: When this scheduler got it, seconds.
        self.since = now
        #: When it arrived at its client, seconds.
        self.arrival: float = event["arrival"]
        #: The mean of the estimates of its tasks, seconds.
        self.estimate: float = event["estimate"]
        #: The number of its class.
        self.job_class: int = event["class"]
        #: When it should have ended, seconds; None if it has no deadline.
        self.deadline: float | None = event.get("deadline")
        #: Whether its tasks have equal work and should start together.
        self.gang: bool = event.get("gang", False)
        #: Whether it was killed because it ran longer than requested.
        self.killed = False
        #: What the trace knows of it, such as user, name and queue: numbers that are equal where the values are.
        self.features: dict[str, int] = event.get("features", {})
        estimates = event.get("estimates") or [self.estimate] * event["tasks"]
        #: The run time that its user requested, seconds; the longest estimate of its tasks if that is unknown.
        self.requested: float = event.get("requested") or max(estimates)
        #: Its tasks, in the order of their indices.
        self.tasks = [Task(self, index, estimate) for index, estimate in enumerate(estimates)]


class NodeView:
    """A node as a scheduler knows it."""

    __slots__ = ("cores", "load", "number", "reachable", "up")

    def __init__(self, number: int, cores: int) -> None:
        #: Its number.
        self.number = number
        #: The number of its cores.
        self.cores = cores
        #: The number of tasks that this scheduler has there, without suspended ones; those of others are unknown.
        self.load = 0
        #: Whether it is up, as far as the failure detector has noticed.
        self.up = True
        #: Whether messages reach it. After one came back it counts as unreachable for a second.
        self.reachable = True

    @property
    def free(self) -> int:
        """Its cores without a task of this scheduler; none while it is down or unreachable."""
        return max(self.cores - self.load, 0) if self.up and self.reachable else 0

    @property
    def name(self) -> str:
        """Its name as an actor, such as node:3."""
        return f"node:{self.number}"

    def __repr__(self) -> str:
        return f"<{self.name}: {self.load} tasks, {self.cores} cores{'' if self.up else ', down'}>"


class _Actor:
    """What schedulers and nodes have in common.

    A new object is made whenever the actor starts, so that a crash loses everything that it knew. All of the attributes
    below exist before `__init__` of the subclass is called, without arguments.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        known = [name for base in cls.__mro__[1:] for name in vars(base)]
        for name in vars(cls):
            near = difflib.get_close_matches(name, known, 1, 0.85) if name not in known else []
            if near and not name.startswith("_"):
                warnings.warn(f"{cls.__name__}.{name} overrides nothing: did you mean `{near[0]}`?", stacklevel=2)

    def _start(self, hello: dict[str, Any], name: str, event: dict[str, Any]) -> None:
        #: The actor's name, such as scheduler:0.
        self.name = name
        #: The emulated time, seconds.
        self.now = 0.0
        #: The number of restarts of the actor.
        self.epoch: int = event["epoch"]
        #: The table `parameters` of the experiment.
        self.parameters: dict[str, Any] = hello.get("parameters") or {}
        #: Number of schedulers.
        self.schedulers: int = hello["schedulers"]
        #: Whether datagrams can be lost.
        self.lossy: bool = hello.get("lossy", True)
        self._seed = int(event["seed"])
        self._timers = 0
        self._do: list[str] = []
        self._took: float | None = None

    @cached_property
    def rng(self) -> Rng:
        """The random numbers of the actor. With any other source, runs of one seed differ."""
        return Rng(self._seed)

    def after(self, span: float) -> float:
        """The time `span` seconds from now. Like all times of volary it is rounded to nanoseconds, so that it compares
        exactly with the time at which a timer of that span goes off."""
        return round(self.now + span, 9)

    def timer(self, after: float) -> int:
        """Arms a timer and returns its number, with which `timer_fired` is called. Timers are not cancelled."""
        self._timers = number = (self._timers + 1) % (1 << 31)
        self._do.append(f'{{"do":"timer","id":{number},"after":{_encode(after)}}}')
        return number

    def note(self, name: str, value: float) -> None:
        """Records a value for the results, a number from 0 on. Names have up to 16 letters, digits and underscores."""
        self._do.append(_encode({"do": "note", "name": name, "value": float(value)}))

    def send(self, to: NodeView | str, name: str, *values: Any, repair: bool = False) -> None:
        """Sends a message that `messages` declares. `repair` counts it among those that only a loss made necessary."""
        to = to if isinstance(to, str) else to.name
        action: dict[str, Any] = {"do": "send", "to": to, "name": name, "values": values}
        if repair:
            action["repair"] = True
        self._do.append(_encode(action))

    def timer_fired(self, number: int) -> None:
        """Hook: a timer of this life of the actor went off."""

    def message_received(self, sender: Any, name: str, *values: Any) -> None:
        """Hook: a message came. Schedulers see nodes as `NodeView`, others by name; tasks are pairs."""

    def message_returned(self, to: Any, name: str, *values: Any) -> None:
        """Hook: a stream message of this actor could not be delivered."""

    def _peer(self, name: str) -> Any:
        return name

    def _on_timer(self, event: dict[str, Any]) -> None:
        self.timer_fired(event["id"])

    def _on_message(self, event: dict[str, Any]) -> None:
        self.message_received(self._peer(event["from"]), event["name"], *_pairs(event["values"]))

    def _on_returned(self, event: dict[str, Any]) -> None:
        self.message_returned(self._peer(event["to"]), event["name"], *_pairs(event["values"]))

    def _hear(self, request: dict[str, Any]) -> None:
        """Takes in what has happened."""
        self.now = request["at"]
        for event in request["events"]:
            # The start has made this object.
            if event["event"] != "start":
                getattr(self, _HOOKS[event["event"]])(event)

    def _settle(self) -> None:
        """Called after all events of a request."""

    def _say(self) -> bytes:
        """The answer to a request."""
        actions, self._do = ",".join(self._do), []
        if self._took is None:
            return f'{{"do":[{actions}]}}\n'.encode()
        took, self._took = self._took, None
        return f'{{"took":{_encode(took)},"do":[{actions}]}}\n'.encode()


_HOOKS = {
    name: f"_on_{name}"
    for name in "job ready ended left killed down up unreachable reachable timer message returned launch".split()
}


def _pairs(values: list[Any]) -> Iterator[Any]:
    return (tuple(value) if isinstance(value, list) else value for value in values)


class Node(_Actor):
    """A node manager that takes part in a policy of level actor: volary's own, with messages and timers beside it."""

    #: Its running and waiting tasks; with free cores, minus their number.
    length: int = 0

    def launched(self, task: tuple[int, int]) -> None:
        """Hook: a task arrives. The node queues and runs it afterwards."""

    def peer_down(self, name: str) -> None:
        """Hook: another actor, such as scheduler:0, crashed."""

    def peer_up(self, name: str) -> None:
        """Hook: another actor is back."""

    def _hear(self, request: dict[str, Any]) -> None:
        self.length = request["length"]
        super()._hear(request)

    def _on_launch(self, event: dict[str, Any]) -> None:
        self.launched((event["job"], event["task"]))

    def _on_down(self, event: dict[str, Any]) -> None:
        self.peer_down(event["actor"])

    def _on_up(self, event: dict[str, Any]) -> None:
        self.peer_up(event["actor"])


class Scheduler(_Actor):
    """A scheduler of level actor. It must launch each task for which `task_ready` is called, at once or later."""

    _level: ClassVar[str] = "actor"
    #: Messages of the policy: name to (class, types of the fields), such as {"ask": ("datagram", ["task", "bool"])}.
    #: The class is datagram, which can be lost and doubled, or stream. Types are u8 to u64, i8 to i64, bool, job, task,
    #: actor and time; their bytes are at most 24 together.
    messages: ClassVar[dict[str, tuple[str, list[str]]]] = {}
    #: Whether a node counts as unreachable for a second after a launch to it came back.
    avoids_unreachable: ClassVar[bool] = True

    def _start(self, hello: dict[str, Any], name: str, event: dict[str, Any]) -> None:
        super()._start(hello, name, event)
        cores = hello["cores"]
        cores = [cores] * hello["nodes"] if isinstance(cores, int) else cores
        #: All nodes, as this scheduler knows them.
        self.nodes = [NodeView(number, count) for number, count in enumerate(cores)]
        #: The jobs that have not ended, by number.
        self.jobs: dict[int, Job] = {}
        self._members = Membership(len(self.nodes))
        # The tasks that the last answer launched; those of them that may have been launched after the events that are
        # being taken in.
        self._launched: set[Task] = set()
        self._late: set[Task] = set()

    def _hear(self, request: dict[str, Any]) -> None:
        self._late, self._launched = self._launched if "late" in request else set(), set()
        super()._hear(request)

    def sample(self, count: int) -> list[NodeView]:
        """Distinct random nodes that are up; all of them, in random order, if fewer than `count` are."""
        return [self.nodes[number] for number in self._members.sample(self.rng.below, count)]

    def waiting(self, task: tuple[int, int]) -> Task | None:
        """The task with this pair of numbers, if it needs a node."""
        job = self.jobs.get(task[0])
        found = job.tasks[task[1]] if job else None
        return found if found is not None and found.waits else None

    def all_waiting(self) -> list[Task]:
        """All tasks that need a node, in the order of their numbers."""
        return [task for number in sorted(self.jobs) for task in self.jobs[number].tasks if task.waits]

    def launch(self, task: Task, node: NodeView) -> None:
        """Sends a task that needs a node to one."""
        self._place(task, node)
        self._do.append(f'{{"do":"launch","job":{task[0]},"task":{task[1]},"node":{node.number}}}')

    def gang(self, job: Job, nodes: Sequence[NodeView]) -> None:
        """Sends all tasks of a job to nodes at once, the first to the first and so on; none may have run before."""
        if len(nodes) != len(job.tasks):
            raise ValueError(f"job {job.number} has {len(job.tasks)} tasks, and its gang has {len(nodes)} nodes")
        for task, node in zip(job.tasks, nodes):
            self._place(task, node)
        self._do.append(_encode({"do": "gang", "job": job.number, "nodes": [node.number for node in nodes]}))

    def preempt(self, task: Task) -> None:
        """Stops a task at its node. Its progress is lost, and it needs a node again; `task_ready` is not called."""
        if task.node is None:
            raise ValueError(f"task {task} is at no node")
        self._do.append(f'{{"do":"preempt","job":{task[0]},"task":{task[1]}}}')
        self._leave(task, waits=not task.finished)

    def suspend(self, task: Task) -> None:
        """Takes a task off its core until `resume`; it keeps its progress. The experiment has `suspend = true`."""
        if task.node is None or task.suspended:
            raise ValueError(f"task {task} is {'suspended already' if task.suspended else 'at no node'}")
        task.suspended = True
        task.node.load -= 1
        self._do.append(f'{{"do":"suspend","job":{task[0]},"task":{task[1]}}}')

    def resume(self, task: Task) -> None:
        """Lets a suspended task go on at its node. It queues there behind the tasks that wait for a core."""
        if task.node is None or not task.suspended:
            raise ValueError(f"task {task} is not suspended")
        task.suspended = False
        task.node.load += 1
        self._do.append(f'{{"do":"resume","job":{task[0]},"task":{task[1]}}}')

    def job_arrived(self, job: Job) -> None:
        """Hook: a job arrived. `task_ready` is called for each of its tasks afterwards."""

    def task_ready(self, task: Task) -> None:
        """Hook: a task needs a node, because its job arrived, or because the node that had it is gone or evicted it."""

    def task_ended(self, task: Task, node: NodeView | None) -> None:
        """Hook: a task is finished; at no node if this scheduler had given up the copy that ended."""

    def task_left(self, task: Task, node: NodeView) -> None:
        """Hook: a task left its node unfinished. `task_ready` follows, at once or later."""

    def job_ended(self, job: Job) -> None:
        """Hook: the last task of a job is finished, and `task_ended` was called before; or `job.killed`: it ran longer
        than `overrun` of the experiment allows, and its tasks have left their nodes."""

    def node_down(self, node: NodeView) -> None:
        """Hook: a node crashed. Its tasks wait again; `task_ready` is called for each of them afterwards."""

    def node_up(self, node: NodeView) -> None:
        """Hook: a node is back."""

    def node_reached(self, node: NodeView) -> None:
        """Hook: `node.reachable` has changed."""

    def peer_down(self, name: str) -> None:
        """Hook: a scheduler or client crashed."""

    def peer_up(self, name: str) -> None:
        """Hook: a scheduler or client is back."""

    def _peer(self, name: str) -> Any:
        role, _, number = name.partition(":")
        return self.nodes[int(number)] if role == "node" else name

    def _open(self, job: Job) -> None:
        self.jobs[job.number] = job

    def _place(self, task: Task, node: NodeView) -> None:
        if not isinstance(node, NodeView):
            raise TypeError(f"a task is launched on a node of `nodes`, not on {node!r}")
        if not task.waits:
            raise ValueError(f"task {task} does not need a node: it was launched before, or it has ended")
        task.waits, task.lost, task.node, task.since = False, False, node, self.now
        node.load += 1
        self._launched.add(task)

    def _drop(self, task: Task) -> None:
        """A task needs no node any more."""

    def _leave(self, task: Task, waits: bool) -> None:
        if task.node is not None:
            task.node.load -= not task.suspended
        task.node, task.waits, task.since, task.suspended = None, waits, self.now, False

    def _on_job(self, event: dict[str, Any]) -> None:
        job = Job(self.now, event)
        self._open(job)
        self.job_arrived(job)
        for task in job.tasks:
            # A hook may have launched it.
            if task.waits:
                self.task_ready(task)

    def _on_ready(self, event: dict[str, Any]) -> None:
        task = self.jobs[event["job"]].tasks[event["task"]]
        if task.node is not None and task not in self._late:
            return  # it has been launched since, after its node went down
        self._leave(task, waits=True)
        task.lost = event["lost"]
        self.task_ready(task)

    def _on_ended(self, event: dict[str, Any]) -> None:
        job = self.jobs[event["job"]]
        task = job.tasks[event["task"]]
        node = self.nodes[event["node"]] if "node" in event else None
        task.finished = True
        if task.node is node and node is not None:
            self._leave(task, waits=False)
        else:
            # An earlier copy has ended, of which this scheduler had given up hope; a later one leaves its node later.
            task.waits = False
            self._drop(task)
        self.task_ended(task, node)
        if event["last"]:
            for task in job.tasks:
                # A later copy of a finished task leaves its node after the job has ended.
                if task.node is not None and task.suspended:
                    task.node.load += 1
                    task.suspended = False
            del self.jobs[job.number]
            self.job_ended(job)

    def _on_killed(self, event: dict[str, Any]) -> None:
        job = self.jobs.pop(event["job"])
        for task in job.tasks:
            task.waits = False
            self._drop(task)
        job.killed = True
        self.job_ended(job)

    def _on_left(self, event: dict[str, Any]) -> None:
        job, node = self.jobs.get(event["job"]), self.nodes[event["node"]]
        task = job.tasks[event["task"]] if job else None
        if task is None:
            node.load = max(node.load - 1, 0)
            return
        if task.node is node:
            self._leave(task, waits=False)
            self.task_left(task, node)

    def _on_down(self, event: dict[str, Any]) -> None:
        peer = self._peer(event["actor"])
        if isinstance(peer, str):
            return self.peer_down(peer)
        self._members.down(peer.number)
        for number in sorted(self.jobs):
            for task in self.jobs[number].tasks:
                # A launch that is carried out later comes back by itself if the node is still down then.
                if task.node is peer and task not in self._late:
                    self._leave(task, waits=not task.finished)
                    task.lost = True
        peer.up = False
        peer.load = sum(task.node is peer and not task.suspended for task in self._late)
        self.node_down(peer)

    def _on_up(self, event: dict[str, Any]) -> None:
        peer = self._peer(event["actor"])
        if isinstance(peer, str):
            return self.peer_up(peer)
        self._members.up(peer.number)
        peer.up = peer.reachable = True
        self.node_up(peer)

    def _on_unreachable(self, event: dict[str, Any]) -> None:
        node = self.nodes[event["node"]]
        node.reachable = event["event"] == "reachable"
        self.node_reached(node)

    _on_reachable = _on_unreachable


class Central(Scheduler):
    """A scheduler that sees all jobs and nodes, and decides once an instant, after everything that happened then."""

    _level = "central"

    def _start(self, hello: dict[str, Any], name: str, event: dict[str, Any]) -> None:
        super()._start(hello, name, event)
        #: The tasks that need a node, in the order in which they became ready.
        self.queue = Queue()

    def decide(self) -> None:
        """Hook: launch, preempt and note as the policy wants."""

    def took(self, seconds: float) -> None:
        """Says how long this decision took in emulated time. Its actions are carried out then, and the next decision is
        taken no earlier."""
        self._took = seconds

    def _place(self, task: Task, node: NodeView) -> None:
        super()._place(task, node)
        self.queue.remove(task)

    def _drop(self, task: Task) -> None:
        self.queue.remove(task)

    def _leave(self, task: Task, waits: bool) -> None:
        super()._leave(task, waits)
        self.queue.remove(task)
        if waits:
            self.queue.append(task)

    def _open(self, job: Job) -> None:
        super()._open(job)
        for task in job.tasks:
            self.queue.append(task)

    def _settle(self) -> None:
        self.decide()


class Queue:
    """Tasks in order. Loops over it may launch tasks: they go on with the next one."""

    def __init__(self) -> None:
        # A dictionary would get slow: it keeps the places of entries that were removed at its beginning.
        self._tasks: OrderedDict[Task, None] = OrderedDict()

    def append(self, task: Task) -> None:
        """Adds a task at the end."""
        self._tasks[task] = None

    def remove(self, task: Task) -> None:
        """Removes a task, if it is there."""
        self._tasks.pop(task, None)

    def first(self, count: int) -> list[Task]:
        """The first tasks, at most `count`."""
        return [task for task, _ in zip(self._tasks, range(count))]

    def __iter__(self) -> Iterator[Task]:
        return iter(list(self._tasks))

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, task: object) -> bool:
        return task in self._tasks


def policy(function: Callable[[Task, Central], NodeView | None]) -> type[Central]:
    """Makes a policy of a function that chooses a node for a task, given the scheduler with its view of the cluster.

    Tasks are given to it in the order in which they became ready. If it returns None, this task and those behind it
    wait until something happens. In the program that volary has started, the policy is served at once: decorate the
    function at the end of the file.
    """

    class Decorated(Central):
        __doc__ = function.__doc__

        def decide(self) -> None:
            while self.queue:
                (task,) = self.queue.first(1)
                node = function(task, self)
                if node is None:
                    return
                self.launch(task, node)

    Decorated.__name__ = Decorated.__qualname__ = function.__name__
    if function.__module__ == "__main__" and _serve.is_asked():
        serve(Decorated)
    return Decorated


def serve(scheduler: type[Scheduler], node: type[Node] | None = None) -> NoReturn:
    """Answers volary, which has started this program, and ends the program when the run is over.

    `print` writes to the run's log meanwhile. An exception ends the run, with its traceback in the message.
    """
    _serve.program(_serve.Session(scheduler, node))
