"""Groups of signed permutations: axioms, actions by indexing against matrices, refusals."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vectorfield.kernels import CyclicShifts, Elements, Group, Reflection, SignedPermutations

GROUPS = {
    "cyclic-1": (CyclicShifts(), 1, 1),
    "cyclic-5": (CyclicShifts(), 5, 5),
    "cyclic-6": (CyclicShifts(), 6, 6),
    "cyclic-by-2": (CyclicShifts(step=2), 6, 3),
    "cyclic-by-d": (CyclicShifts(step=4), 4, 1),
    "reflection-1": (Reflection(), 1, 2),
    "reflection-3": (Reflection(), 3, 2),
    "lorenz": (SignedPermutations([(-1, -2, 3)]), 3, 2),
    "quarter": (SignedPermutations([(-2, 1)]), 2, 4),
    "trivial": (SignedPermutations([(1, 2)]), 2, 1),
    "symmetric": (SignedPermutations([(2, 3, 4, 1), (2, 1, 3, 4)]), 4, math.factorial(4)),
    "cube": (SignedPermutations([(2, 3, 1), (2, 1, 3), (-1, 2, 3)]), 3, 2**3 * 6),
}
EACH = pytest.mark.parametrize(("group", "d", "order"), GROUPS.values(), ids=GROUPS)


def matrices(elements: Elements) -> np.ndarray:
    """The members as (|G|, d, d), from the definition (g x)_i = sign_i x_p(i)."""
    order, d = elements.permutation.shape
    result = np.zeros((order, d, d))
    for g, i in itertools.product(range(order), range(d)):
        result[g, i, elements.permutation[g, i]] = elements.sign[g, i]
    return result


def keys(stack: np.ndarray) -> set[bytes]:
    return {(m + 0.0).tobytes() for m in stack}  # + 0.0: one zero


@EACH
def test_it_is_a_group(group, d, order):
    members = matrices(group.elements(d))
    found = keys(members)
    assert len(members) == len(group.elements(d)) == order == len(found)
    assert np.eye(d).tobytes() in found
    np.testing.assert_array_equal(members[0], np.eye(d))
    for g in members:
        np.testing.assert_array_equal(g @ g.T, np.eye(d))
        assert (g.T + 0.0).tobytes() in found
        assert keys(g @ members) == found


@EACH
def test_generating_elements_make_all(group, d, order):
    generators = matrices(group.generating(d))
    found, fresh = {np.eye(d).tobytes()}, [np.eye(d)]
    while fresh:
        products = [g @ h + 0.0 for g in generators for h in fresh]
        fresh = []
        for product in products:
            if product.tobytes() not in found:
                found.add(product.tobytes())
                fresh.append(product)
    assert found == keys(matrices(group.elements(d)))


@EACH
def test_actions_are_those_of_the_matrices(group, d, order):
    elements = group.elements(d)
    rng = np.random.default_rng(0)
    x, v = rng.normal(size=(7, d)), rng.normal(size=(7, order, d))
    members = matrices(elements)
    expected = np.einsum("gij,nj->gni", members, x)
    assert elements.d == d
    np.testing.assert_array_equal(elements.act(x), expected)
    np.testing.assert_array_equal(elements.images(x), expected.transpose(1, 0, 2))
    np.testing.assert_array_equal(elements.traces, np.trace(members, axis1=1, axis2=2))
    np.testing.assert_allclose(
        elements.pull(v), np.einsum("gji,ngj->ni", members, v), rtol=0, atol=1e-13
    )
    assert elements.act(x[:0]).shape == (order, 0, d)


@EACH
def test_torch_agrees_with_numpy(group, d, order):
    torch = pytest.importorskip("torch")
    elements = group.elements(d)
    rng = np.random.default_rng(0)
    x, v = rng.normal(size=(5, d)), rng.normal(size=(5, order, d))
    np.testing.assert_array_equal(elements.act(torch.asarray(x)).numpy(), elements.act(x))
    np.testing.assert_allclose(
        elements.pull(torch.asarray(v)).numpy(), elements.pull(v), rtol=0, atol=1e-13
    )


signed = st.integers(1, 4).flatmap(
    lambda d: st.lists(
        st.tuples(
            st.permutations(range(1, d + 1)),
            st.lists(st.sampled_from([1, -1]), min_size=d, max_size=d),
        ).map(lambda both: tuple(j * s for j, s in zip(*both, strict=True))),
        min_size=1,
        max_size=3,
    )
)


@given(signed)
@settings(max_examples=60, deadline=None)
def test_random_generators(generators):
    group = SignedPermutations(generators)
    d = len(generators[0])
    elements = group.elements(d)
    members = matrices(elements)
    found = keys(members)
    assert len(found) == len(elements)
    assert (2**d * math.factorial(d)) % len(elements) == 0  # Lagrange's theorem
    rng = np.random.default_rng(0)
    some = rng.choice(len(elements), size=min(4, len(elements)))
    x = rng.normal(size=(3, d))
    for g, h in itertools.product(some, some):
        product = members[g] @ members[h] + 0.0
        assert product.tobytes() in found
        np.testing.assert_array_equal(elements.act(elements.act(x)[h])[g], x @ product.T)
    for generator in generators:
        image = np.array([math.copysign(x[0, abs(j) - 1], j * x[0, abs(j) - 1]) for j in generator])
        assert (elements.act(x)[:, 0] == image).all(axis=1).any()


def test_settings_are_values():
    group = SignedPermutations([[-1, np.int64(-2), 3]])
    assert group.generators == ((-1, -2, 3),)
    assert (
        group
        == SignedPermutations(np.array([[-1, -2, 3]]))
        == SignedPermutations(iter([(-1, -2, 3)]))
    )
    assert hash(group) == hash(SignedPermutations(((-1, -2, 3),)))
    assert CyclicShifts() == CyclicShifts(1) != CyclicShifts(2)
    assert isinstance(Reflection(), Group)
    elements = group.elements(3)
    for array in (elements.permutation, elements.sign):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 0


@pytest.mark.parametrize(
    ("generators", "error", "message"),
    [
        ([], ValueError, "at least one signed permutation, got none"),
        (3, TypeError, r"a list of tuples such as \[\(-1, -2, 3\)\], got 3"),
        ((-1, -2, 3), TypeError, "a list of tuples"),
        ("12", TypeError, "a list of tuples"),
        (["12"], TypeError, "a list of tuples"),
        ([(1.5, 2)], TypeError, r"entry of generators\[0\] must be a whole number, got 1.5"),
        ([(1, 2), (True, 2)], TypeError, r"generators\[1\] must be a whole number, got True"),
        ([()], ValueError, r"generators\[0\] must hold each of 1 ... d once, .* got \(\)"),
        ([(0, 1)], ValueError, r"got \(0, 1\); entry i = \+-j means"),
        ([(1, 1)], ValueError, r"generators\[0\] must hold each of 1"),
        ([(1, 3)], ValueError, r"generators\[0\] must hold each of 1"),
        ([(1, -3)], ValueError, "must be at least -2, got -3"),
        ([(1, 2), (1, 2, 3)], ValueError, "same length, got 2 and 3; write coordinates that stay"),
        (
            [(2, 3, 4, 5, 6, 7, 8, 1), (2, 1, 3, 4, 5, 6, 7, 8)],
            ValueError,
            "more than 10,000 members.* give generators of a smaller group",
        ),
    ],
)
def test_bad_generators_are_refused(generators, error, message):
    with pytest.raises(error, match=message):
        SignedPermutations(generators)


@pytest.mark.parametrize("step", [0, -1])
def test_a_step_is_positive(step):
    with pytest.raises(ValueError, match="step must be at least 1"):
        CyclicShifts(step)


def test_the_states_must_suit():
    with pytest.raises(ValueError, match=r"step must divide .* got step=2 and states with 5 feat"):
        CyclicShifts(2).elements(5)
    with pytest.raises(ValueError, match="act on 3 coordinates but the states have 2 features"):
        SignedPermutations([(-1, -2, 3)]).elements(2)
