"""Experiments as dictionaries, policies that this process serves, and examples under the program, if there is one."""

import contextlib
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
from pathlib import Path

import volary
from volary._study import Listener, toml, written

EXAMPLES = Path(__file__).parents[2] / "examples"
PACKAGE = str(Path(volary.__file__).parents[1])

try:
    PROGRAM = volary.program()
except FileNotFoundError:
    PROGRAM = None

SMALL = {
    "title": "Small",
    "seed": 1,
    "cluster": {"nodes": 4},
    "workload": {"synthetic": {"jobs": 40, "tasks": 2, "interarrival": {"exponential": {"mean": "400ms"}}}},
    "service": {"demand": {"exponential": {"mean": "500ms"}}},
    "network": {"one_way": "1ms"},
}


class Tired(volary.Central):
    """A policy that gives up."""

    def job_arrived(self, job):
        raise LookupError(f"job {job.number} is too much")


@volary.policy
def first_free(task, cluster):
    """The first node with a free core."""
    return next((node for node in cluster.nodes if node.free), None)


def quiet():
    return contextlib.redirect_stderr(io.StringIO())


class WrittenTest(unittest.TestCase):
    def test_a_dictionary_is_written_as_toml(self):
        table = {"a": 'x "y" é 😀\n', "b": [1, 2.5, True, {"c": "d"}], "none": None}
        self.assertEqual(toml(table), '"a" = "x \\"y\\" é 😀\\n"\n"b" = [1, 2.5, true, {"c" = "d"}]\n')

    @unittest.skipIf(sys.version_info < (3, 11), "tomllib is new in Python 3.11")
    def test_toml_is_read_as_it_was_meant(self):
        import tomllib

        self.assertEqual(tomllib.loads(toml(SMALL)), SMALL)

    def test_policies_are_added_to_a_file_in_its_folder(self):
        entry = {"external": {"command": ["x"]}, "label": "mine"}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "some.toml"
            file.write_text("[[policy]]\nrandom = {}\n")
            with written(file, [entry]) as name:
                self.assertEqual(Path(name).parent, file.parent)
                self.assertIn('random = {}\n\n[[policy]]\n"external" = {"command" = ["x"]}', Path(name).read_text())
            self.assertEqual(os.listdir(folder), ["some.toml"])
            with written(file) as name:
                self.assertEqual(name, str(file))


class ListenerTest(unittest.TestCase):
    def serve(self, kinds, lines):
        listener = Listener(kinds, "mine")
        thread = threading.Thread(target=listener.serve)
        thread.start()
        with quiet():
            done = subprocess.run(
                listener.entry["external"]["command"], input=lines, capture_output=True, text=True, check=False
            )
        listener.close()
        thread.join()
        return listener, done

    def test_a_bridge_passes_lines_to_the_policy_and_back(self):
        about = {"protocol": 1, "level": "central", "schedulers": 1, "nodes": 4, "cores": 1}
        start = {"at": 0.0, "actor": "scheduler:0", "events": [{"event": "start", "epoch": 0, "seed": "1"}]}
        lines = "".join(json.dumps(line) + "\n" for line in ({"hello": about}, start))
        listener, done = self.serve(first_free, lines)
        self.assertEqual((done.returncode, listener.errors), (0, []), done.stderr)
        self.assertEqual(done.stdout.splitlines()[1], '{"do":[]}')
        self.assertEqual(listener.entry["external"]["level"], "central")

    def test_an_exception_of_the_policy_is_kept_and_ends_the_bridge(self):
        listener, done = self.serve(first_free, "nonsense\n")
        self.assertEqual((done.returncode, [type(error) for error in listener.errors]), (1, [json.JSONDecodeError]))
        self.assertIn("volary.run", done.stderr)


