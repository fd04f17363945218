"""The data sets: sizes, splits, truth, and the null model's error beside the known figures."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from scipy.spatial import Delaunay

from vectorfield.datasets import Dataset, Description, describe, load, names
from vectorfield.simulate import simulate
from vectorfield.systems import Scaled
from vectorfield.tables import read_splits, write_splits
from vectorfield.trajectories import Trajectories

SYNTHETIC = ("nfhn", "lorenz63", "lorenz96-16", "lorenz96-32", "lorenz96-128", "pendulum")
LARGE = "lorenz96-1024"  # some seconds: loaded for one test alone
REAL = ("cmu_walk", "pbc", "drifters")
NOISY = ("nfhn", "lorenz63")

loaded = cache(load)


def null_errors(test: Trajectories, scale: Any = 1.0) -> tuple[float, float]:
    """Mean Err and 1-Err of the model x(t) = x(0)."""
    err, one_err = [], []
    for t, x in test:
        squares = np.diff(t) * (((x[1:] - x[0]) / scale) ** 2).sum(axis=1)
        err.append(np.sqrt(squares.sum()))
        one_err.append(np.sqrt(squares[0]))
    return float(np.mean(err)), float(np.mean(one_err))


@pytest.mark.parametrize(
    ("name", "known", "within"),
    [
        ("nfhn", 9.8, 0.15),
        ("lorenz63", 2.6, 0.15),
        ("lorenz96-16", 8.7, 0.15),
        ("lorenz96-32", 11.9, 0.15),
        ("lorenz96-128", 24.0, 0.2),
    ],
)
def test_null_error_of_computed_sets(name: str, known: float, within: float) -> None:
    err, _ = null_errors(loaded(name).test)
    assert err == pytest.approx(known, abs=within)


@pytest.mark.parametrize(
    ("name", "stored", "zscored"),
    [
        ("cmu_walk", (224.80, 4.448), (20.03, 0.514)),
        ("drifters", (30.73, 0.1293), (6.096, 0.0252)),
        ("pbc", (2.447, 0.7227), (4.585, 1.448)),
    ],
)
def test_null_error_of_measured_sets(
    name: str, stored: tuple[float, float], zscored: tuple[float, float]
) -> None:
    data = loaded(name)
    spread = data.train.states.std(axis=0)
    assert null_errors(data.test) == pytest.approx(stored, rel=5e-4)
    assert null_errors(data.test, np.where(spread > 0, spread, 1.0)) == pytest.approx(
        zscored, rel=2e-3
    )


@pytest.mark.parametrize("name", [*SYNTHETIC, *REAL])
def test_sets_are_as_described(name: str) -> None:
    data = loaded(name)
    (described,) = (one for one in describe() if one.name == name)
    parts = [data.train, data.validation, data.test]
    assert data.name == name
    assert {part.d for part in parts} == {described.d}
    assert sum(len(part) for part in parts) == described.trajectories
    mean = np.concatenate([part.lengths for part in parts]).mean()
    assert mean == pytest.approx(described.samples, abs=0.005)
    assert described.real == (name in REAL) == (data.field is None) == (data.clean is None)
    assert (data.source, data.terms) == (described.source, described.terms)
    assert data.description == described.text
    assert data.splits == (data.train, data.validation, data.test)
    ids = [str(key) for part in parts for key in part.ids]
    assert len(set(ids)) == len(ids)
    assert all(t[0] == 0.0 for part in parts for t, _ in part)
    assert len({part.feature_names for part in parts}) == 1


@pytest.mark.parametrize(
    ("name", "sizes", "samples", "end"),
    [
        ("nfhn", (90, 30, 30), 201, 20.0),
        ("lorenz63", (90, 30, 30), 201, 2.0),
        ("lorenz96-16", (60, 20, 20), 243, 2.42),
        ("lorenz96-32", (60, 20, 20), 243, 2.42),
        ("lorenz96-128", (60, 20, 20), 243, 2.42),
        ("pendulum", (60, 20, 20), 50, 0.98),
    ],
)
def test_sizes_of_computed_sets(
    name: str, sizes: tuple[int, ...], samples: int, end: float
) -> None:
    data = loaded(name)
    assert tuple(len(part) for part in data.splits if part is not None) == sizes
    assert set(data.train.lengths) == {samples}
    assert data.train[0].t[-1] == pytest.approx(end)


@pytest.mark.parametrize(
    ("name", "sizes", "shortest", "longest"),
    [
        ("cmu_walk", (45, 15, 15), 69, 169),
        ("drifters", (189, 62, 64), 10, 887),
        ("pbc", (198, 28, 57), 2, 16),
    ],
)
def test_sizes_of_measured_sets(
    name: str, sizes: tuple[int, ...], shortest: int, longest: int
) -> None:
    data = loaded(name)
    parts = [part for part in data.splits if part is not None]
    lengths = np.concatenate([part.lengths for part in parts])
    assert tuple(len(part) for part in parts) == sizes
    assert (lengths.min(), lengths.max()) == (shortest, longest)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_clean_trajectories_solve_the_field(name: str) -> None:
    data = loaded(name)
    assert data.clean is not None
    assert data.field is not None
    assert data.clean.test is not None
    t, x = data.clean.test[0]
    stop = min(len(t), 51)  # a chaotic flow forgets its start in the long run
    run = simulate(data.field, x[0], t[:stop], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(run.x, x[:stop], atol=1e-6)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_clean_trajectories_lie_row_for_row_beneath_the_noisy(name: str) -> None:
    data = loaded(name)
    assert data.clean is not None
    for part, clean in zip(data.splits, data.clean, strict=True):
        assert part is not None
        assert clean is not None
        np.testing.assert_array_equal(part.ids, clean.ids)
        np.testing.assert_array_equal(part.times, clean.times)
        assert part.equals(clean) == (name not in NOISY)


def test_noise_has_the_right_size() -> None:
    for name, sd in (("nfhn", 0.12), ("lorenz63", 0.5)):
        data = loaded(name)
        assert data.clean is not None
        assert data.clean.train is not None
        noise = data.train.states - data.clean.train.states
        if isinstance(data.field, Scaled):
            noise = noise * data.field.scale
        np.testing.assert_allclose(noise.std(axis=0), sd, rtol=0.02)
        np.testing.assert_allclose(noise.mean(axis=0), 0.0, atol=0.02 * sd * 3)
        assert abs(np.corrcoef(noise[1:, 0], noise[:-1, 0])[0, 1]) < 0.03


@pytest.mark.parametrize("name", ["lorenz63", "lorenz96-16", "lorenz96-32", "lorenz96-128"])
def test_scaling_is_by_the_training_rows(name: str) -> None:
    data = loaded(name)
    assert isinstance(data.field, Scaled)
    np.testing.assert_allclose(data.train.states.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(data.train.states.std(axis=0), 1.0, rtol=1e-12)
    assert np.abs(data.test.states.mean(axis=0)).max() > 1e-4


def test_unscaled_sets_are_in_their_own_units() -> None:
    nfhn, pendulum = loaded("nfhn"), loaded("pendulum")
    assert nfhn.clean is not None
    starts = np.array([x[0] for part in nfhn.clean if part is not None for _, x in part])
    assert (np.abs(starts[:, 0]) <= 2.5).all()
    assert ((starts[:, 1] >= -1) & (starts[:, 1] <= 2)).all()
    starts = np.array([x[0] for part in pendulum.splits if part is not None for _, x in part])
    assert (np.abs(starts) <= [2.0, 5.0]).all()
    assert pendulum.train.feature_names == ("angle", "rate")


def test_the_largest_set() -> None:
    data = load(LARGE)
    assert data.train.d == 1024
    assert set(data.test.lengths) == {100}
    assert data.test[0].t[-1] == pytest.approx(99 * 0.0244)
    assert null_errors(data.test)[0] == pytest.approx(68.0, abs=0.5)


def test_seed_fixes_everything() -> None:
    first, again, other = load("pendulum"), load("pendulum", seed=0), load("pendulum", seed=1)
    assert first.train.equals(again.train)
    assert first.test.equals(again.test)
    assert not first.train.equals(other.train)
    assert first.train.ids.tolist() != other.train.ids.tolist()
    assert load("pbc", seed=5).train.equals(load("pbc").train)


def test_names_in_capitals_and_unknown_names() -> None:
    assert load("PBC").name == "pbc"
    assert names() == (*SYNTHETIC[:5], LARGE, "pendulum", *REAL)
    for wrong in ("lorenz", "", None, 3):
        with pytest.raises(ValueError, match=r"there are nfhn, .*, drifters"):
            load(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, 0.5, "a", None])
def test_wrong_seed_is_refused(seed: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="seed must be"):
        load("pendulum", seed=seed)


def test_descriptions_say_source_and_terms() -> None:
    every = describe()
    assert tuple(one.name for one in every) == names()
    for one in every:
        assert isinstance(one, Description)
        assert one.text.endswith(".")
        assert len(one.source) > 20
        assert len(one.terms) > 20


REQUIRED = {
    "cmu_walk": (
        "The data used in this project was obtained from mocap.cs.cmu.edu. The database was "
        "created with funding from NSF EIA-0196217.",
        "jkh+mocap@cs.cmu.edu",
    ),
    "drifters": (
        "This study used data collected and made freely available by the NOAA Global Drifter "
        "Program",
        "MIT licence",
        "Creative Commons Attribution 4.0",
    ),
    "pbc": ("LGPL (>= 2)",),
}


@pytest.mark.parametrize("name", REAL)
def test_acknowledgements_asked_for_are_passed_on(name: str) -> None:
    readme = " ".join(files("vectorfield").joinpath("data", "README.md").read_text().split())
    for sentence in REQUIRED[name]:
        assert sentence in loaded(name).terms
        assert sentence in readme
    assert "doi:10.25921/7ntx-z961" in readme


def test_clavicles_of_cmu_are_constant() -> None:
    spread = loaded("cmu_walk").train.states.std(axis=0)
    still = [
        name
        for name, s in zip(loaded("cmu_walk").train.feature_names, spread, strict=True)
        if s == 0
    ]
    assert still == ["rclavicle_ry", "rclavicle_rz", "lclavicle_ry", "lclavicle_rz"]


def test_a_set_can_be_written_and_read(tmp_path: Any) -> None:
    data = loaded("nfhn")
    write_splits(data.splits, tmp_path / "nfhn.csv.gz")
    again = read_splits(tmp_path / "nfhn.csv.gz")
    for part, other in zip(data.splits, again, strict=True):
        assert part is not None
        assert other is not None
        assert part.equals(other)


def test_repr_is_short() -> None:
    data = loaded("pbc")
    assert isinstance(data, Dataset)
    assert repr(data) == "Dataset('pbc', d=6, trajectories 198 + 28 + 57)"


def test_standard_pendulum_asks_for_interpolation() -> None:
    """Its held-out states lie among the training states; those of other seeds need not."""
    data = load("pendulum")
    hull = Delaunay(data.train.states)
    assert (hull.find_simplex(data.validation.states) >= 0).all()
    assert (hull.find_simplex(data.test.states) >= 0).all()
    other = load("pendulum", seed=1)
    assert (Delaunay(other.train.states).find_simplex(other.validation.states) < 0).any()
