"""Experiments as dictionaries, and policies that are served by the process that runs them."""

from __future__ import annotations

import itertools
import json
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Union

from volary._program import VolaryError, call
from volary._serve import Session, loop
from volary.policy import Node, Scheduler

#: A policy: its scheduler, or its scheduler and its node.
Kinds = Union[type[Scheduler], tuple[type[Scheduler], type[Node]]]


class Listener:
    """A Unix socket to which a run's process connects, and the entry of an experiment that starts such processes."""

    def __init__(self, kinds: Kinds, label: str, **more: Any) -> None:
        self._kinds = kinds if isinstance(kinds, tuple) else (kinds,)
        self.session()  # errors before the run
        self._folder = tempfile.TemporaryDirectory(prefix="volary-")
        path = os.path.join(self._folder.name, "policy")
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(path)
        self._socket.listen()
        self._label = label
        # Isolated: it needs nothing but the standard library. volary would read a word that is the path of a file.
        command = [sys.executable, "-I", str(Path(__file__).with_name("_bridge.py")), f"socket={path}"]
        level = self._kinds[0]._level
        #: The `[[policy]]` of the experiment. A second run would be seen by this process.
        self.entry = {"external": {"command": command, "level": level, "verify": False, **more}, "label": label}
        #: What went wrong in the policy.
        self.errors: list[BaseException] = []

    def session(self) -> Session:
        """The actors of another run."""
        return Session(*self._kinds)

    def accept(self, timeout: float | None = None) -> socket.socket | None:
        """The connection of the next run; None if it takes longer than `timeout` seconds, or this is closed."""
        self._socket.settimeout(timeout)
        try:
            connection = self._socket.accept()[0]
        except OSError:
            return None
        connection.settimeout(None)
        return connection

    def serve(self) -> None:
        """Serves every run that connects, each in a thread, until this is closed."""
        line = ""
        for number in itertools.count(1):
            connection = self.accept()
            if connection is None:
                break
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()
            line = f"volary: run {number} of {self._label}"
            print(line, end="\r", file=sys.stderr, flush=True)
        print(" " * len(line), end="\r", file=sys.stderr, flush=True)

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as requests, connection.makefile("wb") as answers:
            try:
                loop(self.session(), requests, answers)
            except BaseException as error:
                self.errors.append(error)

    def close(self) -> None:
        """Ends the accepting of connections."""
        # It wakes a thread that accepts; to close the socket does not.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._folder.cleanup()


@contextmanager
def written(experiment: Any, entries: Sequence[dict[str, Any]] = ()) -> Iterator[str]:
    """The path of an experiment file with further policies.

    A dictionary, or a file to which policies are added, is written to a temporary file: in the current folder, or
    beside the file, so that the files which it names are found.
    """
    if isinstance(experiment, Mapping):
        path = Path("experiment")
        text = toml({**experiment, "policy": [*experiment.get("policy", []), *entries]})
    elif entries:
        path = Path(experiment)
        text = path.read_text(encoding="utf-8")
        text += "".join(f"\n[[policy]]\n{toml(entry)}" for entry in entries)
    else:
        yield os.fspath(experiment)
        return
    handle, name = tempfile.mkstemp(prefix=f"{path.stem}-", suffix=".toml", dir=path.parent)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        yield name
    finally:
        os.unlink(name)


def run(experiment: Any, args: Sequence[str], out: str | os.PathLike[str], policies: Mapping[str, Kinds]) -> None:
    """Runs an experiment with further policies, each with its label."""
    with ExitStack() as stack:
        listeners = []
        for label, kinds in policies.items():
            listeners.append(listener := Listener(kinds, label))
            stack.callback(listener.close)
            threading.Thread(target=listener.serve, daemon=True).start()
        file = stack.enter_context(written(experiment, [listener.entry for listener in listeners]))
        try:
            call("run", file, *args, "--out", out)
        except VolaryError as error:
            raise error from next((error for listener in listeners for error in listener.errors), None)


def toml(table: Mapping[str, Any]) -> str:
    """A table as TOML, a key a line."""
    return "".join(f"{json.dumps(key)} = {_inline(value)}\n" for key, value in table.items() if value is not None)


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = (f"{json.dumps(key)} = {_inline(item)}" for key, item in value.items() if item is not None)
        return "{" + ", ".join(inside) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_inline, value)) + "]"
    # Numbers of data frames are NumPy's.
    value = value.item() if hasattr(value, "item") else value
    # JSON escapes characters as TOML does, but for those beyond its first plane, which stay as they are.
    return json.dumps(value if isinstance(value, (str, bool, int, float)) else str(value), ensure_ascii=False)