@unittest.skipUnless(PROGRAM, "there is no program `volary`: set VOLARY to its path")
class ProgramTest(unittest.TestCase):
    def test_policies_of_this_process_run_beside_others(self):
        class Actors(volary.Scheduler):
            def task_ready(self, task):
                self.launch(task, self.sample(1)[0])

        policies = {"mine": first_free, "actors": (Actors, volary.Node)}
        with quiet():
            run = volary.run({**SMALL, "policy": [{"random": {}}]}, "--repeat", 2, policies=policies)
        lines = volary.results(run.folder)
        self.assertEqual({line["policy"] for line in lines}, {"mine", "actors", "random"})
        self.assertEqual([line["jobs"]["finished"] for line in lines], [40] * 6)

    def test_figures_take_the_options_of_the_program(self):
        sweep = {"workload.synthetic.jobs": [20, 40]}
        experiment = {**SMALL, "policy": [{"sparrow": {}}, {"random": {}}], "sweep": sweep}
        with tempfile.TemporaryDirectory() as folder:
            volary.run(experiment, "--quiet", out=f"{folder}/run")
            run = volary.load(f"{folder}/run")
            self.assertIn("/run", repr(run))
            figure = run.plot("sweep", number=["p50", "p99"], by="policy", x_title="jobs <of> a run")
            self.assertIn("jobs &lt;of&gt; a run", figure.svg)
            job = run.plot("job", job=3, at={"workload.synthetic.jobs": 20}, policy="random")
            self.assertIn("job 3", job.svg)
            self.assertNotIn("sparrow", job.svg)

    def test_an_exception_of_a_policy_is_the_cause_of_the_error(self):
        with quiet(), self.assertRaises(volary.VolaryError) as raised:
            volary.run(SMALL, policies={"tired": Tired})
        self.assertIsInstance(raised.exception.__cause__, LookupError)

    def test_the_claims_of_the_examples_hold(self):
        environment = {**os.environ, "PYTHONPATH": PACKAGE}
        for name in ("experiment", "faults", "rigid"):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                command = [PROGRAM, "run", str(EXAMPLES / "python" / f"{name}.toml"), "--out", f"{folder}/run"]
                done = subprocess.run(
                    [*command, "--check", "--quiet"], capture_output=True, text=True, env=environment, check=False
                )
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_page_on_policies_in_python_works_as_it_stands(self):
        page = (Path(__file__).parents[3] / "docs" / "src" / "policies-in-python.md").read_text(encoding="utf-8")
        mine, experiment, shortest, asks = re.findall("```(?:python|toml)\n(.*?)```", page, re.DOTALL)[:4]
        with tempfile.TemporaryDirectory() as folder, quiet():
            Path(folder, "mine.py").write_text(mine)
            Path(folder, "mine.toml").write_text(experiment)
            names = {"__name__": "page"}
            exec(shortest + asks, names)
            policies = {"shortest": names["ShortestFirst"], "asks": (names["Asks"], names["Answers"])}
            with unittest.mock.patch.dict(os.environ, {"PYTHONPATH": PACKAGE}):
                fewer = "--set=workload.synthetic.jobs=300"
                run = volary.run(Path(folder, "mine.toml"), fewer, policies=policies)
        lines = {line["policy"]: line for line in volary.results(run.folder)}
        self.assertEqual({line["jobs"]["finished"] for line in lines.values()}, {300})
        p99 = {name: line["response_s"]["p99"] for name, line in lines.items()}
        self.assertLess(max(p99["mine"], p99["asks"]), p99["random"])
        self.assertLess(p99["shortest"], p99["random"])
        self.assertLess(lines["shortest"]["values"]["queue"]["mean"], 100)

    def test_runs_of_one_seed_are_equal(self):
        orders = []
        for _ in range(2):
            with quiet():
                run = volary.run(SMALL, policies={"mine": first_free})
            orders.append([line["engine"]["order_hash"] for line in volary.results(run.folder)])
        self.assertEqual(orders[0], orders[1])


@unittest.skipUnless(PROGRAM and importlib.util.find_spec("gymnasium"), "volary.Env needs the program and gymnasium")
class EnvTest(unittest.TestCase):
    def test_the_environment_fulfils_the_contract_of_gymnasium(self):
        from gymnasium.utils.env_checker import check_env

        for reward in ("wait", "response"):
            env = volary.Env(SMALL, nodes=4, slots=3, reward=reward)
            check_env(env, skip_render_check=True)
            env.close()

    def test_rewards_add_up_to_the_wait_of_the_same_decisions_without_an_environment(self):
        waits = []

        class Measured(volary.Central):
            def decide(self):
                for task in self.queue:
                    node = next((node for node in self.nodes if node.free), None)
                    if node:
                        waits.append(self.now - task.since)
                        self.launch(task, node)

        env = volary.Env(SMALL, nodes=4, slots=1)
        (_, info), total, ended = env.reset(seed=3), 0.0, False
        seed = info["seed"]
        while not ended:
            _, reward, ended, _, info = env.step(int(info["action_mask"][1:].argmax()) + 1)
            total += reward
        env.close()
        with quiet():
            volary.run(SMALL, "--seed", seed, policies={"measured": Measured})
        self.assertEqual(len(waits), 80)
        self.assertGreater(sum(waits), 1)
        self.assertAlmostEqual(-total, sum(waits), places=6)

    def test_an_agent_that_only_waits_pays_for_it_and_is_asked_again(self):
        env = volary.Env(SMALL, nodes=4, slots=1)
        env.reset(seed=1)
        steps = [env.step(0) for _ in range(300)]
        env.close()
        self.assertFalse(any(step[2] for step in steps))
        self.assertLess(min(step[1] for step in steps), -79, "80 tasks wait for a second")

    def test_a_restart_of_the_scheduler_takes_no_reward_back(self):
        crash = {"crash": {"who": ["scheduler:0"], "at": "400ms", "for": "200ms"}}
        env = volary.Env({**SMALL, "network": {**SMALL.get("network", {}), "fault": [crash]}}, nodes=4, slots=1)
        (_, info), rewards, ended = env.reset(seed=3), [], False
        while not ended:
            _, reward, ended, _, info = env.step(int(info["action_mask"][1:].argmax()) + 1)
            rewards.append(reward)
        env.close()
        self.assertLessEqual(max(rewards), 0)
        self.assertLess(sum(rewards), -1)

    def test_several_environments_run_at_once(self):
        import gymnasium

        many = gymnasium.vector.SyncVectorEnv([lambda: volary.Env(SMALL, nodes=4, slots=2)] * 3)
        seen, _ = many.reset(seed=1)
        self.assertEqual(seen["free"].shape, (3, 4))
        for _ in range(20):
            many.step(many.action_space.sample())
        many.close()

    def test_the_example_of_learning_beats_random_choices(self):
        environment = {**os.environ, "PYTHONPATH": PACKAGE}
        command = [sys.executable, str(EXAMPLES / "python" / "learn.py")]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        waits = {line.split(":")[0]: float(line.split()[1]) for line in done.stdout.splitlines()[1:]}
        self.assertLess(waits["learnt"], 0.8 * waits["random"])


if __name__ == "__main__":
    unittest.main()
