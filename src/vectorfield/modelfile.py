"""The model file: one file of plain bytes, versioned, checked, never executed.

Layout (all integers little-endian)::

    8 bytes   magic  b"VFIELD\\r\\n"   (a text-mode copy breaks it, and is noticed)
    4 bytes   format version
    32 bytes  SHA-256 of the version and of everything that follows
    8 bytes   length of the header
    header    JSON, UTF-8: the field's description, and name and shape of every array
    arrays    float64, row-major, in the header's order, nothing between or after
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np

from vectorfield._errors import ModelFileError
from vectorfield._files import written_whole

__all__ = ["FORMAT", "read_model", "write_model"]

MAGIC = b"VFIELD\r\n"
FORMAT = 3  # 2 has a prior, which a reader of 1 would overlook, 3 mixtures; others stay lower
_PREFIX = struct.Struct("<8sI32sQ")


def write_model(
    path: str | os.PathLike[str],
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
    *,
    version: int = FORMAT,
) -> None:
    """Write header and arrays; the file appears whole or not at all.

    ``version`` is the earliest format that has all that the header says.
    """
    described = header | {
        "arrays": [{"name": name, "shape": list(a.shape)} for name, a in arrays.items()]
    }
    text = json.dumps(described, allow_nan=False, ensure_ascii=False).encode()
    parts = [text] + [np.ascontiguousarray(a, dtype="<f8").tobytes() for a in arrays.values()]
    digest = hashlib.sha256(struct.pack("<IQ", version, len(text)))
    for part in parts:
        digest.update(part)
    with written_whole(path) as stream:
        stream.write(_PREFIX.pack(MAGIC, version, digest.digest(), len(text)))
        for part in parts:
            stream.write(part)


def read_model(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return header and arrays of a model file, or raise `ModelFileError`."""
    data = Path(path).read_bytes()
    if data[:8] != MAGIC:
        raise ModelFileError(f"{path}: not a vectorfield model file")
    if len(data) < _PREFIX.size:
        raise ModelFileError(f"{path}: the file is truncated; write it again with model.save")
    _, version, digest, length = _PREFIX.unpack_from(data)
    if version < 1:
        raise ModelFileError(f"{path}: there is no format {version}; the file is damaged")
    if version > FORMAT:
        raise ModelFileError(
            f"{path}: format {version} is newer than format {FORMAT}, which this version reads; "
            "upgrade vectorfield"
        )
    if hashlib.sha256(data[8:12] + data[_PREFIX.size - 8 :]).digest() != digest:
        raise ModelFileError(
            f"{path}: the contents do not match their checksum: the file is truncated or was "
            "changed; write it again with model.save"
        )
    try:
        header = json.loads(data[_PREFIX.size : _PREFIX.size + length].decode())
        arrays = _read_arrays(data, _PREFIX.size + length, header["arrays"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"{path}: the header cannot be read: {error}") from error
    return header, arrays


def _read_arrays(data: bytes, offset: int, described: Any) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    for entry in described:
        name, shape = entry["name"], tuple(entry["shape"])
        if not isinstance(name, str) or not all(isinstance(n, int) and n >= 0 for n in shape):
            raise ValueError(f"bad array entry {entry!r:.80}")
        count = math.prod(shape)
        if offset + 8 * count > len(data):
            raise ValueError(f"array {name} is longer than the file")
        values = np.frombuffer(data, dtype="<f8", count=count, offset=offset)
        arrays[name] = values.astype(np.float64).reshape(shape)
        arrays[name].flags.writeable = False
        offset += 8 * count
    if offset != len(data):
        raise ValueError(f"{len(data) - offset} bytes follow the last array")
    return arrays
