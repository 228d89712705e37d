"""Random numbers of an actor, and samples of live nodes: the same as those of volary's own policies."""

from __future__ import annotations

import random
from typing import Callable

_WORD = (1 << 64) - 1


class Rng(random.Random):
    """The random numbers of an actor: SplitMix64, whose state volary hands out at the start of each life.

    All methods of `random.Random` (`choice`, `shuffle`, `expovariate`, ...) draw from it. A policy that uses no other
    source makes the same decisions in every run of a seed.
    """

    def __init__(self, state: int) -> None:
        self.state = state & _WORD

    def bits(self) -> int:
        """The next 64 random bits."""
        self.state = z = (self.state + 0x9E3779B97F4A7C15) & _WORD
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _WORD
        return z ^ (z >> 31)

    def below(self, bound: int) -> int:
        """A uniform whole number from 0 to `bound` - 1, without bias (Lemire's method). `bound` is below 2^32."""
        if not 0 < bound < 1 << 32:
            raise ValueError(f"a bound must be from 1 to 4294967295, not {bound}")
        while True:
            wide = (self.bits() >> 32) * bound
            low = wide & 0xFFFFFFFF
            if low >= bound or low >= (1 << 32) % bound:
                return wide >> 32

    def unit(self) -> float:
        """A uniform number from 0 to 1, without 1."""
        return (self.bits() >> 11) * 2.0**-53

    random = unit

    def getrandbits(self, k: int) -> int:
        """A whole number of `k` random bits."""
        words = -(-k // 64)
        return sum(self.bits() << (64 * word) for word in range(words)) >> (64 * words - k)

    def seed(self, *args: object) -> None:
        """Refused: the state comes from volary."""
        raise TypeError("volary seeds the random numbers of an actor")

    def getstate(self) -> tuple[int]:
        """The state of the generator."""
        return (self.state,)

    def setstate(self, state: tuple[int]) -> None:  # type: ignore[override]
        """Goes back to an earlier state of the generator."""
        (self.state,) = state


class Membership:
    """The numbers of the nodes that are up, with uniform samples without replacement."""

    #: The largest sample that rejects duplicates; larger ones shuffle a table.
    SMALL = 8

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        # The live nodes in arbitrary order, from the first crash or the first large sample on.
        self._live: list[int] | None = None
        self._down: set[int] = set()

    def __len__(self) -> int:
        return self._nodes - len(self._down)

    def pick(self, below: Callable[[int], int]) -> int | None:
        """A live node, uniformly; None if there is none."""
        return self._at(below(len(self))) if len(self) else None

    def sample(self, below: Callable[[int], int], count: int) -> list[int]:
        """Distinct live nodes; all of them, in random order, if fewer than `count` are up."""
        alive = len(self)
        count = min(count, alive)
        out: list[int] = []
        if count <= self.SMALL and 2 * count <= alive:
            while len(out) < count:
                node = self._at(below(alive))
                if node not in out:
                    out.append(node)
            return out
        live = self._table()
        for i in range(count):
            j = i + below(alive - i)
            live[i], live[j] = live[j], live[i]
        return live[:count]

    def down(self, node: int) -> None:
        """Removes a node that crashed."""
        if node not in self._down:
            self._table().remove(node)
            self._down.add(node)

    def up(self, node: int) -> None:
        """Adds a node that is back."""
        if node in self._down:
            self._down.remove(node)
            self._table().append(node)

    def _at(self, i: int) -> int:
        return i if self._live is None else self._live[i]

    def _table(self) -> list[int]:
        if self._live is None:
            self._live = list(range(self._nodes))
        return self._live
