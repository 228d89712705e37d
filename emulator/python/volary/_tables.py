"""Study directories: their results, data frames and figures."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from volary._program import call

if TYPE_CHECKING:
    import pandas as pd


def results(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The results of a study directory: a dictionary for each run, that is each cell, policy and seed."""
    return _lines(Path(folder) / "summary.jsonl")


def claims(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The verdicts on the claims of the experiment of a study directory; none if it has no claims."""
    path = Path(folder) / "claims.jsonl"
    return _lines(path) if path.is_file() else []


class Run:
    """A study directory as pandas frames, each read when it is first used.

    The frames begin with the columns `run`, `policy`, `seed` and the swept keys. Times are emulated seconds.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        #: The study directory.
        self.folder = Path(folder)
        # A temporary folder lasts as long as this object.
        self._folder: object = None
        if not (self.folder / "manifest.json").is_file():
            raise FileNotFoundError(f"{self.folder} is no study directory: it has no manifest.json")

    def __repr__(self) -> str:
        return f"volary.Run({os.fspath(self.folder)!r})"

    @cached_property
    def summary(self) -> pd.DataFrame:
        """A row for each figure of each cell and policy: its mean, and the half-width of its 95 % interval."""
        return self._table("summary")

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row for each run, with a column for each figure of its results, such as `response_s.p99`."""
        return self._table("runs")

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """A row for each job."""
        return self._table("jobs")

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """A row for each stretch of a copy of a task on a core, of a sample of the jobs."""
        return self._table("tasks")

    @cached_property
    def staleness(self) -> pd.DataFrame:
        """Samples of what schedulers and nodes know of others; without rows for policies that keep no caches."""
        return self._table("staleness")

    @cached_property
    def decisions(self) -> pd.DataFrame:
        """Samples of decisions by caches; without rows for policies that keep none."""
        return self._table("decisions")

    @cached_property
    def cores(self) -> pd.DataFrame:
        """Slots and stretches of real cores; without rows unless copies burnt some."""
        return self._table("cores")

    @cached_property
    def claims(self) -> pd.DataFrame:
        """A row for each claim of the experiment, with its verdict."""
        pandas = _pandas()
        return pandas.DataFrame(claims(self.folder), columns=["says", "origin", "verdict", "measured"])

    def plot(self, what: str | None = None, **options: Any) -> Figure:
        """A figure as `volary plot` draws it; a notebook shows it.

        `what` is the kind of figure. Other arguments are the options of `volary plot` with `_` in place of `-`, such as
        `number`, `over`, `by`, `job`, `window`, `x_title` and `width`; `number` and `policy` may be lists, and `at` is
        a dictionary of swept keys and the values to show.
        """
        args = [] if what is None else [f"--what={what}"]
        for option, value in options.items():
            if isinstance(value, Mapping):
                values = [f"{key}={_value(item)}" for key, item in value.items()]
            elif isinstance(value, Sequence) and not isinstance(value, str):
                values = list(value)
            else:
                values = [] if value is None else [value]
            args += [f"--{option.replace('_', '-')}={value}" for value in values]
        return Figure(self.folder, args)

    def _table(self, name: str) -> pd.DataFrame:
        pandas = _pandas()
        with tempfile.TemporaryDirectory(prefix="volary-") as folder:
            call("export", self.folder, "--format=parquet", f"--table={name}", "--out", folder)
            return pandas.read_parquet(Path(folder) / f"{name}.parquet")


class Figure:
    """A figure of a run: `svg` is its text, and `save` writes it as SVG, PDF or PNG."""

    def __init__(self, folder: Path, args: Sequence[str]) -> None:
        self._command: list[str | os.PathLike[str]] = ["plot", folder, *args]
        with tempfile.TemporaryDirectory(prefix="volary-") as place:
            file = Path(place) / "figure.svg"
            self.save(file)
            #: The figure as SVG.
            self.svg = file.read_text(encoding="utf-8")

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the figure to a file, whose suffix is its format: .svg, .pdf or .png (300 dpi)."""
        call(*self._command, "--out", os.fspath(file))

    def _repr_svg_(self) -> str:
        return self.svg


def _pandas() -> Any:
    try:
        import pandas
        import pyarrow  # noqa: F401
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("data frames need pandas and pyarrow: pip install 'volary[pandas]'") from error
    return pandas


def _lines(path: Path) -> list[dict[str, Any]]:
    with open(path, encoding="utf-8") as lines:
        # A run that was killed may have left a part of a line.
        return [json.loads(line) for line in lines if line.endswith("\n")]


def _value(value: Any) -> str:
    """A swept value as experiment files have it; numbers of a frame are NumPy's."""
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
