"""Runs experiments with the volary program, and reads their results.

    import volary
    lines = volary.run("quickstart.toml", "--repeat", "5", out="runs/quickstart")
    for line in lines:
        print(line["policy"], line["seed"], line["response_s"]["p99"])

Results are dictionaries as `volary schema results` describes them. With pandas and pyarrow (`pip install
volary[pandas]`) a study directory is data frames and figures:

    run = volary.load("runs/quickstart")
    run.runs.groupby("policy")["response_s.p99"].mean()
    run.jobs.groupby("policy")["response_s"].describe()
    run.plot("cdf").save("cdf.pdf")
"""

from importlib.util import find_spec

from volary._program import VolaryError, call, program
from volary._tables import Figure, Run, claims, results
from volary.policy import Central, Job, Node, NodeView, Rng, Scheduler, Task, policy, serve

__all__ = [
    "Central",
    "Figure",
    "Job",
    "Node",
    "NodeView",
    "Rng",
    "Run",
    "Scheduler",
    "Task",
    "VolaryError",
    "claims",
    "load",
    "policy",
    "program",
    "results",
    "run",
    "serve",
]


def run(experiment, *args, out):
    """Runs an experiment file into the folder `out` and returns its results; `args` are those of `volary run`.

    A claim that fails is no error. Raises `VolaryError` if the experiment is refused or cannot finish.
    """
    call("run", experiment, *map(str, args), "--out", out)
    return results(out)


def load(folder):
    """A study directory as a `Run`: pandas frames, and figures."""
    missing = [name for name in ("pandas", "pyarrow") if find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError(f"volary.load needs {' and '.join(missing)}: pip install 'volary[pandas]'")
    return Run(folder)
