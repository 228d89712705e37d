"""The protocol between volary and a program that decides: a JSON object a line, and an answer to each."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

if TYPE_CHECKING:
    from volary.policy import Node, Scheduler, _Actor

#: The version of the protocol.
PROTOCOL = 1

_decode = json.JSONDecoder().decode


class Session:
    """The actors of one run that one process decides for."""

    def __init__(self, scheduler: type[Scheduler], node: type[Node] | None = None) -> None:
        from volary.policy import Node, Scheduler

        for kind, role, base in ((scheduler, "scheduler", Scheduler), (node, "node", Node)):
            if kind is not None and not (isinstance(kind, type) and issubclass(kind, base)):
                raise TypeError(
                    f"the {role} of a policy is a subclass of volary.{base.__name__} (the class, no object of it), or a "
                    f"function with the decorator @volary.policy, not {kind!r}"
                )
        if scheduler._level == "central" and node is not None:
            raise TypeError("nodes take part in policies of level actor only: derive from volary.Scheduler")
        self._scheduler, self._node = scheduler, node
        self._hello: dict[str, Any] = {}
        self._actors: dict[str, _Actor] = {}

    def answer(self, line: bytes) -> bytes:
        """The answer to a line."""
        actor = self.hear(line)
        if actor is None:
            return json.dumps({"hello": self._greeting}).encode() + b"\n"
        actor._settle()
        return actor._say()

    def hear(self, line: bytes) -> _Actor | None:
        """Takes a line in, and returns the actor that it is for; None for the greeting."""
        request = _decode(line.decode())
        if "hello" in request:
            self._greeting = self._greet(request["hello"])
            return None
        name, events = request["actor"], request["events"]
        if events[0]["event"] == "start":
            self._begin(name, events[0])
        actor = self._actors[name]
        actor._hear(request)
        return actor

    def _greet(self, hello: dict[str, Any]) -> dict[str, Any]:
        if hello["protocol"] != PROTOCOL:
            raise RuntimeError(f"volary speaks protocol {hello['protocol']}, and this package {PROTOCOL}: update it")
        self._hello = hello
        messages = self._scheduler.messages.items()
        return {
            "protocol": PROTOCOL,
            "level": self._scheduler._level,
            "nodes": self._node is not None,
            "unreachable": self._scheduler.avoids_unreachable,
            "messages": [{"name": name, "class": kind, "fields": fields} for name, (kind, fields) in messages],
        }

    def _begin(self, name: str, event: dict[str, Any]) -> None:
        """Makes an actor whose attributes exist before its `__init__` is called."""
        kind = self._node if name.startswith("node:") and self._node else self._scheduler
        self._actors[name] = actor = kind.__new__(kind)
        actor._start(self._hello, name, event)
        actor.__init__()  # type: ignore[misc]


def loop(session: Session, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers requests until there are no more."""
    for line in requests:
        answers.write(session.answer(line))
        answers.flush()


def is_asked() -> bool:
    """Whether volary has started this program."""
    return "VOLARY_PROTOCOL" in os.environ


def program(session: Session) -> NoReturn:
    """Answers volary on standard input and output, and exits."""
    if not is_asked():
        sys.exit(
            f"{sys.argv[0]} is a policy, which volary starts: write\n\n[[policy]]\n"
            f'external = {{ command = ["python3", "{sys.argv[0]}"], level = "{session._scheduler._level}" }}\n\n'
            "in an experiment file, and run that with `volary run`"
        )
    # Prints go to the log of the run, those of libraries too, and nothing else reads requests.
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    loop(session, requests, answers)
    sys.exit()
