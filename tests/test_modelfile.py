"""Model files: whatever is wrong with one, `ModelFileError` and nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import vectorfield as vf
from vectorfield.kernels import Gaussian, KernelExpansion, Linear, Separable
from vectorfield.kernels.codec import encode
from vectorfield.modelfile import FORMAT, read_model, write_model

GOLDEN = Path(__file__).parent / "data" / "golden-v1.vf"
PREFIX = struct.Struct("<8sI32sQ")
ARRAYS = {
    "nodes": np.array([[0.0, 1.0], [2.0, -1.0], [0.5, 0.5]]),
    "coefficients": np.array([[1.0, 0.0], [-0.5, 2.0], [0.25, 0.125]]),
    "shift": np.array([1.0, 2.0]),
    "scale": np.array([2.0, 0.5]),
}
HEADER = {
    "kind": "kernel",
    "kernel": {
        "type": "Separable",
        "kernel": {"type": "Gaussian", "length_scale": 1.5},
        "matrix": [[2.0, 0.5], [0.5, 1.0]],
    },
    "feature_names": ["angle", "rate"],
    "info": {"ridge": 0.001},
    "arrays": [{"name": name, "shape": list(a.shape)} for name, a in ARRAYS.items()],
}


def forge(header: Any, *, body: bytes | None = None, version: int = FORMAT) -> bytes:
    """A file with a right checksum around whatever is given."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    if body is None:
        body = b"".join(a.astype("<f8").tobytes() for a in ARRAYS.values())
    rest = struct.pack("<Q", len(text)) + text + body
    digest = hashlib.sha256(struct.pack("<I", version) + rest).digest()
    return b"VFIELD\r\n" + struct.pack("<I", version) + digest + rest


def change(**changes: Any) -> dict[str, Any]:
    return {key: value for key, value in (HEADER | changes).items() if value is not ...}


def load_bytes(data: bytes, folder: Path) -> vf.VectorField:
    path = folder / "forged.vf"
    path.write_bytes(data)
    return vf.load(path)


@pytest.fixture(scope="module")
def good() -> bytes:
    return forge(HEADER)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


def test_the_forger_writes_what_the_library_writes(good, folder):
    write_model(folder / "model.vf", {k: v for k, v in HEADER.items() if k != "arrays"}, ARRAYS)
    header, arrays = read_model(folder / "model.vf")
    assert header == HEADER
    assert {name: a.tolist() for name, a in arrays.items()} == {
        name: a.tolist() for name, a in ARRAYS.items()
    }
    field = load_bytes(good, folder)
    again = vf.load(folder / "model.vf")
    x = np.array([[0.3, 2.0]])
    np.testing.assert_array_equal(field(x), again(x))


# Damage


def test_every_changed_byte_is_noticed(good, folder):
    path = folder / "changed.vf"
    for position in range(len(good)):
        data = bytearray(good)
        data[position] ^= 1 << position % 8
        path.write_bytes(data)
        with pytest.raises(vf.ModelFileError, match=r"changed\.vf: "):
            vf.load(path)


def test_every_truncation_is_noticed(good, folder):
    path = folder / "short.vf"
    for length in range(len(good)):
        path.write_bytes(good[:length])
        with pytest.raises(vf.ModelFileError, match=r"short\.vf: "):
            vf.load(path)


@pytest.mark.parametrize("extra", [b"\0", b"\n", b"x" * 8, b"\0" * 1000])
def test_appended_bytes_are_noticed(good, folder, extra):
    with pytest.raises(vf.ModelFileError, match="do not match their checksum"):
        load_bytes(good + extra, folder)
    body = b"".join(a.tobytes() for a in ARRAYS.values()) + extra  # checksum and all
    with pytest.raises(vf.ModelFileError, match="bytes follow the last array"):
        load_bytes(forge(HEADER, body=body), folder)


def test_a_copy_in_text_mode_is_noticed(good, folder):
    with pytest.raises(vf.ModelFileError, match="not a vectorfield model file"):
        load_bytes(good.replace(b"\r\n", b"\n"), folder)


def test_a_later_format_is_named(folder):
    with pytest.raises(vf.ModelFileError, match=r"format 4 is newer than format 3.*upgrade"):
        load_bytes(forge(HEADER, version=4), folder)


