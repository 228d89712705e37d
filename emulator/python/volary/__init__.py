"""Runs experiments with the volary program, and reads their results.

    import volary
    lines = volary.run("quickstart.toml", "--repeat", "5", out="runs/quickstart")
    for line in lines:
        print(line["policy"], line["seed"], line["response_s"]["p99"])
    claims = volary.claims("runs/quickstart")

Results are dictionaries as `volary schema results` describes them. pandas reads the same files:
`pandas.read_json("runs/quickstart/summary.jsonl", lines=True)`, `pandas.read_parquet("runs/quickstart/jobs.parquet")`.
"""

import json
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

__all__ = ["VolaryError", "claims", "program", "results", "run"]


class VolaryError(Exception):
    """The program refused its input or could not finish; the text is what it said."""

    def __init__(self, status, message):
        super().__init__(message)
        #: Exit status: 2 for invalid usage or input, 3 if a run could not finish.
        self.status = status


def program():
    """The path of the program: `VOLARY` of the environment, that of this package, or the first on the path."""
    name = "volary" + (sysconfig.get_config_var("EXE") or "")
    places = [os.environ.get("VOLARY"), os.path.join(sysconfig.get_path("scripts"), name), shutil.which(name)]
    for place in filter(None, places):
        if os.path.isfile(place):
            return place
    raise FileNotFoundError("the program `volary` is not installed: `pip install volary`, or set VOLARY to its path")


def run(experiment, *args, out):
    """Runs an experiment file into the folder `out` and returns its results; `args` are those of `volary run`.

    A claim that fails is no error. Raises `VolaryError` if the experiment is refused or cannot finish.
    """
    command = [program(), "run", os.fspath(experiment), *map(str, args), "--out", os.fspath(out)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise VolaryError(done.returncode, done.stderr.strip())
    return results(out)


def results(folder):
    """The results of a run directory: a dictionary for each run, that is each cell, policy and seed."""
    return _lines(Path(folder) / "summary.jsonl")


def claims(folder):
    """The verdicts on the claims of the experiment of a run directory."""
    return _lines(Path(folder) / "claims.jsonl")


def _lines(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
