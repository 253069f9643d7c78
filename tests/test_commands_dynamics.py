"""`messirl fit` where nobody knows the dynamics: folders without edges, and recordings of vectors."""

from __future__ import annotations

import html
import re
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest
from folders import ROLES, grid, park, read_json
from seeds import generator
from worlds import drawn, random_mdp

import messirl
from messirl import MESSI
from messirl.app import cli
from messirl.dynamics import FittedMESSI, estimate_mdp
from messirl.dynamics.state_features import RadialGrid, Squares
from messirl.io import (
    Problem,
    Recording,
    read_estimable,
    read_problem,
    read_recordings,
    select,
    to_minari,
    write_problem,
)
from messirl.io.recordings.files import recordings_from_table
from messirl.similarity import RBF

SPLIT = ["--expert", "role = expert", "--unlabelled", "role = unlabelled"]
HELD_OUT = ["--test", "role = test"]
PLAIN = ["--no-baselines", "--no-report"]
ESTIMATED = ["--dynamics", "estimated"]
FITTED = ["--dynamics", "fitted", "--discount", "0.9"]


@pytest.fixture
def run(capsys):
    def command(*words):
        code = cli.main([str(word) for word in words])
        written = capsys.readouterr()
        return code, written.out, written.err

    return command


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return grid(tmp_path_factory.mktemp("whole") / "grid")


@pytest.fixture
def bare(whole, tmp_path):
    """The same folder without its edges."""
    folder = shutil.copytree(whole, tmp_path / "bare")
    (folder / "edges.parquet").unlink()
    return folder


def fit(run, folder, out, *words):
    code, said, noted = run("fit", folder, *words, "--out", out, "--force")
    assert code == 0, noted
    return read_json((out / "fit.json").read_text(encoding="utf-8")), said, noted


# ------------------------------------------------------------ estimated


def test_a_folder_without_edges_is_fitted_to_the_mdp_of_its_own_moves(run, whole, bare, tmp_path):
    summary, _, noted = fit(run, bare, tmp_path / "out", *ESTIMATED, *SPLIT, *HELD_OUT, *PLAIN)
    problem = read_problem(whole)
    rows = {name: np.flatnonzero(select(problem.meta, f"role = {name}")) for name in ROLES}
    learnt = problem.trajectories[np.concatenate([rows["expert"], rows["unlabelled"]])]
    mdp = estimate_mdp(learnt, problem.mdp.features, n_actions=problem.mdp.n_actions, discount=0.9).mdp
    own = MESSI(RBF("median", standardise=True), max_iter=500)
    own.fit(mdp, problem.trajectories[rows["expert"]], problem.trajectories[rows["unlabelled"]])
    np.testing.assert_allclose(list(summary["theta"].values()), own.theta_, rtol=1e-5, atol=1e-6)
    assert summary["dynamics"]["kind"] == "estimated"
    assert summary["dynamics"]["transitions"] == (learnt.lengths - 1).sum()
    assert f"{(learnt.lengths - 1).sum()} transitions" in summary["dynamics"]["report"][0]
    assert all(f"messirl: dynamics: {line}" in noted for line in summary["dynamics"]["report"])
    np.testing.assert_allclose(messirl.load(tmp_path / "out" / "model.npz").theta_, own.theta_, rtol=1e-5, atol=1e-6)


def test_nothing_held_out_is_counted(run, bare, tmp_path):
    with_test, _, _ = fit(run, bare, tmp_path / "a", *ESTIMATED, *SPLIT, *HELD_OUT, *PLAIN)
    without, _, _ = fit(run, bare, tmp_path / "b", *ESTIMATED, *SPLIT, *PLAIN)
    assert with_test["dynamics"]["transitions"] < without["dynamics"]["transitions"]


