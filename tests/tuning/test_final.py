"""The fit to all data that follows a search: a ridge that is too small for it is raised."""

from dataclasses import replace

import numpy as np
import pytest

import vectorfield as vf
from vectorfield.tuning.final import fit_chosen

LINE = vf.Trajectories.from_arrays([np.linspace(1.0, 2.0, 60)[:, None]], 0.1)


def report_with(plan):
    """A report of a real search whose best plan is another."""
    found = vf.Search(max_time=0.01)(vf.Plan(vf.kernels.Linear()), frozenset({"ridge"}), LINE)
    return replace(found, best=replace(found.best, plan=plan))


def test_the_chosen_plan_is_fitted_as_it_is_where_it_can_be():
    report = report_with(vf.Plan(vf.kernels.Gaussian(1.0), 1e-6))
    after, fitted = fit_chosen(report, LINE)
    assert after is report
    assert fitted.ridge == 1e-6
    same = report.best.plan.fit(LINE).field
    np.testing.assert_array_equal(fitted.field(LINE.states), same(LINE.states))


def test_the_first_of_the_larger_ridges_that_does_is_taken_and_said():
    plan = vf.Plan(vf.kernels.Gaussian(10.0), 1e-25)
    failed = 0
    with pytest.raises(vf.SolveError):
        plan.fit(LINE)
    for raised in (plan.ridge * 10.0**k for k in range(12)):  # the slow way
        try:
            expected = replace(plan, ridge=raised).fit(LINE)
        except vf.SolveError:
            failed += 1
        else:
            break
    before = report_with(plan)
    after, fitted = fit_chosen(before, LINE, raises=failed)
    assert fitted.ridge == pytest.approx(expected.ridge, rel=1e-12)
    assert after.best.plan.ridge == fitted.ridge
    assert after.best.level == pytest.approx(before.best.level * 10.0**failed)
    assert after.notes[:-1] == before.notes
    assert after.notes[-1].startswith(f"the ridge was raised to {fitted.ridge:.3g}, since")
    with pytest.raises(vf.SolveError):
        fit_chosen(before, LINE, raises=failed - 1)
