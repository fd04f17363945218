"""The judge: carries out batches of tasks within the time there is, and keeps the trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vectorfield._progress import report
from vectorfield.tuning.bench import Bench
from vectorfield.tuning.budget import Budget
from vectorfield.tuning.jobs import carry_out_all
from vectorfield.tuning.study import Record
from vectorfield.tuning.tasks import Task, best_ridge
from vectorfield.tuning.trials import Trial

__all__ = ["Judge", "ranked"]


class Judge:
    """Judges tasks and keeps a log of the trials.

    The tasks of a batch do not know of each other. They begin from the same number of substeps of
    the integrator on each bench, which is raised between batches only, to what the best task of
    the batch needed. So neither the order inside a batch nor who carries it out matters.

    Args:
        budget: the time.
        n_jobs: how many processes judge small tasks side by side.
        record: trials of earlier runs, taken in place of judging them; new ones are added.
    """

    def __init__(
        self, budget: Budget, *, n_jobs: int | None = None, record: Record | None = None
    ) -> None:
        self.budget = budget
        self.trials: list[Trial] = []
        self._n_jobs, self._record = n_jobs, record
        self._floors: dict[Bench, int] = {}
        self._shown = _Shown(budget)

    def __call__(self, bench: Bench, tasks: Iterable[Task], *, done: float) -> list[list[Trial]]:
        """Judge a batch; return the trials of each task, none of those that time did not allow.

        ``done`` is the share of the search that lies behind in the end.
        """
        batch = list(tasks)
        floor = self._floors.get(bench, 1)
        groups: list[list[Trial]] = [[] for _ in batch]
        new = []
        for place, task in enumerate(batch):
            self._shown.tell(task.stage)
            found = None if self._record is None else self._record.find(bench, task, floor)
            if found is None:
                new.append(place)
            else:
                groups[place] = found
                self._shown.add(task.stage, found, done, len(batch))
        for answer in carry_out_all(
            bench,
            [batch[place] for place in new],
            floor,
            self.budget,
            n_jobs=self._n_jobs,
            first=not self.trials and not any(groups),
        ):
            place = new[answer.place]
            groups[place] = answer.trials
            if self._record is not None and answer.complete:
                self._record.keep(bench, batch[place], floor, answer.trials)
            self._shown.add(batch[place].stage, answer.trials, done, len(batch))
        self._shown.reach(done)
        self.trials += [trial for group in groups for trial in group]
        self._floors[bench] = self._settled(groups, floor)
        return groups

    def close(self) -> None:
        """Say that the search is over."""
        self._shown.end()

    @staticmethod
    def _settled(groups: Sequence[Sequence[Trial]], floor: int) -> int:
        best = ranked(groups)[:1]
        return max([floor, *(trial.substeps for trial in best if trial.ok)])


class _Shown:
    """What those who wait are told: the stage, trials so far, the best score, the share done."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._count, self._best = 0, float("inf")
        self._done = self._behind = 0.0
        self._stage = ""

    def tell(self, stage: str) -> None:
        """Report how far it is; a limit of time says so too."""
        self._stage, self._done = stage, max(self._done, self._budget.share)
        text = f"{self._count} trials"
        if self._best < float("inf"):
            text += f", best {self._best:.3g}"
        report(f"search: {stage}", self._done, text)

    def add(self, stage: str, trials: Sequence[Trial], until: float, count: int) -> None:
        """Count the trials of one task out of ``count`` of a batch."""
        self._count += len(trials)
        self._best = min([self._best, *(trial.score for trial in trials)])
        self._done = max(self._done, min(until, self._done + (until - self._behind) / count))
        self.tell(stage)

    def reach(self, until: float) -> None:
        """End a batch."""
        self._behind = max(self._behind, until)

    def end(self) -> None:
        """End the search."""
        self._done = 1.0
        self.tell(self._stage)


def ranked(groups: Iterable[Sequence[Trial]]) -> list[Trial]:
    """Return the best ridge of each group, best first."""
    return sorted((best_ridge(group) for group in groups if group), key=lambda t: t.score)
