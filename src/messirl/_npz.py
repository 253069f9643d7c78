"""Safe reading of .npz files from untrusted sources: arrays are checked before memory is allocated for them."""

from __future__ import annotations

import ast
import json
import math
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import IO, Any

import numpy as np

from messirl._memory_guard import JSON, unpacking_limit

KINDS = "biufU"
BROKEN = (  # exceptions raised by reading a damaged file
    *(zipfile.BadZipFile, zlib.error, EOFError, LookupError, TypeError, ValueError, AttributeError),
    *(ArithmeticError, OSError, RuntimeError, SyntaxError),
)
MOST = 10_000  # maximum number of arrays in a file
HEADER = 10_000  # maximum bytes of the header of an array
LISTS = 1_000_000  # maximum number of lists and objects in a JSON file
ENDING = ".npy"


class Archive(Mapping[str, Any]):
    """The arrays in an open .npz file by name: numbers, booleans, strings, or records of them; never objects.

    All headers are read at once, and each array is unpacked on first access. A ValueError is raised for an array that
    is truncated, has another type, or would take more memory than its file or this machine allows.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._zip, self._read = zipfile.ZipFile(file), dict[str, Any]()
        parts = self._zip.infolist()
        self._parts = {part.filename.removesuffix(ENDING): part for part in parts}
        if len(self._parts) < len(parts):
            raise ValueError("two of its arrays have the same name")
        if len(parts) > MOST:
            raise ValueError(f"it contains {len(parts)} arrays: at most {MOST} are allowed")
        self.shapes = {name: self._shape(name) for name in self._parts}
        self._room = unpacking_limit(file.seek(0, 2))

    def __len__(self) -> int:
        return len(self._parts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    def __getitem__(self, name: str) -> Any:
        if name not in self._read:
            part = self._parts[name]
            self._room -= part.file_size
            if self._room < 0:
                raise ValueError(f"{name} would take {part.file_size / 1e6:.0f} MB, too much for a file of this size")
            with self._zip.open(part) as file:
                array = np.lib.format.read_array(file, allow_pickle=False)
            if array.dtype.kind == "U" and array.size and array.reshape(-1).view("u4").max() > sys.maxunicode:
                raise ValueError(f"{name} contains invalid Unicode text")
            self._read[name] = array
        return self._read[name]

    def json(self, name: str) -> Any:
        """Return the parsed JSON of an array of bytes."""
        if self._parts[name].file_size > JSON:
            raise ValueError(f"{name} has {self._parts[name].file_size} bytes: at most {JSON} are allowed")
        return parse_json(self[name].tobytes().decode())

    def _shape(self, name: str) -> tuple[int, ...]:
        """Check the header of an array, and return its shape."""
        part = self._parts[name]
        if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name} is compressed by a method that NumPy does not use")
        with self._zip.open(part) as file:
            first = np.lib.format.read_magic(file) == (1, 0)
            size = int.from_bytes(file.read(2 if first else 4), "little")
            if size > HEADER:
                raise ValueError(f"the header of {name} is too long")
            try:
                ast.literal_eval(file.read(size).decode("latin1").strip())
            except (SyntaxError, MemoryError, RecursionError):
                raise ValueError(f"the header of {name} cannot be parsed") from None
            file.seek(0)
            np.lib.format.read_magic(file)
            header = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
            shape, _, kind = header(file)
            fields = [kind] if kind.names is None else [one[0] for one in (kind.fields or {}).values()]
            if any(one.kind not in KINDS or one.shape for one in fields) or min(shape, default=0) < 0:
                raise ValueError(f"{name} has type {kind}: only numbers, booleans and strings are allowed")
            if math.prod(shape) * kind.itemsize != part.file_size - file.tell():
                raise ValueError(f"{name} is truncated")
        return shape


def short_message(error: Exception) -> str:
    """Return the message of an error as one line of at most 300 characters."""
    return " ".join(str(error).split())[:300]


def parse_json(text: str, **how: Any) -> Any:
    """Return parsed JSON; raise a ValueError if it is invalid or has too many lists and objects."""
    if text.count("[") + text.count("{") > LISTS:
        raise ValueError(f"it contains more than {LISTS} lists and objects")
    return json.loads(text, **how)


def check_integer_range(name: str, array: Any, least: int, most: int) -> Any:
    """Return the array if it contains whole numbers from `least` to `most`; raise a ValueError otherwise."""
    if array.dtype.kind not in "iu" or (array.size and (array.min() < least or array.max() > most)):
        raise ValueError(f"its {name} are not whole numbers from {least} to {most}")
    return array