def test_edges_say_which_moves_are_possible_and_their_probabilities_are_not_used(run, tmp_path):
    mdp = random_mdp(discount=0.8, start=np.full(5, 0.2))
    tracks = drawn(mdp, [2.0, -1.0, 1.0], 20, 0, length=15)
    flat = mdp.replace(transitions=np.full((5, 3, 5), 0.2))
    for name, one in (("true", mdp), ("flat", flat)):
        write_problem(Problem(one, tracks), tmp_path / name)
    thetas = {
        (name, *words): fit(run, tmp_path / name, tmp_path / "out", *words, *PLAIN)[0]["theta"]
        for name in ("true", "flat")
        for words in ((), (*ESTIMATED, "--prior", "2"))
    }
    assert thetas["true",] != thetas["flat",]
    assert thetas["true", *ESTIMATED, "--prior", "2"] == thetas["flat", *ESTIMATED, "--prior", "2"]


def test_known_dynamics_stay_the_default_and_are_named(run, whole, tmp_path):
    summary, _, _ = fit(run, whole, tmp_path / "out", *SPLIT, *PLAIN)
    assert summary["dynamics"] == {"kind": "known"}


def test_moves_without_actions_become_actions_and_this_is_said(run, tmp_path):
    folder = park(tmp_path / "park")
    (folder / "edges.csv").unlink()
    summary, _, noted = fit(run, folder, tmp_path / "out", *ESTIMATED, "--theta-max", "5", *PLAIN)
    assert summary["dynamics"]["actions_inferred"] is True
    assert "no actions recorded" in noted
    assert set(summary["theta"]) == {"f_green", "f_food"}


def test_actions_keep_the_labels_of_the_trajectories(run, tmp_path):
    tracks = "trajectory_id,step,state,action\na,0,gate,east\na,1,pond,north\na,2,wood,\nb,0,gate,north\nb,1,café,\n"
    folder = park(tmp_path / "park", trajectories__csv=tracks, trajectory_meta__csv="trajectory_id\na\nb\n")
    (folder / "edges.csv").unlink()
    summary, _, _ = fit(run, folder, tmp_path / "out", *ESTIMATED, "--theta-max", "5", *PLAIN)
    assert summary["dynamics"]["actions_inferred"] is False
    assert messirl.load(tmp_path / "out" / "model.npz").mdp_.action_names == ("east", "north")


def test_goals_are_kept_where_edges_are_missing(run, tmp_path):
    meta = "trajectory_id,goal\nanna,pond\nbob,gate\ncleo,café\n"
    folder = park(tmp_path / "park", trajectory_meta__csv=meta)
    (folder / "edges.csv").unlink()
    tracks = (folder / "trajectories.csv").read_text().replace("anna,1,pond\nanna,2,wood\nanna,3,pond", "anna,1,pond")
    (folder / "trajectories.csv").write_text(tracks.replace("bob,0,gate", "bob,0,wood"), encoding="utf-8")
    fit(run, folder, tmp_path / "out", *ESTIMATED, "--theta-max", "5", *PLAIN)
    assert messirl.load(tmp_path / "out" / "model.npz").goals_.tolist() == [0, 1, 3]


def test_held_out_moves_never_seen_are_left_out_of_the_score_with_a_note(run, tmp_path):
    folder = park(tmp_path / "park")
    (folder / "edges.csv").unlink()
    words = [*ESTIMATED, "--test", "age < 20", "--theta-max", "5", *PLAIN]
    summary, _, noted = fit(run, folder, tmp_path / "out", *words)
    assert "1 of the 1 trajectories of --test are not scored: they make no step, or one that was never" in noted
    assert summary["scores"][0]["held_out"] is None


def test_the_report_tells_what_the_data_says_of_the_dynamics(run, bare, tmp_path):
    fit(run, bare, tmp_path / "out", *ESTIMATED, *SPLIT, "--no-baselines")
    page = next((tmp_path / "out").glob("*.html")).read_text(encoding="utf-8")
    assert "state-action pairs" in page


# ------------------------------------------------------------ fitted


