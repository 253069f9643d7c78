"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_whole(target: str | os.PathLike[str], data: bytes) -> None:
    """Write beside the place, then rename into it: whatever happens, the old file or the new one is there."""
    place = Path(target)
    part = place.with_name(f".{place.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}")
    try:
        part.write_bytes(data)
        os.replace(part, place)
    finally:
        part.unlink(missing_ok=True)
