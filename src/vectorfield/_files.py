"""Writing files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

__all__ = ["written_whole"]


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a binary file that appears under ``path`` only once it is complete.

    The bytes go to a temporary file in the same folder, renamed at the end; after an error
    nothing is left and an older file of that name is untouched.
    """
    target = Path(path)
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name[:64]}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