def test_there_is_no_format_zero(folder):
    with pytest.raises(vf.ModelFileError, match="format 0"):
        load_bytes(forge(HEADER, version=0), folder)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300), st.booleans())
def test_random_bytes(folder, data, with_magic):
    with pytest.raises(vf.ModelFileError):
        load_bytes((b"VFIELD\r\n" if with_magic else b"") + data, folder)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_random_changes(good, folder, data):
    start = data.draw(st.integers(0, len(good) - 1))
    stop = data.draw(st.integers(start, min(len(good), start + 40)))
    changed = good[:start] + data.draw(st.binary(max_size=40)) + good[stop:]
    if changed == good:
        assert load_bytes(changed, folder).d == 2
    else:
        with pytest.raises(vf.ModelFileError):
            load_bytes(changed, folder)


# A right checksum around a wrong header


def nested(depth: int) -> bytes:
    """A kernel nested so deep that the parser, or whoever walks the result, must give up."""
    inner = '{"type":"Scaled","factor":1.0,"kernel":' * depth
    kernel = inner + '{"type":"Linear","length_scale":1.0}' + "}" * depth
    text = json.dumps(change(kernel="HERE"))
    return text.replace(
        '"HERE"', '{"type":"Separable","matrix":null,"kernel":' + kernel + "}"
    ).encode()


def shape(name: str, value: Any) -> dict[str, Any]:
    return change(
        arrays=[e | {"shape": value} if e["name"] == name else e for e in HEADER["arrays"]]
    )


def kernel(**changes: Any) -> dict[str, Any]:
    return change(kernel=HEADER["kernel"] | changes)


