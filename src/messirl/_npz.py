"""Arrays from .npz files that anybody may have written: each is checked before memory is taken for it."""

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

from messirl._memory_guard import JSON, room

KINDS = "biufU"
BROKEN = (  # what reading a damaged file raises
    *(zipfile.BadZipFile, zlib.error, EOFError, LookupError, TypeError, ValueError, AttributeError),
    *(ArithmeticError, OSError, RuntimeError, SyntaxError),
)
MOST = 10_000  # arrays in a file
HEADER = 10_000  # bytes of the header of an array
LISTS = 1_000_000  # lists and objects in a JSON file
ENDING = ".npy"


class Archive(Mapping[str, Any]):
    """The arrays in an open .npz file by name: numbers, flags, texts, or records of them; never objects.

    All headers are read at once, and only what is asked for is unpacked, once. ValueError for an array that is cut
    short, that holds anything else, or that would take more memory than its file or this machine allows.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._zip, self._read = zipfile.ZipFile(file), dict[str, Any]()
        parts = self._zip.infolist()
        self._parts = {part.filename.removesuffix(ENDING): part for part in parts}
        if len(self._parts) < len(parts):
            raise ValueError("two of its arrays have the same name")
        if len(parts) > MOST:
            raise ValueError(f"it holds {len(parts)} arrays, more than {MOST}")
        self.shapes = {name: self._shape(name) for name in self._parts}
        self._room = room(file.seek(0, 2))

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
                raise ValueError(f"{name} holds what is no text")
            self._read[name] = array
        return self._read[name]

    def json(self, name: str) -> Any:
        """What an array of bytes says."""
        if self._parts[name].file_size > JSON:
            raise ValueError(f"{name} is too large to be read")
        return parsed(self[name].tobytes().decode())

    def _shape(self, name: str) -> tuple[int, ...]:
        """The shape by the header of an array, which is checked."""
        part = self._parts[name]
        if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name} is compressed in a way that NumPy does not write")
        with self._zip.open(part) as file:
            first = np.lib.format.read_magic(file) == (1, 0)
            size = int.from_bytes(file.read(2 if first else 4), "little")
            if size > HEADER:
                raise ValueError(f"the header of {name} is too long")
            try:
                ast.literal_eval(file.read(size).decode("latin1").strip())
            except (SyntaxError, MemoryError, RecursionError):
                raise ValueError(f"the header of {name} is no header") from None
            file.seek(0)
            np.lib.format.read_magic(file)
            header = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
            shape, _, kind = header(file)
            fields = [kind] if kind.names is None else [one[0] for one in (kind.fields or {}).values()]
            if any(one.kind not in KINDS or one.shape for one in fields) or min(shape, default=0) < 0:
                raise ValueError(f"{name} holds {kind}, which is no array of numbers, flags or texts")
            if math.prod(shape) * kind.itemsize != part.file_size - file.tell():
                raise ValueError(f"{name} is cut short")
        return shape


def shortly(error: Exception) -> str:
    """What an error says, in one line of bearable length."""
    return " ".join(str(error).split())[:300]


def parsed(text: str, **how: Any) -> Any:
    """What JSON says; ValueError if it is none, or consists of more lists and objects than anything of ours."""
    if text.count("[") + text.count("{") > LISTS:
        raise ValueError("it holds too many lists to be read")
    return json.loads(text, **how)


def within(name: str, array: Any, least: int, most: int) -> Any:
    """The array if it holds whole numbers from `least` to `most`; ValueError otherwise."""
    if array.dtype.kind not in "iu" or (array.size and (array.min() < least or array.max() > most)):
        raise ValueError(f"its {name} are not whole numbers from {least} to {most}")
    return array
