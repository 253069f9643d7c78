"""What the lab fits, and the Python lines that give the same."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

from messirl import MaxEntIRL, Trajectories
from messirl.app.lab import live_fit
from messirl.app.lab.catalog import catalogue, check_scene_size
from messirl.app.lab.requests import FitRequest, RequestError
from messirl.app.lab.state_layout import directions, make_layout
from messirl.app.lab.worker import Worker
from messirl.data.mdp import MDP
from messirl.data.problem import Problem
from messirl.estimators import BehaviourCloning
from messirl.io.folder.writer import write_problem
from messirl.paper.synthetic import museum


def never():
    return False


@pytest.fixture(scope="module")
def worker():
    return Worker([])


def ask_of(worker, key, **changes):
    defaults = worker.answer({"what": "scene", "key": key}, never)["defaults"]
    return FitRequest(**{"scene": key, **defaults, **changes})


CASES = {
    "MESSI in the pit": ("pit", {"seed": 3, "u": 10}),
    "one trajectory drawn by hand": ("pit", {"experts": 0, "drawn": ((0, 1, 2, 3, 4, 5, 11, 17, 23, 29, 35),)}),
    "a ridge as strong, in the museum": ("museum", {"method": "RidgeStd"}),
    "the experts alone on the roads": ("roads", {"method": "MaxEnt", "u": 0}),
    "a pooling weight in the maze": ("maze", {"method": "LightPooling", "weight": 0.2}),
    "EM on a frozen lake": ("FrozenLake-v1", {"method": "EM", "u": 5, "nu": 0.0}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_lines_give_the_same_weights(worker, case):
    key, changes = CASES[case]
    if key.startswith("Frozen"):
        pytest.importorskip("gymnasium")
    ask = ask_of(worker, key, **changes)
    shown = worker.fit(ask, never)["models"][0]
    there: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(shown["code"], there)
    scale = np.abs(there["model"].theta_).max()
    np.testing.assert_allclose(shown["theta"], there["model"].theta_, rtol=1e-3, atol=1e-5 * scale)


def test_a_rough_fit_that_goes_on_from_the_last_one_comes_to_the_same_place(worker):
    ask = ask_of(worker, "pit", lambda0=1.0)
    exact = worker.fit(ask, never)["models"][0]["reward"]
    worker.fit(replace(ask, lambda0=0.2), never)
    for _ in range(6):
        rough = worker.fit(replace(ask, rough=True), never)["models"][0]["reward"]
    np.testing.assert_allclose(rough, exact, atol=0.05 * np.ptp(exact))


def test_a_page_is_not_told_again_what_it_shows(worker):
    ask = ask_of(worker, "pit")
    first = worker.fit(ask, never)
    again = worker.fit(replace(ask, lambda0=2.0, have=first["sets"]), never)
    assert "tracks" in first
    assert "tracks" not in again
    assert "tracks" in worker.fit(replace(ask, u=3, have=first["sets"]), never)


def test_what_is_cancelled_stops_at_the_next_step(worker):
    seen = iter([False, True])
    with pytest.raises(live_fit.Cancelled):
        worker.fit(ask_of(worker, "pit"), lambda: next(seen))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"drawn": ((0, 35),)}, "no such transition"),
        ({"drawn": ((0, 999),)}, "must be <= 35"),
        ({"experts": 0}, "there is no expert trajectory"),
        ({"method": "os.system"}, "method must be one of"),
        ({"similarity": "eval"}, "similarity must be one of"),
        ({"mixture": "mu9"}, "mixture must be one of"),
        ({"scene": "../pit"}, "unknown scene '../pit'"),
        ({"scene": "problem:../pit"}, "only folders of the command line"),
    ],
)
def test_what_cannot_be_fitted_is_refused_with_the_reason(worker, changes, why):
    with pytest.raises(RequestError, match=why):
        worker.fit(replace(ask_of(worker, "pit"), **changes), never)


def test_a_fit_that_would_need_minutes_is_refused(worker, monkeypatch):
    monkeypatch.setattr(live_fit, "seconds_per_solve", lambda mdp: 1.0)
    with pytest.raises(RequestError, match=r"could take \d+ minutes .* messirl fit"):
        worker.fit(ask_of(worker, "pit"), never)


def test_a_problem_of_absurd_size_is_refused():
    large = MDP(_ring(5000), np.ones((5000, 1)), discount=0.9)
    with pytest.raises(RequestError, match="5,000 states: this page takes at most 4,000"):
        check_scene_size(large, 0)


def _ring(n):
    import scipy.sparse as sp

    return sp.csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))


def test_a_folder_is_fitted_as_it_stands_whatever_it_calls_its_features(tmp_path):
    example = museum().problem
    names = [f"<script>alert({i})</script>" for i in range(example.mdp.n_features)]
    write_problem(replace(example, mdp=example.mdp.replace(feature_names=names)), tmp_path / "house")
    worker = Worker([str(tmp_path)])
    key = "problem:" + tmp_path.name + "/house"
    assert key in {entry["key"] for entry in worker.catalogue()["scenes"]}
    ask = ask_of(worker, key, expert="who = guide", mixture="who = tourist", experts=5, u=5)
    told = worker.answer({"what": "scene", "key": key}, never)
    assert told["features"][0] == names[0]
    assert json.loads(json.dumps(worker.fit(ask, never), allow_nan=False))["models"][0]["converged"]
    with pytest.raises(RequestError, match="there is no column 'nobody'"):
        worker.fit(replace(ask, expert="nobody = 1"), never)


def test_who_opens_a_folder_again_sees_what_has_changed_and_what_is_new(tmp_path):
    example = museum().problem
    write_problem(example, tmp_path / "house")
    worker, key = Worker([str(tmp_path)]), f"problem:{tmp_path.name}/house"
    before = worker.answer({"what": "scene", "key": key}, never)
    assert worker.scene(key, 0) is worker.scene(key, 0)
    write_problem(replace(example, mdp=example.mdp.replace(discount=0.5)), tmp_path / "house", overwrite=True)
    assert worker.answer({"what": "scene", "key": key}, never)["discount"] == 0.5 != before["discount"]
    write_problem(example, tmp_path / "later")
    assert f"problem:{tmp_path.name}/later" in {entry["key"] for entry in worker.catalogue()["scenes"]}


def test_a_worker_begins_though_a_folder_is_gone(tmp_path):
    assert Worker([str(tmp_path / "gone")]).answer({"what": "scene", "key": "pit"}, never)["key"] == "pit"


def test_trajectories_of_one_state_have_no_score(tmp_path):
    short = MDP(np.ones((2, 1, 2)) / 2, np.eye(2), discount=1.0, horizon=1)
    write_problem(Problem(short, Trajectories.from_lists([[0], [1], [1]])), tmp_path / "short")
    worker, key = Worker([str(tmp_path)]), f"problem:{tmp_path.name}/short"
    assert worker.fit(ask_of(worker, key), never)["models"][0]["score"] is None


def test_states_on_a_lattice_are_tiles_and_others_are_dots():
    mdp = museum().problem.mdp
    places = np.array([(x, y) for y in range(5) for x in range(5)]) * [10.0, 20.0]
    assert make_layout(mdp, places).kind == "grid"
    np.testing.assert_allclose(np.ptp(make_layout(mdp, places).at, axis=0), 4.0)
    places[3] += [1.0, 0.5]
    assert make_layout(mdp, places).kind == "graph"
    assert make_layout(mdp, None).kind == "graph"
    assert make_layout(mdp, np.full((25, 2), np.nan)).n_tiles == 25  # columns without a number in them


def test_an_arrow_points_where_an_action_leads_in_expectation(worker):
    scene = worker.scene("pit", 0)  # up, down, left, right; each slips to either side
    ways = directions(scene.mdp, scene.layout)
    middle = 2 * 6 + 2
    np.testing.assert_allclose(ways[middle] / 0.8, [(0, 1), (0, -1), (-1, 0), (1, 0)], atol=1e-12)
    assert not ways[0, 1].any()  # down, in the lower left corner


def test_the_list_names_every_group():
    assert {entry["group"] for entry in catalogue({"problem:x": "x"})} >= {
        "The paper's domains",
        "Examples",
        "Your folders",
    }


def test_a_saved_fit_is_shown_and_a_path_in_its_summary_leads_nowhere(tmp_path):
    problem = museum().problem
    write_problem(problem, tmp_path / "outside" / "museum")
    (tmp_path / "given").mkdir()
    MaxEntIRL(ridge=0.1).fit(problem.mdp, problem.select("who = guide").trajectories[:5]).save(
        tmp_path / "given/model.npz"
    )
    told = {"folder": str(tmp_path / "outside" / "museum"), "in_words": ["<b>"], "estimates": [{"name": "f_view"}, 3]}
    (tmp_path / "given" / "fit.json").write_text(json.dumps(told))
    shown = Worker([str(tmp_path / "given")]).answer({"what": "fitted", "key": "fit:given"}, never)
    assert "sampled from the model" in shown["tracks_title"]  # the folder it names was not given
    both = Worker([str(tmp_path / "given"), str(tmp_path / "outside")])
    assert (
        both.answer({"what": "fitted", "key": "fit:given"}, never)["tracks_title"]
        == "Trajectories of the problem folder"
    )
    (tmp_path / "given" / "fit.json").write_text('{"in_words": 5, "estimates": {"a": 1}, "folder": [2]}')
    assert both.answer({"what": "fitted", "key": "fit:given"}, never)["words"] == []
    BehaviourCloning().fit(problem.mdp, problem.trajectories[:5]).save(tmp_path / "given/model.npz")
    with pytest.raises(RequestError, match="BehaviourCloning has no weights or no visits"):
        both.answer({"what": "fitted", "key": "fit:given"}, never)
    json.dumps(shown, allow_nan=False)
