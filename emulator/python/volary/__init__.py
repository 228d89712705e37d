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

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from volary._program import VolaryError, call, program
from volary._tables import Figure, Run, claims, results
from volary.policy import Central, Job, Node, NodeView, Rng, Scheduler, Task, policy, serve

if TYPE_CHECKING:
    from volary._study import Kinds

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


def run(
    experiment: str | os.PathLike[str] | Mapping[str, Any],
    *args: object,
    out: str | os.PathLike[str] | None = None,
    policies: Mapping[str, Kinds] | None = None,
) -> Any:
    """Runs an experiment into the folder `out` and returns its results; `args` are those of `volary run`.

    The experiment is a file, or a dictionary of its contents, with paths relative to the current folder. `out` is a new
    temporary folder if it is left out, which lasts as long as the result.

    `policies` adds policies that this process serves, and has a `Run` returned as `load` does: a dictionary of labels
    and of subclasses of `Central` or `Scheduler`, decorated functions, or pairs of a `Scheduler` and a `Node`. If one
    of them raises an exception, the `VolaryError` has it as its cause. `--resume` repeats their runs, because a class can
    have changed unnoticed.

    A claim that fails is no error. Raises `VolaryError` if the experiment is refused or cannot finish;
    `volary.load(error.out)` has what was measured.
    """
    from volary import _study

    # It is removed with the object that holds it.
    folder = None if out else tempfile.TemporaryDirectory(prefix="volary-")
    out = out or os.path.join(folder.name if folder else "", "run")
    try:
        _study.run(experiment, list(map(str, args)), out, policies or {})
    except VolaryError as error:
        error.out, error._folder = os.fspath(out), folder
        raise
    if policies is None:
        return results(out)
    ran = Run(out)
    ran._folder = folder
    return ran


def load(folder: str | os.PathLike[str]) -> Run:
    """A study directory as a `Run`: pandas frames, and figures."""
    return Run(folder)


def __getattr__(name: str) -> Any:
    # gymnasium is imported only where it is used.
    if name != "Env":
        raise AttributeError(f"module 'volary' has no attribute {name!r}")
    from volary._env import Env

    return Env
