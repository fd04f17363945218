"""What the benchmarks share: this machine's own rate, peak memory, and a table."""

from __future__ import annotations

import platform
import resource
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np


def seconds(task: Callable[[], object], repeats: int = 1) -> float:
    """Return the shortest wall time of ``repeats`` runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        task()
        best = min(best, time.perf_counter() - start)
    return best


def product_rate(n: int = 5000, repeats: int = 3, dtype: type = np.float64) -> float:
    """Return this machine's rate of matrix products in floating-point operations a second."""
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(n, n)).astype(dtype) for _ in range(2))
    return 2.0 * n**3 / seconds(lambda: a @ b, repeats)


class PeakMemory:
    """Peak growth of the resident memory inside a ``with`` block, by sampling; in bytes."""

    def __enter__(self) -> PeakMemory:
        self._base = self.peak = _resident()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(0.01):
            self.peak = max(self.peak, _resident())

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self.peak = max(self.peak, _resident())

    @property
    def growth(self) -> int:
        return self.peak - self._base


def _resident() -> int:
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    cells = [[str(v) for v in row] for row in [header, *rows]]
    width = [max(len(row[j]) for row in cells) for j in range(len(header))]
    lines = [
        "| " + " | ".join(v.ljust(w) for v, w in zip(row, width, strict=True)) + " |"
        for row in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in width) + "|")
    return "\n".join(lines)


def verdict(value: float, limit: float, at_most: bool = True) -> str:
    """Say whether a figure meets its target."""
    met = value <= limit if at_most else value >= limit
    return "met" if met else "MISSED"


def machine() -> str:
    """Describe the machine and the versions in one line."""
    import scipy

    import vectorfield as vf

    cores = len(__import__("os").sched_getaffinity(0))
    return (
        f"{cores} cores, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}, vectorfield {vf.__version__}"
    )
