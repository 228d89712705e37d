"""Scheduling as an environment for reinforcement learning."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Generator
from socket import socket
from typing import Any

try:
    import gymnasium
    import numpy as np
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("volary.Env needs gymnasium: pip install 'volary[gym]'") from error

from volary._program import VolaryError, program
from volary._serve import Session
from volary._study import Listener, written
from volary.policy import Central, Job, NodeView, Task

_LABEL = "env"


class Env(gymnasium.Env):
    """A run of an experiment as an episode, in which an agent is the only scheduler.

    The agent is asked whenever a task and a core are free, and again after each launch. It sees

    - `free`: the free cores of the first `nodes` nodes;
    - `estimate` and `wait`: of the first `slots` tasks of the queue, seconds; zero where there is none;
    - `queue`: the number of tasks in the queue.

    Action 0 waits: until something happens, or for `tick` seconds if nothing runs. Action 1 + `slot` * `nodes` + `node`
    launches that task on that node; where there is no such task or no free core it waits, too. `info["action_mask"]`
    has a 1 for each action that can be carried out.

    The reward is minus the time that all tasks together have waited in the queue since the last action, seconds, or
    with `reward="response"` the time that they have been unfinished. Rewards of an episode add up to the whole of it.

    `experiment` is a file or a dictionary without a sweep. Its policies are left out. Each episode has another seed,
    which follows from the seed of `reset`; `info["seed"]` of `reset` is it.
    """

    def __init__(
        self, experiment: Any, *, nodes: int = 8, slots: int = 5, reward: str = "wait", tick: float = 1.0
    ) -> None:
        if reward not in ("wait", "response"):
            raise ValueError(f'reward is "wait" or "response", not {reward!r}')
        self._experiment, self._nodes, self._slots, self._reward, self._tick = experiment, nodes, slots, reward, tick
        self._sizes = {"free": nodes, "estimate": slots, "wait": slots, "queue": 1}
        box = gymnasium.spaces.Box
        seen: dict[str, Any] = {name: box(0, np.inf, (size,), np.float32) for name, size in self._sizes.items()}
        self.observation_space = gymnasium.spaces.Dict(seen)
        self._actions = 1 + nodes * slots
        self.action_space = gymnasium.spaces.Discrete(self._actions)
        self._end = contextlib.ExitStack()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins a run, whose seed follows from `seed` or from the one before."""
        super().reset(seed=seed)
        self.close()
        run_seed = int(self.np_random.integers(1 << 31))
        self._episode = self._begin(run_seed)
        step = next(self._episode, None)
        if step is None:
            raise ValueError("no task of the experiment ever waits while a core is free")
        self._seen, _, info = step
        return self._seen, {**info, "seed": run_seed}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Carries out an action, and goes on to the next one."""
        try:
            self._seen, reward, info = self._episode.send(int(action))
        except StopIteration as end:
            return self._seen, end.value, True, False, {"action_mask": np.eye(1, self._actions, dtype=np.int8)[0]}
        return self._seen, reward, False, False, info

    def close(self) -> None:
        """Ends the run."""
        self._end.close()

    def _begin(self, seed: int) -> Generator[tuple[Any, float, dict[str, Any]], int, float]:
        """Starts a run. The generator yields what the agent sees, the reward and more, and receives actions; it returns
        the last reward."""
        listener = Listener(_Agent, _LABEL, patience="1000h")
        self._end.callback(listener.close)
        out = self._end.enter_context(tempfile.TemporaryDirectory(prefix="volary-"))
        said = self._end.enter_context(tempfile.TemporaryFile())
        file = self._end.enter_context(written(self._experiment, [listener.entry]))
        command = [program(), "run", file, "--quiet", "--no-report", f"--policy={_LABEL}", f"--seed={seed}"]
        run = subprocess.Popen([*command, "--repeat=1", f"--out={out}/run"], stdout=subprocess.DEVNULL, stderr=said)
        self._end.callback(run.wait)
        self._end.callback(run.kill)
        connection = None
        while connection is None and run.poll() is None:
            connection = listener.accept(timeout=0.05)
        grown = 0.0
        if connection is not None:
            self._end.enter_context(connection)
            grown = yield from self._decisions(listener.session(), connection)
        if run.wait() not in (0, 1):
            said.seek(0)
            raise VolaryError(run.returncode, said.read().decode(errors="replace").strip())
        return -grown

    def _decisions(self, session: Session, connection: socket) -> Generator[Any, int, float]:
        """Takes the decisions of a run, and returns what has grown since the last one."""
        requests = connection.makefile("rb")
        connection.sendall(session.answer(requests.readline()))
        agent: Any = _Agent()
        last: float = 0.0
        for line in requests:
            before, agent = agent, session.hear(line)
            if agent is not before:
                # It has restarted, and adds up from zero again.
                last -= before.grown[self._reward]
            while (mask := self._mask(agent))[1:].any():
                grown = agent.grown[self._reward]
                action = yield self._observe(agent), last - grown, {"action_mask": mask}
                last = grown
                if action == 0 or not mask[action]:
                    agent.wait(self._tick)
                    break
                slot, node = divmod(action - 1, self._nodes)
                agent.launch(agent.queue.first(slot + 1)[slot], agent.nodes[node])
            connection.sendall(agent._say())
        return float(agent.grown[self._reward] - last)

    def _observe(self, agent: _Agent) -> dict[str, Any]:
        tasks = agent.queue.first(self._slots)
        seen: dict[str, list[float]] = {
            "free": [node.free for node in agent.nodes[: self._nodes]],
            "estimate": [task.estimate for task in tasks],
            "wait": [agent.now - task.since for task in tasks],
            "queue": [len(agent.queue)],
        }
        return {
            name: np.array(seen[name] + [0] * (size - len(seen[name])), np.float32)
            for name, size in self._sizes.items()
        }

    def _mask(self, agent: _Agent) -> Any:
        free = [node.free > 0 for node in agent.nodes[: self._nodes]]
        mask = np.zeros((self._slots, self._nodes), np.int8)
        mask[: len(agent.queue), : len(free)] = free
        return np.concatenate(([1], mask.ravel())).astype(np.int8)


class _Agent(Central):
    """A scheduler that adds up how long tasks wait and last, and is told what to do from outside."""

    def __init__(self) -> None:
        #: The seconds that all tasks together have waited, and have been unfinished.
        self.grown = {"wait": 0.0, "response": 0.0}
        self._unfinished = 0
        self._ticking = False

    def _hear(self, request: dict[str, Any]) -> None:
        span = request["at"] - self.now
        self.grown["wait"] += span * len(self.queue)
        self.grown["response"] += span * self._unfinished
        super()._hear(request)

    def job_arrived(self, job: Job) -> None:
        self._unfinished += len(job.tasks)

    def task_ended(self, task: Task, node: NodeView | None) -> None:
        self._unfinished -= 1

    def timer_fired(self, number: int) -> None:
        self._ticking = False

    def wait(self, tick: float) -> None:
        """Has something happen after a while, where nothing runs whose end would."""
        if not self._ticking and not any(node.load for node in self.nodes):
            self._ticking = True
            self.timer(tick)
