"""The judge: carries out batches of tasks within the time there is, and keeps the trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vectorfield._progress import report
from vectorfield.tuning.bench import Bench
from vectorfield.tuning.budget import Budget
from vectorfield.tuning.tasks import Task, carry_out
from vectorfield.tuning.trials import Trial

__all__ = ["Judge", "ranked"]


class Judge:
    """Judges tasks and keeps a log of the trials.

    The tasks of a batch do not know of each other. They begin from the same number of substeps of
    the integrator on each bench, which is raised between batches only, to what the best task of
    the batch needed. So neither the order inside a batch nor who carries it out matters.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.trials: list[Trial] = []
        self._floors: dict[Bench, int] = {}

    def __call__(self, bench: Bench, tasks: Iterable[Task], *, done: float) -> list[list[Trial]]:
        """Judge a batch; return the trials of each task, none of those that time did not allow.

        ``done`` is the share of the search that lies behind.
        """
        batch = list(tasks)
        floor = self._floors.get(bench, 1)
        groups: list[list[Trial]] = []
        for task in batch:
            if self.budget.over() and (self.trials or any(groups)):
                groups.append([])
                continue
            report("search", done)
            found, _ = carry_out(bench, task, floor, self.budget.over)
            groups.append(found)
        self.trials += [trial for group in groups for trial in group]
        self._floors[bench] = self._settled(groups, floor)
        return groups

    @staticmethod
    def _settled(groups: Sequence[Sequence[Trial]], floor: int) -> int:
        best = ranked(groups)[:1]
        return max([floor, *(trial.substeps for trial in best if trial.ok)])


def ranked(groups: Iterable[Sequence[Trial]]) -> list[Trial]:
    """Return the best ridge of each group, best first."""
    best = [min(group, key=lambda t: t.score) for group in groups if group]
    return sorted(best, key=lambda t: t.score)
