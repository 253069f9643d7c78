"""The lab opens the folders of the command line, and nothing else."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from folders import grid

from messirl import MaxEntIRL
from messirl.app.lab import folders
from messirl.app.lab.folders import FIT, PROBLEM, find_folders, open_folder
from messirl.app.lab.reproduction_view import results_view
from messirl.app.lab.requests import RequestError, parse_fit_request
from messirl.app.lab.saved_fit_view import saved_fit
from messirl.app.lab.state_layout import make_layout
from messirl.io import read_problem
from messirl.io.folder.labels import save_model


@pytest.fixture
def given(tmp_path):
    """A folder that holds a problem and a fit, beside one with a secret."""
    for name, file in (("given/town", "problem.json"), ("given/fit", "model.npz"), ("secret", "problem.json")):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / file).write_text("{}")
    return tmp_path / "given"


def test_a_folder_and_those_in_it_are_found_by_what_they_hold(given):
    assert {key: place.kind for key, place in find_folders([given]).items()} == {
        "fit:given/fit": FIT,
        "problem:given/town": PROBLEM,
    }
    assert open_folder(find_folders([given]), "problem:given/town", PROBLEM) == given / "town"
    with pytest.raises(ValueError, match="is not a folder"):
        find_folders([given / "town" / "problem.json"])
    (given / "empty").mkdir()
    with pytest.raises(ValueError, match="contain no problem, fit or results"):
        find_folders([given / "empty"])


@pytest.mark.parametrize(
    "key", ["problem:given/../secret", "../secret", "problem:/etc", "", "problem:secret", "fit:given/fit"]
)
def test_no_name_leads_out_of_the_folders(given, key):
    with pytest.raises(RequestError, match="only folders of the command line"):
        open_folder(find_folders([given]), key, PROBLEM)


def test_a_link_out_of_a_folder_is_not_followed(given):
    (given / "linked").symlink_to(given.parent / "secret")
    assert not any("linked" in key for key in find_folders([given]))
    places = find_folders([given])
    (given / "town" / "states.csv").symlink_to(given.parent / "secret" / "problem.json")
    with pytest.raises(RequestError, match=r"states\.csv is a link out of its folder"):
        open_folder(places, "problem:given/town", PROBLEM)


def test_a_folder_that_has_become_a_link_is_not_followed(given):
    places = find_folders([given])
    (given / "town").rename(given.parent / "moved")
    (given / "town").symlink_to(given.parent / "secret")
    with pytest.raises(RequestError, match="is now a link out"):
        open_folder(places, "problem:given/town", PROBLEM)


def test_a_folder_that_is_gone_is_said_to_be_gone(given):
    places = find_folders([given])
    (given / "town").rename(given.parent / "moved")
    with pytest.raises(RequestError, match="given/town does not exist any more"):
        open_folder(places, "problem:given/town", PROBLEM)
    assert find_folders([given.parent / "nowhere"], strict=False) == {}


def test_whatever_a_folder_is_called_its_key_can_be_asked_for(given):
    for name in ("x" * 200, "x" * 201, "two\nlines", os.fsdecode(b"\xff\xfe")):
        (given / name).mkdir()
        (given / name / "problem.json").write_text("{}")
    found = {key for key in find_folders([given]) if key.startswith(PROBLEM)}
    assert len(found) == 5
    assert {parse_fit_request(json.dumps({"scene": key}).encode()).scene for key in found} == found


def test_a_folder_that_is_too_large_is_not_opened(given, monkeypatch):
    monkeypatch.setattr(folders, "LARGEST", 1)
    with pytest.raises(RequestError, match="this page opens at most"):
        open_folder(find_folders([given]), "problem:given/town", PROBLEM)


def test_no_two_lines_of_a_figure_have_the_same_name():
    for figure in results_view(Path(__file__).parents[1] / "results")["figures"]:
        names = Counter((line["label"], line["exact"]) for line in figure["lines"])
        assert max(names.values()) == 1, (figure["domain"], figure["figure"])


def test_a_model_without_its_folder_is_drawn_where_its_states_are(tmp_path):
    problem = read_problem(grid(tmp_path / "grid"))
    xy = np.column_stack([np.arange(16) % 4 * 10.0, np.arange(16) // 4 * 10.0])
    placed = replace(problem, xy=xy, y_down=True)
    (tmp_path / "fit").mkdir()
    save_model(MaxEntIRL(ridge=0.1).fit(problem.mdp, problem.trajectories), tmp_path / "fit" / "model.npz", placed)
    scene = saved_fit(tmp_path / "fit", {})["scene"]
    layout = make_layout(problem.mdp, xy, y_down=True)
    assert scene["kind"] == layout.kind == "grid"
    np.testing.assert_allclose(scene["at"], np.round(layout.at, 3))
