"""`Rival`: the methods that every comparator has, the same as `MOCK`'s."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from vectorfield import _backend
from vectorfield._errors import DataError
from vectorfield._intake import is_frame
from vectorfield.comparators.attempts import Attempts
from vectorfield.metrics import evaluate
from vectorfield.simulate import rollout, simulate
from vectorfield.tables import states_from_frame
from vectorfield.trajectories import Trajectories, as_trajectories

__all__ = ["Rival"]


class Rival(BaseEstimator, ABC):  # type: ignore[misc]
    """A method to compare with: trajectories in, a field out, in the manners of `MOCK`.

    Attributes:
        field_: the learned field, a function (n, d) -> (n, d).
        report_: what was tried on held-out trajectories, and how it went (`Attempts`); None for a
            method without settings.
        n_features_in_, feature_names_in_: the coordinates.

    Example:
        >>> import vectorfield as vf
        >>> isinstance(vf.comparators.NullModel(), vf.comparators.Rival)
        True
    """

    def fit(self, x: Any, t: Any = None, *, validation: Any = None) -> Self:
        """Choose settings on held-out trajectories, and fit to all of x.

        Args:
            x: one (n, d) array, a list of (n_i, d) arrays, a `Trajectories`, or a long table with
                columns ``trajectory``, ``time`` and the features.
            t: for arrays: the step, one array of times, or a list of them.
            validation: trajectories to judge on; a `Trajectories`, a table, or a pair of such
                states and times. Without any, folds over the others.

        Raises:
            DataError: the data cannot be used, or no settings could be fitted.
        """
        trajectories = as_trajectories(x, t)
        held = None
        if validation is not None:
            pair = isinstance(validation, tuple) and len(validation) == 2
            held = as_trajectories(*validation) if pair else as_trajectories(validation)
        for part in (trajectories, held):
            if part is not None and not _backend.is_numpy(part.states):
                raise DataError("comparators run on NumPy arrays; pass the states as such")
        for name in ("field_", "report_"):  # a fit that fails leaves none, not that of older data
            self.__dict__.pop(name, None)
        self._check_settings()
        self.field_, self.report_ = self._learn(trajectories, held)
        self.n_features_in_ = trajectories.d
        self.feature_names_in_ = np.asarray(trajectories.feature_names, dtype=object)
        return self

    def predict(self, x: Any) -> Any:
        """Return f(x): (n, d) -> (n, d). A table is read by its columns' names."""
        check_is_fitted(self, "field_")
        names = tuple(self.feature_names_in_)
        points = np.asarray(states_from_frame(x, names) if is_frame(x) else x, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.n_features_in_:
            raise DataError(
                f"states must have shape (n, {self.n_features_in_}), got {points.shape}; give one "
                "row for each state"
            )
        if not np.isfinite(points).all():
            raise DataError(
                "states hold values that are not finite; fill them in or leave them out"
            )
        return self.field_(points)

    def simulate(self, x0: Any, t: Any, **options: Any) -> Any:
        """Return the states at times t of dx/dt = f(x), x(t_0) = x0, as `MOCK.simulate` does.

        ``x0`` (d,) gives (len(t), d); a batch (b, d) gives (b, len(t), d). Where a start stops
        early its states are NaN from there and a `SimulationWarning` says why.
        """
        check_is_fitted(self, "field_")
        return simulate(self.field_, x0, t, **options).x

    def score(self, x: Any, t: Any = None) -> float:
        """Return the skill of rollouts from the first samples: 1 - mean Err / mean null Err."""
        check_is_fitted(self, "field_")
        trajectories = as_trajectories(x, t)
        run = rollout(self.field_, trajectories, on_failure="ignore")
        return evaluate(trajectories, run.x).skill

    @abstractmethod
    def _learn(
        self, train: Trajectories, validation: Trajectories | None
    ) -> tuple[Any, Attempts | None]:
        """Return the field and what was tried."""

    def _check_settings(self) -> None:
        """Refuse settings that make no sense."""
