"""`VectorField`: values, Jacobians, and a file that gives back the same field."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import vectorfield as vf
from vectorfield.kernels import (
    Constant,
    Gaussian,
    KernelExpansion,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Separable,
)

KERNELS = [
    Separable(Gaussian(0.9)),
    Separable(Laplace(1.2)),
    Separable(Matern(1.5, (0.5, 0.8, 1.3))),
    Separable(Matern(5.5, 0.4)),
    Separable(RationalQuadratic(0.7, 1.1)),
    Separable(Polynomial(3, 0.5, 2.0)),
    Separable(Linear() + Constant(0.3)),
    Separable(2.0 * Gaussian(1.0) * Polynomial(2) + Linear((1.0, 2.0, 3.0))),
    Separable(Gaussian(0.9), [[2.0, 0.5, 0.0], [0.5, 1.0, 0.1], [0.0, 0.1, 0.3]]),
]


def make(kernel: Any = KERNELS[0], **changes: Any) -> vf.VectorField:
    rng = np.random.default_rng(0)
    expansion = {
        "kernel": kernel,
        "nodes": rng.normal(size=(11, 3)),
        "coefficients": rng.normal(size=(11, 3)),
    }
    expansion |= {name: changes.pop(name) for name in list(changes) if name in expansion}
    parts = {
        "expansion": KernelExpansion(**expansion),
        "shift": np.array([0.0, 10.0, -3.0]),
        "scale": np.array([1.0, 1e3, 1e-3]),
        "feature_names": ("a", "b", "c"),
    }
    return vf.VectorField(**(parts | changes))


def states(field: vf.VectorField, n: int = 6) -> np.ndarray:
    return field.shift + field.scale * np.random.default_rng(1).normal(size=(n, field.d))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_values_are_the_formula(kernel):
    field = make(kernel)
    x = states(field)
    u = (x - field.shift) / field.scale
    matrix = np.eye(3) if kernel.matrix is None else np.array(kernel.matrix)
    expected = (
        kernel.kernel(u, field.expansion.nodes)
        @ field.expansion.coefficients
        @ matrix
        * field.scale
    )
    np.testing.assert_allclose(
        field(x) / field.scale, expected / field.scale, rtol=1e-11, atol=1e-11
    )
    np.testing.assert_allclose(field(x[2]), field(x)[2], rtol=1e-11, atol=1e-12)
    assert field(x[2]).shape == (3,)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_jacobian_against_differences(kernel):
    """In standardised units: the scales span six orders of magnitude."""
    field = make(kernel)
    x = states(field)
    got = field.jacobian(x)
    assert got.shape == (6, 3, 3)
    h = 1e-5
    for j in range(3):
        step = h * field.scale[j] * np.eye(3)[j]
        expected = (field(x + step) - field(x - step)) / field.scale / (2 * h)
        unit = got[:, :, j] * field.scale[j] / field.scale
        size = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(unit, expected, rtol=0, atol=1e-7 * size)
    assert field.jacobian(x[2]).shape == (3, 3)
    np.testing.assert_allclose(field.jacobian(x[2]) / got[2], 1.0, rtol=1e-9)


def test_jacobian_of_a_known_field():
    """Polynomial fields: f_0 = x_0 x_1, f_1 = x_0 from their coefficients on a few nodes."""
    rng = np.random.default_rng(0)
    nodes = rng.normal(size=(9, 2))
    kernel = Polynomial(2)
    wanted = np.stack([nodes[:, 0] * nodes[:, 1], nodes[:, 0]], axis=1)
    coefficients = np.linalg.lstsq(kernel(nodes), wanted, rcond=1e-12)[0]
    field = vf.VectorField(
        KernelExpansion(Separable(kernel), nodes, coefficients), np.zeros(2), np.ones(2), ("x", "y")
    )
    x = rng.normal(size=(5, 2))
    expected = np.stack([x[:, 0] * x[:, 1], x[:, 0]], axis=1)
    np.testing.assert_allclose(field(x), expected, rtol=0, atol=1e-9)
    jacobian = np.array([[[b, a], [1.0, 0.0]] for a, b in x])
    np.testing.assert_allclose(field.jacobian(x), jacobian, rtol=0, atol=1e-9)


def test_states_come_as_arrays_or_lists_of_any_number_type():
    field = make()
    x = np.array([[0.0, 10.0, -3.0], [1.0, 12.0, -3.0]])
    np.testing.assert_array_equal(field(x.tolist()), field(x))
    np.testing.assert_array_equal(field(x.astype(np.int64)), field(x))
    np.testing.assert_array_equal(field(x.astype(np.float32)), field(x))
    np.testing.assert_array_equal(field(x[::-1])[::-1], field(x))


def test_no_states_give_no_values():
    field = make()
    assert field(np.empty((0, 3))).shape == (0, 3)
    assert field.jacobian(np.empty((0, 3))).shape == (0, 3, 3)


@pytest.mark.parametrize("shape", [(), (2,), (4, 2), (2, 3, 1), (3, 1), (0,)])
def test_states_of_another_shape_are_refused(shape):
    for method in (make(), make().jacobian):
        with pytest.raises(vf.DataError, match=r"states must have shape \(n, 3\) or \(3,\), got"):
            method(np.zeros(shape))


def test_many_states_equal_few():
    field = make()
    x = states(field, 30_000)
    values = field(x)
    np.testing.assert_allclose(values[12_345:12_350], field(x[12_345:12_350]), rtol=1e-11)
    np.testing.assert_array_equal(field(x), values)


def test_arguments_are_left_alone_and_the_field_is_immutable():
    field = make()
    x = states(field)
    before = x.copy()
    field(x), field.jacobian(x)
    np.testing.assert_array_equal(x, before)
    with pytest.raises(dataclasses.FrozenInstanceError):
        field.scale = np.ones(3)


def test_what_it_says_of_itself():
    assert make().d == 3
    assert repr(make(Separable(Linear(2.0)))) == (
        "VectorField(d=3, nodes=11, kernel=Separable(kernel=Linear(length_scale=2.0), matrix=None))"
    )


@pytest.mark.parametrize(
    "copier", [copy.copy, copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))]
)
def test_copies_and_pickles(copier):
    field = make(info=MappingProxyType({"ridge": 1e-3}))
    x = states(field)
    values = field(x)  # the prepared evaluator must not stand in the way
    other = copier(field)
    np.testing.assert_array_equal(other(x), values)
    assert other.info == field.info
    assert isinstance(other.info, MappingProxyType)
    assert other.kernel == field.kernel
    assert other.feature_names == field.feature_names


# Files


def array(field: vf.VectorField, name: str) -> Any:
    return getattr(field.expansion if name in ("nodes", "coefficients") else field, name)


def same(one: vf.VectorField, other: vf.VectorField) -> None:
    assert one.kernel == other.kernel
    assert one.feature_names == other.feature_names
    assert dict(one.info) == dict(other.info)
    for name in ("nodes", "coefficients", "shift", "scale"):
        a, b = array(one, name), array(other, name)
        assert (a.shape, b.dtype) == (b.shape, np.float64)
        assert np.asarray(a, dtype=np.float64).tobytes() == b.tobytes()


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_save_and_load_to_the_last_bit(kernel, tmp_path):
    info = MappingProxyType({"ridge": 0.1, "note": "é ∂x", "list": [1, None, {"a": True}]})
    field = make(kernel, info=info, feature_names=("ä", "x y", '"'))
    field.save(tmp_path / "field.vf")
    loaded = vf.load(tmp_path / "field.vf")
    same(field, loaded)
    x = states(field)
    assert field(x).tobytes() == loaded(x).tobytes()
    assert field.jacobian(x).tobytes() == loaded.jacobian(x).tobytes()
    loaded.save(tmp_path / "again.vf")
    assert (tmp_path / "again.vf").read_bytes() == (tmp_path / "field.vf").read_bytes()
    assert vf.load(str(tmp_path / "field.vf")).d == 3  # paths as text as well


def test_awkward_numbers_survive(tmp_path):
    nodes = np.array([[-0.0, 5e-324, 1.7976931348623157e308], [0.1, np.pi, -1e-300]])
    field = make(nodes=nodes, coefficients=nodes[::-1], scale=np.array([5e-324, 1.0, 1e308]))
    field.save(tmp_path / "field.vf")
    with np.errstate(all="ignore"):
        same(field, vf.load(tmp_path / "field.vf"))


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_layout_does_not_matter(order, tmp_path):
    field = make()
    other = make(
        nodes=np.asarray(field.expansion.nodes, order=order),
        coefficients=np.repeat(field.expansion.coefficients, 2, axis=1)[:, ::2],
    )
    other.save(tmp_path / "field.vf")
    same(field, vf.load(tmp_path / "field.vf"))


def test_loaded_arrays_cannot_be_written(tmp_path):
    make().save(tmp_path / "field.vf")
    loaded = vf.load(tmp_path / "field.vf")
    for name in ("nodes", "coefficients", "shift", "scale"):
        with pytest.raises(ValueError, match="read-only"):
            array(loaded, name)[...] = 0.0


def test_a_fitted_model_comes_back(tmp_path, irregular):
    model = vf.MOCK(search=False).fit(irregular(2))
    model.save(tmp_path / "model.vf")
    loaded = vf.load(tmp_path / "model.vf")
    x = np.random.default_rng(0).normal(size=(8, 2))
    assert model.predict(x).tobytes() == loaded(x).tobytes()
    assert loaded.info["ridge"] == model.ridge_
    assert loaded.feature_names == ("x0", "x1")
    t = np.linspace(0.0, 0.3, 4)
    np.testing.assert_array_equal(model.simulate(x[0], t), vf.simulate(loaded, x[0], t).x)


class Own(Gaussian):
    """A kernel that the library does not know."""


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"info": {"a": float("nan")}}, ValueError),
        ({"info": {"a": object()}}, TypeError),
        ({"kernel": Separable(Own(1.0))}, TypeError),
    ],
)
def test_what_cannot_be_written_leaves_no_file(changes, error, tmp_path):
    make().save(tmp_path / "field.vf")
    before = (tmp_path / "field.vf").read_bytes()
    with pytest.raises(error):
        make(**changes).save(tmp_path / "field.vf")
    assert (tmp_path / "field.vf").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["field.vf"]


def test_an_array_of_another_library_is_saved_from_the_host(tmp_path):
    torch = pytest.importorskip("torch")
    field = make()
    arrays: Sequence[str] = ("nodes", "coefficients", "shift", "scale")
    other = make(**{name: torch.asarray(array(field, name)) for name in arrays})
    x = states(field)
    np.testing.assert_allclose(other(torch.asarray(x)).numpy(), field(x), rtol=1e-10)
    np.testing.assert_allclose(
        other.jacobian(torch.asarray(x)).numpy() / field.jacobian(x), 1.0, rtol=1e-8
    )
    assert isinstance(other(x), torch.Tensor)  # NumPy states go to where the nodes are
    assert isinstance(field(torch.asarray(x)), np.ndarray)
    other.save(tmp_path / "field.vf")
    same(field, vf.load(tmp_path / "field.vf"))