HOSTILE: dict[str, Any] = {
    "empty": b"",
    "not-json": b"{]",
    "not-utf8": b"\xff\xfe{}",
    "json-null": None,
    "json-number": 3,
    "json-list": [HEADER],
    "json-text": "kernel",
    "two-documents": json.dumps(HEADER).encode() * 2,
    **{f"no-{key}": change(**{key: ...}) for key in HEADER},
    **{f"{key}-null": change(**{key: None}) for key in HEADER},
    **{f"{key}-number": change(**{key: 7}) for key in HEADER},
    **{f"{key}-text": change(**{key: "ab"}) for key in HEADER},
    **{f"{key}-list": change(**{key: [[1, 2, 3]]}) for key in HEADER},
    **{f"{key}-empty": change(**{key: []}) for key in HEADER if key != "info"},
    "kind-unknown": change(kind="network"),
    "kernel-unknown": kernel(type="Magic"),
    "kernel-builtin": kernel(type="object"),
    "kernel-type-list": kernel(type=["Separable"]),
    "kernel-scalar": change(kernel={"type": "Gaussian", "length_scale": 1.0}),
    "kernel-extra": kernel(spare=1),
    "kernel-self": kernel(self=1),
    "kernel-open-length": kernel(kernel={"type": "Gaussian", "length_scale": None}),
    "kernel-length-text": kernel(kernel={"type": "Gaussian", "length_scale": "1.5"}),
    "kernel-length-negative": kernel(kernel={"type": "Gaussian", "length_scale": -1.0}),
    "kernel-length-nan": kernel(kernel={"type": "Gaussian", "length_scale": float("nan")}),
    "kernel-length-infinite": kernel(kernel={"type": "Gaussian", "length_scale": float("inf")}),
    "kernel-length-huge": kernel(kernel={"type": "Gaussian", "length_scale": 10**400}),
    "kernel-length-true": kernel(kernel={"type": "Gaussian", "length_scale": True}),
    "kernel-length-object": kernel(kernel={"type": "Gaussian", "length_scale": {"a": 1}}),
    "kernel-lengths-too-many": kernel(kernel={"type": "Gaussian", "length_scale": [1.0, 1.0, 1.0]}),
    "kernel-lengths-nested": kernel(kernel={"type": "Gaussian", "length_scale": [[1.0], [1.0]]}),
    "kernel-lengths-empty": kernel(kernel={"type": "Gaussian", "length_scale": []}),
    "kernel-degree-real": kernel(kernel={"type": "Polynomial", "degree": 2.5}),
    "kernel-degree-zero": kernel(kernel={"type": "Polynomial", "degree": 0}),
    "kernel-nu": kernel(kernel={"type": "Matern", "nu": 1.0, "length_scale": 1.0}),
    "kernel-sum-of-one": kernel(kernel={"type": "Sum", "left": {"type": "Linear"}}),
    "kernel-sum-of-numbers": kernel(kernel={"type": "Sum", "left": 1, "right": 2}),
    "kernel-of-operator": kernel(kernel=HEADER["kernel"]),
    "kernel-lists-for-kernels": kernel(kernel=[HEADER["kernel"]]),
    "matrix-text": kernel(matrix="abc"),
    "matrix-number": kernel(matrix=2.0),
    "matrix-object": kernel(matrix={}),
    "matrix-ragged": kernel(matrix=[[1.0], [1.0, 2.0]]),
    "matrix-of-text": kernel(matrix=[["a", "b"], ["c", "d"]]),
    "matrix-nan": kernel(matrix=[[float("nan"), 0.0], [0.0, 1.0]]),
    "matrix-huge": kernel(matrix=[[10**400, 0], [0, 1]]),
    "matrix-negative": kernel(matrix=[[-1.0, 0.0], [0.0, 1.0]]),
    "matrix-asymmetric": kernel(matrix=[[1.0, 0.5], [0.0, 1.0]]),
    "matrix-of-other-size": kernel(matrix=[[1.0]]),
    "matrix-empty": kernel(matrix=[[]]),
    "names-too-few": change(feature_names=["angle"]),
    "names-too-many": change(feature_names=["angle", "rate", "x"]),
    "names-numbers": change(feature_names=[1, 2]),
    "names-null": change(feature_names=[None, "rate"]),
    "names-equal": change(feature_names=["rate", "rate"]),
    "names-blank": change(feature_names=["", "rate"]),
    "names-text": change(feature_names="ab"),
    "names-object": change(feature_names={"angle": 1, "rate": 2}),
    "info-pairs": change(info=["ab", "cd"]),
    "arrays-object": change(arrays={"nodes": [3, 2]}),
    "arrays-of-numbers": change(arrays=[1, 2]),
    "arrays-nameless": change(arrays=[{"shape": [3, 2]}]),
    "arrays-shapeless": change(arrays=[{"name": "nodes"}]),
    "arrays-name-number": change(arrays=[{"name": 1, "shape": [3, 2]}]),
    "arrays-missing": change(arrays=HEADER["arrays"][:3]),
    "arrays-renamed": change(arrays=[e | {"name": e["name"] + "x"} for e in HEADER["arrays"]]),
    "arrays-twice": change(arrays=HEADER["arrays"] * 2),
    "arrays-swapped": change(arrays=[HEADER["arrays"][i] for i in (2, 3, 0, 1)]),
    "shape-number": shape("nodes", 6),
    "shape-flat": shape("nodes", [6]),
    "shape-transposed": shape("nodes", [2, 3]),
    "shape-scalar": shape("scale", []),
    "shape-negative": shape("nodes", [-3, -2]),
    "shape-real": shape("nodes", [3.0, 2.0]),
    "shape-text": shape("nodes", "32"),
    "shape-null": shape("nodes", None),
    "shape-huge": shape("nodes", [10**30, 2]),
    "shape-zero-huge": shape("nodes", [0, 10**30]),
    "shape-many-axes": shape("nodes", [1] * 70 + [6]),
    "shape-too-long": shape("coefficients", [4, 2]),
    **{f"deep-{depth}": nested(depth) for depth in (100_000, 3_000, 900, 600, 300, 101)},
    "deep-lists": b"[" * 100_000,
    "deep-length": json.dumps(kernel(kernel={"type": "Gaussian", "length_scale": 5}))
    .encode()
    .replace(b": 5", b": " + b"[" * 500 + b"]" * 500),
    "long-number": json.dumps(HEADER).encode().replace(b"0.001", b"9" * 10_000),
}  # fmt: skip


@pytest.mark.parametrize("header", HOSTILE.values(), ids=HOSTILE)
def test_hostile_headers(header, folder):
    with pytest.raises(vf.ModelFileError, match=r"forged\.vf: ") as caught:
        load_bytes(forge(header), folder)
    assert len(str(caught.value)) < 2000


