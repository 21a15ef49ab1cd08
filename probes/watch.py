# SPDX-License-Identifier: Apache-2.0
"""The conditions around each row of a C probe that runs as a child: one window from row to row."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from probes.conditions import Row, Rules, Sampler, judge, should_stop, summarise
from reports.contract import JsonValue, Validity


@dataclass(frozen=True)
class Window:
    """Conditions of one row: the verdict, the figures behind it, and a sentence where it is too hot to go on."""

    validity: Validity
    conditions: dict[str, JsonValue]
    too_hot: str | None = None


class RowWatch:
    """Samples conditions while a C probe runs; :meth:`row_ended` gives the verdict on the row that just came.

    ``simulated``: the mock's time is modelled, so clocks and heat of this machine say nothing about it. ``npu``: the
    rows run on the NPU, so its clock must be known; rows of the CPUs do not need it. Use as a context manager around
    one child.
    """

    def __init__(self, root: Path = Path("/"), *, simulated: bool, npu: bool = True) -> None:
        self._sampler = Sampler(root)
        self._simulated = simulated
        self._npu = npu
        self._open = ExitStack()
        self._row: Row | None = None

    def __enter__(self) -> RowWatch:
        self._sampler.__enter__()
        self._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()
        self._sampler.__exit__(kind, error, trace)

    def row_ended(self, row_samples: tuple[float, ...], *, higher_is_better: bool = True) -> Window:
        """Close the window of the row that just ended, judge it, and open the next one."""
        self._open.close()
        samples = self._row.samples if self._row is not None else ()
        rules = Rules(
            simulated=self._simulated,
            clocks=frozenset({"npu", "ddr"} if self._npu else {"ddr"}),
            needed=frozenset({"npu"} if self._npu else ()),
            higher_is_better=higher_is_better,
        )
        window = Window(judge(samples, row_samples, rules), summarise(samples), should_stop(samples))
        self._begin()
        return window

    def _begin(self) -> None:
        self._open = ExitStack()
        self._row = self._open.enter_context(self._sampler.row())
