"""`Search`: choose what a plan leaves open, on held-out trajectories."""

from __future__ import annotations

from dataclasses import dataclass, field

from vectorfield._settings import check_integer, check_real
from vectorfield.plan import Plan
from vectorfield.trajectories import Trajectories
from vectorfield.tuning.folds import pooled
from vectorfield.tuning.objectives import Objective, Windowed
from vectorfield.tuning.run import run
from vectorfield.tuning.searcher import Searcher
from vectorfield.tuning.study import Study
from vectorfield.tuning.trials import Report

__all__ = ["Search"]


@dataclass(frozen=True)
class Search(Searcher):
    """How `MOCK` chooses what is left open.

    Plans are fitted to a part of the training data and judged on trajectories held out of it: the
    validation trajectories where they are given, else folds over the trajectories, else stretches
    of a single one. From a base plan the kernel is chosen first, by families, then its length
    scale; the loss, the rule, the prior and the smoothing one after the other; every time for a
    range of ridges at once. Where no field follows the data, one that returns to them is chosen,
    its rate, kernel and ridge together. The best few go on to more data. Where snapshots are noisy,
    fits of whole windows follow (`Shooting`), at the ridge of the highest marginal likelihood.
    Where errors stay large after one step and over whole trajectories, the best plan is refined on
    the errors of its rollouts (`Rollouts`), for a number of iterations that is chosen like the
    rest.

    What cannot be fitted or runs away is a trial like others, with its status.

    Args:
        objective: what is made of the errors on held-out windows.
        folds: how many, where there are no validation trajectories; large data have one.
        max_time: seconds after which no further trial begins; None for no limit.
        random_state: seed of who is held out.
        n_jobs: how many processes judge small fits side by side, as in scikit-learn: None is one,
            -1 as many as there are cores. Large fits have all cores, one after the other. The
            results do not depend on it.
        study: `Study`, to keep the trials and to go on where an earlier run was stopped.
        pool: take validation trajectories for more training data: all are judged on in turn, by
            folds, and the final fit has all of them. A choice made on a small validation part
            may be off by more than the plans differ. Without, validation trajectories are judged
            on and never learned from.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 6.0, 61)
        >>> xs = [a * np.stack([np.cos(t), -np.sin(t)], axis=1) for a in (0.5, 1.0, 1.5, 2.0)]
        >>> model = vf.MOCK(vf.kernels.Gaussian(), search=vf.Search(folds=2)).fit(xs, t)
        >>> model.ridge_ < 1e-6, model.report_.skill > 0.99
        (True, True)
    """

    objective: Objective = field(default_factory=Windowed)
    folds: int = 4
    max_time: float | None = None
    random_state: int = 0
    n_jobs: int | None = None
    study: Study | None = None
    pool: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.objective, Objective):
            raise TypeError(
                f"objective must be an Objective such as Windowed(), got {self.objective!r}"
            )
        check_integer("folds", self.folds, at_least=2)
        if self.max_time is not None:
            check_real("max_time", self.max_time, above=0.0)
        check_integer("random_state", self.random_state, at_least=0)
        if self.n_jobs is not None and check_integer("n_jobs", self.n_jobs, at_least=-(2**31)) == 0:
            raise ValueError("n_jobs must be None, a positive number or -1 for all cores, got 0")
        if self.study is not None and not isinstance(self.study, Study):
            raise TypeError(f"study must be a Study such as vf.tuning.Study(), got {self.study!r}")
        if not isinstance(self.pool, bool):
            raise TypeError(f"pool must be True or False, got {self.pool!r}")

    def parts(
        self, train: Trajectories, validation: Trajectories | None
    ) -> tuple[Trajectories, Trajectories | None]:
        """Return what is learned from and what is judged on: with ``pool`` all, and None."""
        if not self.pool or validation is None:
            return train, validation
        return pooled(train, validation), None

    def __call__(
        self,
        plan: Plan,
        left_open: frozenset[str],
        train: Trajectories,
        validation: Trajectories | None = None,
    ) -> Report:
        """Choose the parts of ``plan`` named in ``left_open``; the others stay as they are.

        ``report.best.plan`` has all parts, its ridge that for fitting all of ``train``; with
        ``pool`` all of what `parts` returns.
        """
        train, validation = self.parts(train, validation)
        return run(self, plan, left_open, train, validation)