def walk(seed: int, right: float, steps: int = 25) -> tuple[np.ndarray, np.ndarray]:
    """A point in [0, 1]²: action 1 moves it to the right, action 0 to the left, both with noise."""
    random = generator(seed)
    at, points, actions = random.uniform(0.2, 0.8, 2), [], []
    for _ in range(steps):
        points.append(at)
        actions.append(int(random.random() < right))
        push = np.array([0.1 * (2 * actions[-1] - 1), 0.0])
        at = np.clip(at + push + random.normal(0, 0.02, 2), 0, 1)
    return np.array([*points, at]), np.array(actions)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Recordings with a column role, as .csv and .parquet."""
    place, rows = tmp_path_factory.mktemp("recordings"), []
    for i in range(12):
        role = "expert" if i < 4 else "unlabelled" if i < 10 else "test"
        points, actions = walk(i, 0.9 if role != "unlabelled" else 0.4)
        for step, (x, y) in enumerate(points):
            taken = int(actions[step]) if step < len(actions) else None
            rows.append({"trajectory_id": i, "step": step, "o_x": x, "o_y": y, "action": taken, "role": role})
    table = pa.Table.from_pylist(rows)
    pv.write_csv(table, place / "tracks.csv")
    pq.write_table(table, place / "tracks.parquet")
    return place


def test_recordings_are_fitted_by_fitted_messi(run, tables, tmp_path):
    summary, said, _ = fit(run, tables / "tracks.parquet", tmp_path / "out", *FITTED, *SPLIT, *HELD_OUT)
    found = recordings_from_table(tables / "tracks.parquet")
    features = Squares.fit(np.concatenate([one.observations for one in found[:10]]))
    own = FittedMESSI(features, discount=0.9, max_iter=500).fit(found[:4], found[4:10])
    np.testing.assert_allclose(list(summary["theta"].values()), own.theta_)
    assert summary["scores"][0]["held_out"] == pytest.approx(own.score(found[10:]))
    assert summary["scores"][1]["expert"] == pytest.approx(-np.log(2))
    assert summary["dynamics"] | {"kind": "fitted", "transitions": 250, "actions": 2} == summary["dynamics"]
    assert "FittedMESSI on 4 expert, 6 unlabelled, 2 test" in said
    policy = pq.read_table(tmp_path / "out" / "policy.parquet")
    assert policy.column_names == ["o_x", "o_y", "reward", "value", "p_0", "p_1"], "as the source calls them"
    assert list(summary["theta"]) == ["constant", "o_x", "o_y", "o_x squared", "o_y squared"]
    at = np.column_stack([policy["o_x"], policy["o_y"]])
    np.testing.assert_allclose(np.column_stack([policy["p_0"], policy["p_1"]]), own.policy(at))


def test_the_page_of_recordings_opens_with_what_they_want_and_whether_the_others_helped(run, tables, tmp_path):
    words = [*FITTED, *SPLIT, *HELD_OUT, "--max-iter", "5"]
    summary, said, _ = fit(run, tables / "tracks.csv", tmp_path / "out", *words)
    wants, stopped, chance, use, beyond = summary["in_words"]
    assert re.search(r"The weights of the experts \(4 trajectories, role = expert\) have no intervals", wants)
    assert "a high x (+)" in wants
    assert "did not converge" in stopped
    assert chance.startswith("The 2 held-out trajectories are predicted ")
    assert use.startswith("Using the 6 unlabelled trajectories (role = unlabelled) ")
    assert "compared with fitted MaxEnt-IRL on the experts only" in use
    assert beyond.startswith("With the same dynamics, learning the reward from them too is ")
    assert all(sentence in said for sentence in summary["in_words"])
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    shown = html.unescape(re.sub(r"<[^>]*>", "", page.split('class="said"')[1].split("</div>")[0]))
    assert use.split(":")[0] in shown
    assert page.count("data:image/svg+xml") == 5
    assert "report.html" in summary["files"]


def test_where_an_expert_never_takes_an_action_the_experts_alone_are_not_compared(run, tables, tmp_path):
    found = pq.read_table(tables / "tracks.parquet").to_pylist()
    table = [row | {"action": 1 if row["role"] == "expert" and row["step"] < 25 else row["action"]} for row in found]
    pq.write_table(pa.Table.from_pylist(table), tmp_path / "tracks.parquet")
    words = [*FITTED, *SPLIT, *HELD_OUT, "--max-iter", "2", "--no-report"]
    summary, _, noted = fit(run, tmp_path / "tracks.parquet", tmp_path / "out", *words)
    assert "fitted MaxEnt-IRL was not fitted: action 0 is never taken" in noted
    assert summary["in_words"][-1].endswith(" helps: nothing was fitted without them.")
    assert not (tmp_path / "out" / "report.html").exists()


def test_a_grid_of_features_and_no_unlabelled_is_maxent(run, tables, tmp_path):
    words = [*FITTED, "--grid", "3", "--expert", "role = expert", "--max-iter", "20", "--json"]
    _, said, _ = fit(run, tables / "tracks.csv", tmp_path / "out", *words)
    summary = read_json(said)
    assert len(summary["theta"]) == 1 + 3**2
    assert summary["dynamics"]["lambda0"] == 0.0
    assert summary["trajectories"] == {"expert": 4}


def test_arrays_are_filtered_by_what_recordings_have(run, tmp_path):
    some = [walk(i, 0.8, steps=20 + i) for i in range(4)]
    arrays = {
        "observations": np.concatenate([points for points, _ in some]),
        "actions": np.concatenate([actions for _, actions in some]),
        "lengths": np.array([len(points) for points, _ in some]),
        "rewards": np.concatenate([np.full(len(actions), float(i)) for i, (_, actions) in enumerate(some)]),
    }
    np.savez(tmp_path / "tracks.npz", **arrays)
    words = [*FITTED, "--expert", "return > 40", "--unlabelled", "steps <= 21", "--max-iter", "30"]
    summary, _, _ = fit(run, tmp_path / "tracks.npz", tmp_path / "out", *words)
    assert summary["trajectories"] == {"expert": 2, "unlabelled": 2}


def test_hdf5_of_minari_is_read(run, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "main_data.hdf5", "w") as file:
        for i in range(3):
            points, actions = walk(i, 0.7)
            group = file.create_group(f"episode_{i}")
            last = np.arange(len(actions)) == len(actions) - 1
            for name, values in (
                ("observations", points),
                ("actions", actions),
                ("rewards", np.ones(len(actions))),
                ("terminations", last & False),
                ("truncations", last),
            ):
                group.create_dataset(name, data=values)
    summary, _, _ = fit(run, tmp_path / "main_data.hdf5", tmp_path / "out", *FITTED, "--max-iter", "30")
    assert summary["trajectories"] == {"expert": 3}


def test_a_minari_data_set_is_read_by_its_id(run, tmp_path, monkeypatch):
    pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    to_minari([Recording(*walk(i, 0.7), truncated=True) for i in range(3)], "walks-v0")
    words = [*FITTED, "--expert", "trajectory_id < 2", "--unlabelled", "trajectory_id = 2", "--max-iter", "30"]
    summary, _, _ = fit(run, "minari:walks-v0", tmp_path / "out", *words)
    assert summary["trajectories"] == {"expert": 2, "unlabelled": 1}


# ------------------------------------------------------------ reading


def test_a_folder_is_read_for_estimation_with_and_without_its_edges(whole, bare):
    with_edges, without = read_estimable(whole), read_estimable(bare)
    assert with_edges.problem.trajectories == without.problem.trajectories
    some = without.problem.trajectories[:10]
    for found, graph in ((with_edges, with_edges.problem.mdp.transitions), (without, None)):
        mdp = found.problem.mdp
        own = estimate_mdp(some, mdp.features, n_actions=mdp.n_actions, graph=graph, prior=0.5, discount=0.9).mdp
        assert abs(found.estimate(some, 0.5).mdp.transitions - own.transitions).max() == 0
    everything = estimate_mdp(without.problem.trajectories, **without.known).mdp
    assert abs(without.problem.mdp.transitions - everything.transitions).max() == 0


def test_a_table_of_recordings_is_read_once_with_its_further_columns(tables, monkeypatch):
    from messirl.io.recordings import files

    read, loaded = [], files.load_table
    monkeypatch.setattr(files, "load_table", lambda path: read.append(path) or loaded(path))
    found, facts = read_recordings(tables / "tracks.csv")
    assert len(read) == 1
    assert list(facts) == ["trajectory_id", "steps", "terminated", "role"]
    assert facts["role"].tolist() == ["expert"] * 4 + ["unlabelled"] * 6 + ["test"] * 2
    assert facts["steps"].tolist() == [len(one) for one in found] == [25] * 12


def test_observations_of_true_and_false_are_points(tmp_path):
    given = np.array([[True, False], [False, False], [True, True]])
    np.savez(tmp_path / "flags.npz", observations=given, actions=np.array([0, 1]))
    points = read_recordings(tmp_path / "flags.npz")[0][0].observations
    assert points.dtype == np.float64
    assert points.tolist() == given.tolist()


# ------------------------------------------------------------ what is wrong

WRONG = {
    "no discount": (["--dynamics", "fitted"], "recordings have no discount: give --discount"),
    "prior": ([*FITTED, "--prior", "1"], "--prior has no effect with --dynamics fitted"),
    "em": ([*FITTED, "--method", "em"], "--method em cannot be combined with --dynamics fitted"),
    "entropy": ([*FITTED, "--entropy", "noncausal"], "--entropy noncausal cannot be combined with"),
    "solver": ([*FITTED, "--solver", "paper"], "--solver paper cannot be combined with"),
    "ridge": ([*FITTED, "--ridge", "1"], "--ridge cannot be combined with"),
    "reference": ([*FITTED, "--reference", "unlabelled"], "--reference cannot be combined with"),
    "weight": ([*FITTED, "--unlabelled-weight", "0.1"], "--unlabelled-weight cannot be combined with"),
    "features": ([*FITTED, "--features", "o_x"], "--features cannot be combined with"),
    "messi": ([*FITTED, "--method", "messi"], "--method messi needs unlabelled trajectories"),
    "filter": (
        [*FITTED, "--expert", "role = king"],
        "'role' holds unlabelled (6), expert (4), test (2)",
    ),
    "column": ([*FITTED, "--expert", "king = 1"], "there is no column 'king'"),
    "all taken": ([*FITTED, "--unlabelled", "trajectory_id >= 0"], "select every trajectory"),
    "all expert": (
        [*FITTED, "--expert", "role != king", "--unlabelled", "role = expert"],
        "the expert's: widen it",
    ),
    "both": ([*FITTED, "--expert", "role != king", "--test", "role = test"], "in both --test and --expert"),
    "too many": ([*FITTED, "--expert", "role = expert", "--n-expert", "9"], "but there are only 4 such"),
    "none named": ([*FITTED, "--n-unlabelled", "2"], "--n-unlabelled has no effect without --unlabelled"),
    "grid": ([*FITTED, "--grid", "1"], "a grid of 1 centres in 2 coordinates: give 2 … 100"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_recordings_is_one_sentence(run, tables, tmp_path, case):
    words, said = WRONG[case]
    code, out, err = run("fit", tables / "tracks.csv", *words, "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("option", [["--discount", "0.9"], ["--grid", "3"], ["--prior", "1"]])
def test_options_of_other_dynamics_are_refused(run, whole, tmp_path, option):
    code, _, err = run("fit", whole, *option, "--out", tmp_path / "out")
    assert code == 2
    assert f"{option[0]} has no effect with --dynamics known" in err


def test_a_discount_of_one_is_refused_by_the_parser(tables, capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["fit", str(tables / "tracks.csv"), "--dynamics", "fitted", "--discount", "1"])
    assert left.value.code == 2
    assert "'1' is not a number > 0 and < 1" in capsys.readouterr().err


def test_a_folder_is_no_file_of_recordings(run, whole, tmp_path):
    code, _, err = run("fit", whole, *FITTED, "--out", tmp_path / "out")
    assert code == 2
    assert "is not a file of recordings: give .npz, .parquet" in err


def test_a_column_of_a_trajectory_must_not_change_within_it(run, tables, tmp_path):
    text = (tables / "tracks.csv").read_text().replace("expert", "king", 1)
    (tmp_path / "tracks.csv").write_text(text)
    code, _, err = run("fit", tmp_path / "tracks.csv", *FITTED, "--out", tmp_path / "out")
    assert code == 2
    assert "role changes within a trajectory" in err


@pytest.mark.parametrize(
    ("actions", "said"),
    [
        (np.array([0.5, 1.5, 0.5]), "its actions are float64 of shape (3,): number them 0, 1, …, one per step"),
        (np.array([0, 0, 0]), "all recordings take the same action, 0"),
        (np.array([0, 2, 0]), "action 1 is never taken in any recording"),
    ],
)
def test_actions_that_teach_nothing_are_refused_in_one_sentence(run, tmp_path, actions, said):
    np.savez(tmp_path / "tracks.npz", observations=np.arange(8.0).reshape(4, 2), actions=actions)
    code, _, err = run("fit", tmp_path / "tracks.npz", *FITTED, "--out", tmp_path / "out")
    assert code == 2
    assert said in err


BARE = {
    "no folder": ("", "is not a folder: give a folder with states and trajectories"),
    "no states": ("states.csv", "holds neither states.parquet nor states.csv: add the table"),
    "no trajectories": ("trajectories.csv", "holds neither trajectories.parquet nor trajectories.csv"),
    "no settings": ("problem.json", "problem.json: does not exist"),
}


@pytest.mark.parametrize("case", BARE)
def test_what_a_folder_without_edges_lacks_is_named(run, tmp_path, case):
    lacks, said = BARE[case]
    folder = park(tmp_path / "park")
    (folder / "edges.csv").unlink()
    if lacks:
        (folder / lacks).unlink()
    code, _, err = run("fit", folder if lacks else tmp_path / "none", *ESTIMATED, "--out", tmp_path / "out")
    assert code == 2
    assert said in err


def test_a_state_that_is_not_in_the_table_is_named_with_its_row(run, tmp_path):
    tracks = "trajectory_id,step,state\na,0,gate\na,1,moon\n"
    folder = park(tmp_path / "park", trajectories__csv=tracks, trajectory_meta__csv="trajectory_id\na\n")
    (folder / "edges.csv").unlink()
    code, _, err = run("fit", folder, *ESTIMATED, "--out", tmp_path / "out")
    assert code == 2
    assert "state 'moon' is not a known state" in err


def test_features_of_edges_are_refused_where_dynamics_are_estimated(run, tmp_path):
    edges = "from,to,action,g_far\ngate,pond,0,1\npond,wood,0,1\nwood,pond,0,2\npond,gate,1,3\ngate,café,1,1\ncafé,gate,0,1\nwood,café,1,1\n"  # noqa: E501
    folder = park(tmp_path / "park", edges__csv=edges)
    code, _, err = run("fit", folder, *ESTIMATED, "--out", tmp_path / "out")
    assert code == 2
    assert "have features g_*, which depend on the dynamics" in err


# ------------------------------------------------------------ features


def test_squares_are_a_constant_the_coordinates_and_their_squares():
    points = np.array([[0.0, 10.0], [2.0, 10.0]])
    features = Squares.fit(points)
    np.testing.assert_allclose(features(points), [[1, -1, 0, 1, 0], [1, 1, 0, 1, 0]])
    assert features.names == ["constant", "o_0", "o_1", "o_0 squared", "o_1 squared"]


def test_a_radial_grid_is_one_at_its_centres_and_falls_with_distance():
    features = RadialGrid.fit([[0.0, 0.0], [1.0, 4.0]], 3)
    table = features(features.centres)
    np.testing.assert_allclose(np.diag(table[:, 1:]), 1.0)
    assert table[0, 1 + 1] == pytest.approx(np.exp(-0.5))  # the next centre, one distance away
    assert len(features.names) == table.shape[1] == 10


@pytest.mark.parametrize(
    ("points", "n", "said"),
    [([[0.0], [1.0]], 1, "give 2 … 10000"), ([[0.0, 1.0], [0.0, 2.0]], 3, "coordinate 0 is 0 in every state")],
)
def test_a_grid_that_cannot_be_is_refused(points, n, said):
    with pytest.raises(ValueError, match=said):
        RadialGrid.fit(points, n)


def test_fitted_messi_is_exported_and_nothing_else_is_made_up():
    import messirl.dynamics

    assert messirl.dynamics.FittedMESSI is FittedMESSI
    with pytest.raises(AttributeError, match="no attribute 'FittedMaxEnt'"):
        _ = messirl.dynamics.FittedMaxEnt
