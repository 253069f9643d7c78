"""Behaviour stays as it is: commands and estimators against golden files, and files that earlier code wrote."""

from __future__ import annotations

import json

import golden_files
import pytest
from problems import problem

import messirl

TOLERANCE = 1e-6  # other processors and versions of packages round differently, and searches stop at 1e-6


def test_estimators_find_what_the_golden_file_holds():
    assert golden_files.compare("estimators", TOLERANCE) == []


@pytest.mark.slow
def test_commands_give_what_the_golden_file_holds():
    assert golden_files.compare("commands", TOLERANCE) == []


@pytest.mark.parametrize(
    "path", sorted((golden_files.GOLDEN / "written" / "models").glob("*.npz")), ids=lambda p: p.stem
)
def test_models_of_earlier_code_are_read(path):
    said = json.loads((golden_files.GOLDEN / "written" / "models.json").read_text(encoding="utf-8"))[path.stem]
    expert = problem(path.stem.split("-")[1]).expert
    assert golden_files.differences(said, golden_files.said_by(messirl.load(path), expert), 1e-9) == []


def test_folders_of_earlier_code_are_read(tmp_path):
    written = golden_files.GOLDEN / "written"
    shown = [golden_files.run(["show", str(written / name), "--json"])["json"] for name in ("park", "park-parquet")]
    shown = [{key: value for key, value in one.items() if key != "tables"} for one in shown]
    assert shown[0] == shown[1]
    assert golden_files.run(["show", str(written / "fit"), "--json"])["json"]["method"] == "MaxEntIRL"
    words = ["evaluate", str(written / "fit"), str(written / "park-parquet"), "--out", str(tmp_path / "out")]
    assert golden_files.run([*words, "--no-report", "--json"])["code"] == 0
