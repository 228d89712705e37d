"""The volary program: where it is, and how it is called."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sysconfig
import warnings


class VolaryError(Exception):
    """The program refused its input or could not finish; the text is what it said."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        #: Exit status: 2 for invalid usage or input, 3 if a run could not finish.
        self.status = status
        #: The study directory of a run; it may have what finished before.
        self.out: str | None = None
        # A temporary folder lasts as long as this object.
        self._folder: object = None


def program() -> str:
    """The path of the program: `VOLARY` of the environment, that of this package, or the first on the path."""
    named = os.environ.get("VOLARY")
    if named and not os.path.isfile(named):
        raise FileNotFoundError(f"VOLARY is {named}, where there is no file: correct it, or unset it")
    name = "volary" + (sysconfig.get_config_var("EXE") or "")
    places = [named, os.path.join(sysconfig.get_path("scripts"), name), shutil.which(name)]
    for place in filter(None, places):
        if os.path.isfile(place):
            return place
    raise FileNotFoundError("the program `volary` is not installed: `pip install volary`, or set VOLARY to its path")


def call(*args: str | os.PathLike[str]) -> None:
    """Runs the program and waits for it. What it warns of becomes a Python warning.

    Ctrl-C interrupts the run as it does in a shell: what has finished is stored. A second one kills it.
    """
    command = [program(), *(os.fspath(arg) for arg in args)]
    # A session of its own: the terminal sends Ctrl-C to Python alone, and the program gets it once.
    done = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        message = done.communicate()[1].strip()
    except KeyboardInterrupt:
        done.send_signal(signal.SIGINT)
        try:
            said = done.communicate()[1].strip()
        except BaseException:
            done.kill()
            raise
        raise KeyboardInterrupt(said) from None
    except BaseException:
        done.kill()
        raise
    # 1: a claim fails, which is an answer.
    if done.returncode not in (0, 1):
        raise VolaryError(done.returncode, message)
    if message:
        warnings.warn(message, stacklevel=3)
