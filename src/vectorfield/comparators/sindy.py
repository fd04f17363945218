"""SINDy with polynomials, by the package pysindy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import comb
from typing import Any

import numpy as np

from vectorfield._settings import check_integer, check_real
from vectorfield.comparators.attempts import Attempts, Proposals, repeat, spread, tune
from vectorfield.comparators.derivatives import (
    Derivatives,
    Differences,
    Slopes,
    SmoothedDifferences,
    Splines,
    pysindy,
)
from vectorfield.comparators.polynomial import PolynomialField
from vectorfield.comparators.rival import Rival
from vectorfield.trajectories import Trajectories

__all__ = ["SINDy"]

FIRST = (0.01, 0.1)  # thresholds that every library and derivative is tried with
FINALISTS = 3
MOST_ROUNDS = 20  # of STLSQ

DERIVATIVES = (
    Differences(2),
    Differences(4),
    SmoothedDifferences(11),
    SmoothedDifferences(21),
    Splines(),
)


class SINDy(Rival):
    """Sparse identification of nonlinear dynamics (Brunton, Proctor and Kutz 2016).

    Slopes v_k estimated at the samples x_k are regressed on monomials, x' = Xi theta(x), by
    sequentially thresholded least squares: least squares with a ridge, coefficients below the
    threshold set to zero, again for the rest until nothing changes, at last without a ridge. The
    regression is pysindy's `SINDy` with `STLSQ` and `PolynomialLibrary`.

    Degree of the polynomials and threshold are chosen on held-out rollouts, as in the paper's
    comparison, and so is the way slopes are estimated: differences for clean samples, smoothed
    ones or splines for noisy samples. All degrees and derivatives are tried at two thresholds,
    then all thresholds with the best three.

    States are divided by their standard deviations, and time is in units of the typical slope, so
    that one threshold means the same everywhere; nothing is centred, which would fill monomials in.

    Cost: with q = C(d + degree, degree) monomials and T rounds, O(T d (P q^2 + q^3)) for each of
    some 60 candidates; memory P q. A call of the field O(n q d).

    Args:
        degrees: of the polynomials tried; the paper's comparison goes up to 3.
        thresholds: those tried, relative.
        derivatives: the ways to estimate slopes that are tried.
        alpha: pysindy's ridge within the rounds.
        max_terms: libraries with more monomials are not tried.
        folds: how many, where there are no validation trajectories.
        max_time: seconds after which nothing more is tried; None for no limit.
        random_state: seed of who is held out.

    Attributes:
        field_: a `PolynomialField` in the units of the data, with ``equations()``.
        model_: the fitted `pysindy.SINDy`, in scaled states and time.
        report_: what was tried.

    Example:
        >>> import numpy as np, vectorfield as vf
        >>> t = np.linspace(0.0, 5.0, 101)
        >>> starts = np.array([[2.0, 0.0], [0.5, 0.0], [-1.0, 1.0], [1.0, -2.0]])
        >>> xs = vf.simulate(vf.systems.VanDerPol(), starts, t).x
        >>> model = vf.comparators.SINDy().fit(list(xs[:3]), t, validation=(list(xs[3:]), t))
        >>> print(*model.field_.equations(2), sep="; ")
        x0' = x1; x1' = -x0 + x1 - x0^2 x1
    """

    def __init__(
        self,
        degrees: Sequence[int] = (1, 2, 3, 4, 5),
        thresholds: Sequence[float] = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3),
        *,
        derivatives: Sequence[Derivatives] = DERIVATIVES,
        alpha: float = 0.05,
        max_terms: int = 600,
        folds: int = 4,
        max_time: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.degrees = degrees
        self.thresholds = thresholds
        self.derivatives = derivatives
        self.alpha = alpha
        self.max_terms = max_terms
        self.folds = folds
        self.max_time = max_time
        self.random_state = random_state

    def _learn(
        self, train: Trajectories, validation: Trajectories | None
    ) -> tuple[PolynomialField, Attempts]:
        pysindy()  # say at once that it is missing
        regression = _Regression(self.alpha, self.max_terms)
        field, attempts = tune(
            self._proposals(),
            regression,
            train,
            validation,
            count=self.folds,
            random_state=self.random_state,
            max_time=self.max_time,
        )
        self.model_ = repeat(regression.fitted, train, attempts.best.settings)[0]
        return field, attempts  # type: ignore[return-value]

    def _proposals(self) -> Proposals:
        first = [v for v in self.thresholds if v in FIRST] or list(self.thresholds[:1])
        scores: dict[tuple[Derivatives, int], float] = {}
        for derivatives, degree in product(self.derivatives, self.degrees):
            for threshold in first:
                score = yield {
                    "degree": degree,
                    "threshold": threshold,
                    "derivatives": derivatives,
                }
                known = scores.get((derivatives, degree), np.inf)
                scores[derivatives, degree] = min(known, score)
        for derivatives, degree in sorted(scores, key=lambda pair: scores[pair])[:FINALISTS]:
            for threshold in self.thresholds:
                if threshold not in first:
                    yield {"degree": degree, "threshold": threshold, "derivatives": derivatives}

    def _check_settings(self) -> None:
        for name in ("degrees", "thresholds", "derivatives"):
            value = getattr(self, name)
            if not isinstance(value, (tuple, list)) or not value:
                raise ValueError(f"{name} must be a tuple of at least one value, got {value!r}")
        for degree in self.degrees:
            check_integer("degrees", degree, at_least=1)
        for threshold in self.thresholds:
            check_real("thresholds", threshold, at_least=0.0)
        for derivatives in self.derivatives:
            if not isinstance(derivatives, Derivatives):
                raise TypeError(
                    f"derivatives must hold values such as Differences(), got {derivatives!r}"
                )
        check_real("alpha", self.alpha, at_least=0.0)
        check_integer("max_terms", self.max_terms, at_least=1)
        check_integer("folds", self.folds, at_least=2)
        check_integer("random_state", self.random_state, at_least=0)
        if self.max_time is not None:
            check_real("max_time", self.max_time, above=0.0)


class _Regression:
    """Fits one candidate to trajectories; slopes are estimated once for each derivative."""

    def __init__(self, alpha: float, max_terms: int) -> None:
        self._alpha, self._max_terms = alpha, max_terms
        self._slopes: dict[tuple[int, Derivatives], tuple[Trajectories, Slopes]] = {}

    def __call__(self, train: Trajectories, settings: Mapping[str, Any]) -> PolynomialField:
        return self.fitted(train, settings)[1]

    def fitted(
        self, train: Trajectories, settings: Mapping[str, Any]
    ) -> tuple[Any, PolynomialField]:
        """Return the model of pysindy in scaled units, and its field in those of the data."""
        degree, d = settings["degree"], train.d
        terms = comb(d + degree, degree)
        if terms > self._max_terms:
            raise ValueError(f"{terms} monomials, of which max_terms={self._max_terms} are allowed")
        states, slopes = self._estimated(train, settings["derivatives"])
        scale = spread(train)
        size = float(np.sqrt(np.mean(np.concatenate(slopes) ** 2 / scale**2)))
        rate = size if size > 0 else 1.0
        package = pysindy()
        model = package.SINDy(  # parts of its own, since a fit writes into them
            optimizer=package.STLSQ(
                threshold=float(settings["threshold"]), alpha=self._alpha, max_iter=MOST_ROUNDS
            ),
            feature_library=package.PolynomialLibrary(degree=degree),
        )
        # The steps are not used, since slopes are given, but pysindy wants some.
        model.fit(
            [x / scale for x in states],
            t=[np.arange(float(len(x))) for x in states],
            x_dot=[v / (scale * rate) for v in slopes],
            feature_names=list(train.feature_names),
        )
        exponents = np.asarray(model.feature_library.powers_)
        coefficients = np.asarray(model.coefficients())
        if not np.isfinite(coefficients).all():
            raise ArithmeticError("coefficients are not finite")
        unscaled = coefficients * (rate * scale[:, None]) / np.prod(scale**exponents, axis=1)
        return model, PolynomialField(exponents, unscaled, train.feature_names, scale)

    def _estimated(self, train: Trajectories, derivatives: Derivatives) -> Slopes:
        key = id(train), derivatives
        if key not in self._slopes:  # the set is kept as well, so that no other has its id
            self._slopes[key] = train, derivatives(train)
        return self._slopes[key][1]
