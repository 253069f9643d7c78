"""Damaged folders: messirl.io and the reference reader refuse the same ones, and read the same from the others."""

from __future__ import annotations

from pathlib import Path
from random import Random

import fuzz_readers
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from messirl.io import read_problem, write_problem

CORPUS = sorted(path.name for path in fuzz_readers.CORPUS.iterdir() if path.is_dir())
again = settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def folders(tmp_path: Path, *names: str) -> list[Path]:
    made = [tmp_path / name for name in names]
    for folder in made:
        folder.mkdir(exist_ok=True)
    return made


@pytest.mark.parametrize("name", CORPUS)
def test_the_corpus_is_read_as_the_reference_reads_it(name, tmp_path):
    files = {path.name: path.read_bytes() for path in (fuzz_readers.CORPUS / name).iterdir()}
    assert fuzz_readers.compare(files, tmp_path) == "read"


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("name", CORPUS)
def test_the_corpus_is_written_and_read_unchanged(name, form, tmp_path):
    assert fuzz_readers.round_trip(fuzz_readers.CORPUS / name, tmp_path / "copy", form) == "same"


@pytest.mark.slow
@again
@given(rng=st.randoms(use_true_random=False))
def test_generated_folders_are_read_or_refused_alike(rng, tmp_path):
    (folder,) = folders(tmp_path, "folder")
    assert fuzz_readers.compare(fuzz_readers.damaged(fuzz_readers.generated(rng), rng), folder) in ("read", "refused")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_damaged_folders_are_read_or_refused_alike(seed, tmp_path):
    seeds, outcomes = fuzz_readers.corpus(), set()
    (folder,) = folders(tmp_path, "folder")
    for case in range(60):
        rng = Random(f"test-{seed}-{case}")
        outcomes.add(fuzz_readers.compare(fuzz_readers.damaged(rng.choice(seeds), rng), folder))
    assert outcomes == {"read", "refused"}, "both happen"


@pytest.mark.parametrize("name", CORPUS)
def test_damaged_parquet_is_read_or_refused(name, tmp_path):
    whole, folder = folders(tmp_path, "whole", "damaged")
    write_problem(read_problem(fuzz_readers.CORPUS / name), whole)
    files = {path.name: path.read_bytes() for path in whole.iterdir()}
    rng = Random(name)
    outcomes = [fuzz_readers.parquet_case(files, folder, rng) for _ in range(60)]
    assert "refused" in outcomes


@pytest.mark.slow
def test_a_thousand_damaged_folders_are_read_or_refused_alike(tmp_path):
    seeds = fuzz_readers.corpus()
    (folder,) = folders(tmp_path, "folder")
    for case in range(1_000):
        rng = Random(f"slow-{case}")
        files = rng.choice(seeds) if rng.random() < 0.3 else fuzz_readers.generated(rng)
        fuzz_readers.compare(fuzz_readers.damaged(files, rng), folder)