def test_kernels_as_deep_as_anyone_nests_them(folder):
    kernel = Gaussian(1.0)
    for _ in range(60):
        kernel = kernel + Linear()
    field = load_bytes(forge(change(kernel=encode(Separable(kernel)))), folder)
    assert field.kernel == Separable(kernel)
    assert field(np.zeros((2, 2))).shape == (2, 2)
    assert "Gaussian" in repr(field.kernel)
    for _ in range(60):
        kernel = kernel + Linear()
    with pytest.raises(ValueError, match="nested more than 100 deep"):
        encode(Separable(kernel))


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(name, value, folder):
    arrays = {key: a.copy() for key, a in ARRAYS.items()}
    arrays[name].flat[0] = value
    body = b"".join(a.tobytes() for a in arrays.values())
    with pytest.raises(vf.ModelFileError, match=f"{name} holds values that are not finite"):
        load_bytes(forge(HEADER, body=body), folder)


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_scales_must_be_positive(value, folder):
    arrays = ARRAYS | {"scale": np.array([1.0, value])}
    body = b"".join(a.tobytes() for a in arrays.values())
    with pytest.raises(vf.ModelFileError, match="scale must be positive"):
        load_bytes(forge(HEADER, body=body), folder)


def test_a_header_longer_than_the_file(good, folder):
    for length in (len(good), 2**63, 2**64 - 1):
        data = bytearray(good)
        data[PREFIX.size - 8 : PREFIX.size] = struct.pack("<Q", length)
        rest = bytes(data[PREFIX.size - 8 :])
        data[12:44] = hashlib.sha256(bytes(data[8:12]) + rest).digest()
        with pytest.raises(vf.ModelFileError):
            load_bytes(bytes(data), folder)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["kind", "kernel", "feature_names", "arrays"]), json_values)
def test_random_values_in_the_header(folder, key, value):
    names = key == "feature_names" and isinstance(value, list) and len(value) == 2
    assume(not (names and len({v for v in value if isinstance(v, str) and v}) == 2))  # good ones
    with pytest.raises(vf.ModelFileError):
        load_bytes(forge(change(**{key: value})), folder)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["Gaussian", "Matern", "Polynomial", "Sum", "Scaled", "Constant"]),
    st.dictionaries(
        st.sampled_from(
            ["length_scale", "nu", "degree", "offset", "left", "factor", "kernel", "x"]
        ),
        json_values,
        max_size=3,
    ),
)
def test_random_kernels_in_the_header_load_or_are_refused(folder, name, parameters):
    try:
        field = load_bytes(forge(kernel(kernel={"type": name, **parameters})), folder)
    except vf.ModelFileError:
        return
    with np.errstate(all="ignore"):
        assert field(np.zeros((2, 2))).shape == (2, 2)


# Writing


def test_files_that_do_not_exist_are_no_model_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        vf.load(tmp_path / "none.vf")
    with pytest.raises(IsADirectoryError):
        vf.load(tmp_path)


def test_a_failing_write_leaves_the_old_file(tmp_path, good, monkeypatch):
    path = tmp_path / "model.vf"
    field = load_bytes(good, tmp_path)
    (tmp_path / "forged.vf").rename(path)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        field.save(path)
    with pytest.raises(OSError, match="No space left"):
        field.save(tmp_path / "new.vf")
    assert path.read_bytes() == good
    assert [p.name for p in tmp_path.iterdir()] == ["model.vf"]


def test_writing_into_a_folder_that_is_not_there(tmp_path, good, folder):
    with pytest.raises(FileNotFoundError):
        load_bytes(good, folder).save(tmp_path / "none" / "model.vf")
    assert list(tmp_path.iterdir()) == []


# Format 1, for good


def golden_field() -> vf.VectorField:
    """The field in ``data/golden-v1.vf``."""
    return vf.VectorField(
        expansion=KernelExpansion(
            kernel=Separable(0.5 * Gaussian(1.5) + Linear((1.0, 2.0)), [[2.0, 0.5], [0.5, 1.0]]),
            nodes=ARRAYS["nodes"],
            coefficients=ARRAYS["coefficients"],
        ),
        shift=ARRAYS["shift"],
        scale=ARRAYS["scale"],
        feature_names=("angle", "rate"),
        info={"ridge": 0.001, "rule": "Trapezoid()"},
    )


