"""Store of results: one complete Parquet file (part) per task, and a manifest of their origin.

A part is written to a temporary file and then renamed, so that killing the program at any moment leaves only complete
parts. The final table has all parts in a fixed order, whatever process wrote them, and when.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import messirl
from messirl._files import atomic_path

SCHEMA = pa.schema(
    [
        ("domain", pa.string()),
        ("figure", pa.string()),
        ("method", pa.string()),
        ("x", pa.float64()),
        ("run", pa.int32()),
        ("iteration", pa.int32()),
        ("performance", pa.float64()),
        ("theta_norm", pa.float64()),
        ("objective", pa.float64()),
        ("converged", pa.bool_()),
        ("seed", pa.int64()),
        ("config_hash", pa.string()),
        ("version", pa.string()),
        ("commit", pa.string()),
    ]
)
ORDER = ("domain", "figure", "method", "x", "run", "iteration")


class StoreError(ValueError):
    """Error for a store that cannot be used; the message gives the reason and a remedy."""


@dataclass(frozen=True)
class Origin:
    """Version, commit, seed and configuration of a table: the same origin gives the same numbers."""

    version: str
    commit: str
    seed: int
    config: str


def commit() -> str:
    """Return the commit of the source tree, with a + if it has changes; "unknown" outside a repository."""
    here = Path(__file__).parent

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, timeout=20, check=True)
        return done.stdout.strip()

    try:
        if not git("ls-files", "result_store.py"):
            return "unknown"
        changed = "+" if git("status", "--porcelain", "--", str(here.parent)) else ""
        return git("rev-parse", "--short=12", "HEAD") + changed
    except (OSError, subprocess.SubprocessError):
        return "unknown"


class Store:
    """Results of one experiment in a folder, one part per task.

    schema, order : columns of the table, and columns that it is sorted by
    """

    def __init__(self, folder: Path, origin: Origin, schema: pa.Schema = SCHEMA, order: Sequence[str] = ORDER) -> None:
        self.folder, self.origin, self.schema, self.order = folder, origin, schema, order
        self.parts = folder / "parts"

    def open(self) -> None:
        """Create the folder, or check that it contains results of the same origin, which can be continued."""
        manifest = self.folder / "manifest.json"
        if self.folder.is_dir() and not manifest.exists():
            ours = {self.parts.name, manifest.name}
            foreign = [*self.parts.glob("*"), *(p for p in self.folder.iterdir() if p.name not in ours)]
            if any(not p.name.startswith(".") for p in foreign):
                raise StoreError(
                    f"{self.folder} contains files but no {manifest.name}: choose another `out`, or remove it"
                )
        self.parts.mkdir(parents=True, exist_ok=True)
        if not manifest.exists():
            self._claim(manifest)
        try:
            found = Origin(**json.loads(manifest.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise StoreError(
                f"{manifest} is damaged ({error}): choose another `out`, or remove {self.folder}"
            ) from error
        for name, have in asdict(found).items():
            want = getattr(self.origin, name)
            if have != want:
                raise StoreError(
                    f"{self.folder} was made with {name} {have}, but this run has {want}: results are never mixed. "
                    f"Choose another `out`, or remove {self.folder} to start again"
                )

    def _claim(self, manifest: Path) -> None:
        """Write the manifest, unless another process has written it in the meantime."""
        part = manifest.with_name(f".{manifest.name}.{uuid.uuid4().hex}")
        part.write_text(json.dumps(asdict(self.origin), indent=2) + "\n", encoding="utf-8")
        try:
            os.link(part, manifest)
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links: two processes that start at once write the same
            if not manifest.exists():
                os.replace(part, manifest)
        finally:
            part.unlink(missing_ok=True)

    def path(self, key: str) -> Path:
        """Return the path of a part."""
        return self.parts / f"{key}.parquet"

    def has(self, key: str) -> bool:
        """Return whether a part exists."""
        return self.path(key).exists()

    def put(self, key: str, rows: list[dict[str, Any]]) -> None:
        """Write one part, completely or not at all."""
        origin = {"version": self.origin.version, "commit": self.origin.commit}
        table = pa.Table.from_pylist([{**row, **origin} for row in rows], schema=self.schema)
        self.write_table(table.replace_schema_metadata({"digest": _digest(table)}), self.path(key))

    def table(self, keys: list[str]) -> pa.Table:
        """Return the parts with these keys as one table in a fixed order."""
        tables = []
        for key in keys:
            try:
                table = pq.read_table(self.path(key))
            except (pa.ArrowException, OSError) as error:
                raise StoreError(
                    f"{self.path(key)} is damaged ({str(error).splitlines()[0]}): remove it and run again"
                ) from error
            meta = table.schema.metadata or {}
            table = table.replace_schema_metadata(None)
            if not table.schema.equals(self.schema) or meta.get(b"digest") != _digest(table):
                raise StoreError(f"{self.path(key)} is damaged or not a part of messirl: remove it and run again")
            for name in ("version", "commit"):
                if pc.unique(table[name]).to_pylist() != [getattr(self.origin, name)]:
                    raise StoreError(f"{self.path(key)} was made by another {name}: remove it and run again")
            tables.append(table)
        return pa.concat_tables(tables).sort_by([(name, "ascending") for name in self.order]).combine_chunks()

    @staticmethod
    def write_table(table: pa.Table, target: Path) -> None:
        """Write a table, completely or not at all."""
        try:
            with atomic_path(target) as part:
                pq.write_table(table, part, compression="zstd")
        except OSError as error:
            code = error.errno or getattr(error.__cause__, "errno", None)
            reason = os.strerror(code) if code else str(error)
            raise OSError(code or 0, reason, str(target)) from error

    @staticmethod
    def write_text(target: Path, text: str) -> None:
        """Write a text file, completely or not at all."""
        with atomic_path(target) as part:
            part.write_text(text, encoding="utf-8")


def _digest(table: pa.Table) -> bytes:
    """Return a checksum of all values of a part."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return hashlib.sha256(sink.getvalue()).hexdigest().encode()


def origin(seed: int, config: str) -> Origin:
    """Return the origin of rows that this program makes."""
    return Origin(messirl.__version__, commit(), seed, config)
