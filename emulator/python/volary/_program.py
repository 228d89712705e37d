"""The volary program: where it is, and how it is called."""

import os
import shutil
import subprocess
import sysconfig
import warnings


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


def call(*args):
    """Runs the program and waits for it. What it warns of becomes a Python warning."""
    command = [program(), *map(os.fspath, args)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    message = done.stderr.strip()
    # 1: a claim fails, which is an answer.
    if done.returncode not in (0, 1):
        raise VolaryError(done.returncode, message)
    if message:
        warnings.warn(message, stacklevel=3)
