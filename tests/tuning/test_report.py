"""Reports: what they say beside the null model, and a ridge that had to be raised."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import vectorfield as vf
from vectorfield.occupation import Lagrange, White
from vectorfield.tuning import Report, Search
from vectorfield.tuning.searcher import Searcher
from vectorfield.tuning.trials import beats_null, verdict

T = np.linspace(0.0, 6.0, 61)
CIRCLES = [a * np.stack([np.cos(T), -np.sin(T)], axis=1) for a in (0.5, 1.0, 1.5, 2.0)]


@pytest.fixture(scope="module")
def model():
    return vf.MOCK(vf.kernels.Gaussian(2.0), search=Search(folds=2)).fit(CIRCLES, T)


@dataclass(frozen=True)
class TooLow(Searcher):
    """A search whose ridge is far too low for all of the data."""

    report: Report

    def __call__(self, plan, left_open, train, validation=None):
        best = replace(self.report.best, plan=replace(self.report.best.plan, ridge=1e-22))
        return replace(self.report, best=best)


def test_a_ridge_too_low_for_all_data_is_raised_and_the_report_says_so(model):
    report = replace(model.report_, best=replace(model.report_.best, level=1e-9))
    raised = vf.MOCK(vf.kernels.Gaussian(2.0), search=TooLow(report)).fit(CIRCLES, T)
    assert 1e-22 < raised.ridge_ <= 1e-16
    best = raised.report_.best
    assert best.plan.ridge == raised.ridge_ == raised.plan_.ridge
    assert best.level / 1e-9 == pytest.approx(raised.ridge_ / 1e-22)
    notes = [note for note in raised.report_.notes if "the ridge was raised to" in note]
    assert len(notes) == 1
    assert f"{raised.ridge_:.3g}" in notes[0]
    with pytest.raises(vf.SolveError):  # a ridge that was given is not touched
        vf.MOCK(vf.kernels.Gaussian(2.0), 1e-30, search=TooLow(report)).fit(CIRCLES, T)


def test_the_null_model_is_beaten_by_more_than_a_standard_error(model):
    best = model.report_.best
    assert model.report_.beats_null
    assert model.report_.verdict == verdict(best)
    assert verdict(best).startswith(f"score {best.score:.3g} +- {best.spread:.1g}, that of the")
    near = replace(best, score=0.95, spread=0.1)
    assert not beats_null(near)
    assert beats_null(replace(near, spread=0.01))
    assert beats_null(replace(near, spread=float("nan")))  # a single trajectory has no error
    assert "(score 0.95 +- 0.1, that of the null model 1)" in verdict(near)
    failed = replace(best, score=float("inf"), status="singular")
    assert not beats_null(failed)
    assert verdict(failed) == "no plan could be fitted; singular"


def test_the_table_has_errors_of_the_null_model_the_chosen_and_the_runner_up():
    given = {"rule": Lagrange(4), "noise": White(), "prior": vf.prior.LinearPrior()}
    report = vf.MOCK(search=Search(folds=2), **given).fit(CIRCLES, T).report_
    assert report.runner_up.plan.kernel != report.best.plan.kernel
    lines = str(report).splitlines()
    rows = {line.split("  ")[0]: line for line in lines[3:6]}
    assert set(rows) == {"null model", "chosen", "runner-up"}
    for value, spread in zip(report.null, report.null_spread, strict=True):
        assert f"({value:.3g} +- {spread:.1g})" in rows["null model"]
    for name, trial in (("chosen", report.best), ("runner-up", report.runner_up)):
        assert f"{trial.score:.3g}" in rows[name]
        assert f"{trial.spread:.1g}" in rows[name]


def test_the_null_models_error_has_the_jackknifes(model):
    """Each circle is held out once, and has one window of whole length."""
    unit = np.concatenate(CIRCLES).std(axis=0)
    scaled = [np.sqrt(np.sum(((x[1:] - x[0]) / unit) ** 2) * 0.1) for x in CIRCLES]
    report = model.report_
    assert report.null[-1] == pytest.approx(np.mean(scaled))
    expected = np.std(scaled, ddof=1) / 2.0  # of a mean, the jackknife's is the usual one
    assert report.null_spread[-1] == pytest.approx(expected)