def test_the_golden_file_loads_with_the_numbers_it_was_written_with():
    field = vf.load(GOLDEN)
    assert field.feature_names == ("angle", "rate")
    assert dict(field.info) == {"ridge": 0.001, "rule": "Trapezoid()"}
    assert field.kernel == golden_field().kernel
    for name, expected in ARRAYS.items():
        np.testing.assert_array_equal(
            getattr(field.expansion if name in ("nodes", "coefficients") else field, name), expected
        )
    # by hand, from the formula
    np.testing.assert_allclose(
        field([[1.0, 2.0], [3.0, 1.5], [-2.0, 4.0]]),
        [
            [2.1048219215416992, 0.3000415648314578],
            [0.4029972747806171, 2.380456326048181],
            [3.8981197630953526, -3.2691893430064614],
        ],
        rtol=1e-13,
        atol=1e-14,
    )


def test_a_file_of_the_first_format_without_a_prior(folder):
    field = load_bytes(forge(HEADER, version=1), folder)
    assert field.prior is None
    x = np.array([[0.3, 2.0]])
    np.testing.assert_array_equal(field(x), load_bytes(forge(HEADER), folder)(x))


PRIORS: dict[str, tuple[Any, dict[str, np.ndarray]]] = {
    "null": (None, {}),
    "number": (3, {}),
    "empty": ({}, {}),
    "unknown": ({"kind": "magic"}, {}),
    "kind-list": ({"kind": ["affine"]}, {}),
    "known": ({"kind": "known"}, {}),
    "no-arrays": ({"kind": "affine"}, {}),
    "affine-shape": (
        {"kind": "affine"},
        {"matrix": np.eye(3), "centre": np.zeros(2), "offset": np.zeros(2)},
    ),
    "affine-nan": (
        {"kind": "affine"},
        {"matrix": np.full((2, 2), np.nan), "centre": np.zeros(2), "offset": np.zeros(2)},
    ),
    "centre-shape": ({"kind": "mean-reversion", "rate": 1.0}, {"centre": np.zeros(3)}),
    "no-rate": ({"kind": "mean-reversion"}, {"centre": np.zeros(2)}),
    "rate-text": ({"kind": "mean-reversion", "rate": "fast"}, {"centre": np.zeros(2)}),
    "rate-huge": ({"kind": "mean-reversion", "rate": 10**400}, {"centre": np.zeros(2)}),
    "rate-negative": ({"kind": "mean-reversion", "rate": -1.0}, {"centre": np.zeros(2)}),
    "points-none": (
        {"kind": "kernel-reversion", "rate": 1.0},
        {"points": np.zeros((0, 2)), "lengths": np.ones(2)},
    ),
    "points-flat": (
        {"kind": "kernel-reversion", "rate": 1.0},
        {"points": np.zeros(2), "lengths": np.ones(2)},
    ),
    "lengths-zero": (
        {"kind": "kernel-reversion", "rate": 1.0},
        {"points": np.zeros((3, 2)), "lengths": np.zeros(2)},
    ),
    "lengths-shape": (
        {"kind": "kernel-reversion", "rate": 1.0},
        {"points": np.zeros((3, 2)), "lengths": np.ones(3)},
    ),
}


@pytest.mark.parametrize("case", PRIORS)
def test_bad_priors_are_refused(folder, case):
    header, arrays = PRIORS[case]
    named = {f"prior.{name}": a for name, a in arrays.items()}
    kept = {k: v for k, v in HEADER.items() if k != "arrays"}
    write_model(folder / "prior.vf", kept | {"prior": header}, ARRAYS | named)
    with pytest.raises(vf.ModelFileError, match="header does not describe a field"):
        vf.load(folder / "prior.vf")


def test_the_golden_file_is_what_is_written_today(tmp_path):
    golden_field().save(tmp_path / "today.vf")
    assert (tmp_path / "today.vf").read_bytes() == GOLDEN.read_bytes()
