"""Trajectories that stay in Parquet files: read in chunks, checked as in memory, and fitted to with equal results."""

from __future__ import annotations

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from folders import grid, park, read_json
from keeping import Keeping
from problems import problem
from seeds import generator, pinned
from sklearn.base import clone
from worlds import random_mdp

from messirl import MDP, MESSI, MESSICV, EMMaxEnt, MaxEntIRL, Trajectories, diagnose
from messirl.app import cli
from messirl.data import spill
from messirl.data.choices import choices_of
from messirl.data.feature_counts import feature_counts
from messirl.data.streamed_summary import gather_statistics
from messirl.estimators._prior_policy import fit_population_policy
from messirl.estimators._streaming import all_in_files
from messirl.estimators._training_data import TrainingData, training_objective
from messirl.io import InputError, StreamedTrajectories, read_problem, read_trajectories, write_trajectories
from messirl.io.folder.labels import Labels
from messirl.objective import Objective
from messirl.selection import bootstrap
from messirl.selection.resampling import stability
from messirl.similarity import RBF, CompleteGraph, Exponential, NearestNeighbours, Similarity

KINDS = ["finite", "endless", "episodic", "steps", "sparse"]
FITS = {
    "a penalty": MESSI(lambda0=1.0),
    "a penalty on all pairs": MESSI(CompleteGraph(), lambda0=1.0),
    "a penalty and light pooling": MESSI(lambda0=1.0, unlabelled_weight=0.3),
    "a base policy": MESSI(lambda0=1.0, reference="unlabelled"),
    "counts": MESSI(RBF(2.0), lambda0=1.0, objective="counts"),
    "pooled counts": MaxEntIRL(unlabelled_weight=0.5, objective="counts"),
    "everything": MaxEntIRL(ridge=0.1, standardise=True, reference="unlabelled", unlabelled_weight=1.0),
}


@pytest.fixture(autouse=True)
def quiet():
    """What fits say of data this small is not what is tested here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def table_of(trajectories, **columns):
    steps = np.repeat(np.arange(len(trajectories)), trajectories.lengths)
    made = {"trajectory_id": steps, "step": trajectories.step, "state": trajectories.states}
    if trajectories.actions is not None:
        taken = np.full(trajectories.states.size, -1)
        taken[trajectories.leaves] = trajectories.actions
        made["action"] = pa.array(taken, mask=taken < 0)
    return pa.table(made | columns)


def spread(table, folder, files=3, row_group_size=5):
    """The table cut into files, wherever that is, and these into row groups."""
    folder.mkdir(parents=True, exist_ok=True)
    bounds = np.linspace(0, table.num_rows, files + 1).astype(int)
    for i, (lo, hi) in enumerate(pairwise(bounds)):
        pq.write_table(table.slice(lo, hi - lo), folder / f"part-{i:02d}.parquet", row_group_size=row_group_size)
    return folder


def without_actions(trajectories):
    return Trajectories(trajectories.states, trajectories.offsets)


def together(chunks):
    every = list(chunks)
    return sum(every[1:], every[0])


def chain(names=None):
    """Six places in a row, steps to both sides."""
    right, left = np.minimum(np.arange(6) + 1, 5), np.maximum(np.arange(6) - 1, 0)
    moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    return MDP(moves, features=np.linspace(0, 1, 6)[:, None], discount=0.9, state_names=names)


WALKS = Trajectories.from_lists([[0, 1, 2], [3, 2, 1, 0], [5, 4], [2, 3, 4, 5]], [[1, 1], [0, 0, 0], [0], [1, 1, 1]])


# ------------------------------------------------------------ reading


@pytest.mark.parametrize("chunk_rows", [1, 4, 7, 1000])
@pytest.mark.parametrize("files", [1, 2, 5, 13])
@pytest.mark.parametrize("actions", [True, False])
def test_chunks_are_the_trajectories_wherever_files_and_row_groups_end(tmp_path, chunk_rows, files, actions):
    walks = WALKS if actions else without_actions(WALKS)
    found = StreamedTrajectories(spread(table_of(walks), tmp_path / "w", files, 2), chunk_rows=chunk_rows)
    chunks = list(found.chunks(chain()))
    assert together(chunks) == walks
    assert len(found) == len(walks)
    assert all(chunk.states.size <= 2 * chunk_rows + walks.lengths.max() for chunk in chunks)


def test_a_trajectory_longer_than_a_chunk_is_read_whole(tmp_path):
    there_and_back = [0, 1, 2, 3, 4, 5, 4, 3, 2, 1] * 20
    walks = Trajectories.from_lists([[0, 1], there_and_back, [1, 0]])
    found = StreamedTrajectories(spread(table_of(walks), tmp_path / "w", 7), chunk_rows=10)
    assert together(found.chunks(chain())) == walks


def test_a_file_a_folder_a_list_and_a_dataset_are_the_same_set(tmp_path):
    folder = spread(table_of(WALKS), tmp_path / "w")
    pq.write_table(table_of(WALKS), tmp_path / "one.parquet")
    files = sorted(folder.glob("*.parquet"))
    data = ds.dataset([str(file) for file in files])
    kept = data.filter(ds.field("trajectory_id") < 2)
    for source in (folder, str(folder), tmp_path / "one.parquet", files, [str(file) for file in files], data):
        assert together(StreamedTrajectories(source).chunks(chain())) == WALKS
    assert together(StreamedTrajectories(kept).chunks(chain())) == WALKS[:2]


def test_folders_in_folders_are_read_by_name_and_hidden_files_are_not(tmp_path):
    table = table_of(WALKS)
    for name, part in (("day=1", table.slice(0, 5)), ("day=2", table.slice(5))):
        spread(part, tmp_path / "w" / name, 2)
    (tmp_path / "w" / "_metadata.parquet").write_bytes(b"nothing")
    assert together(StreamedTrajectories(tmp_path / "w").chunks(chain())) == WALKS


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_states_may_be_called_by_the_names_of_the_mdp(tmp_path, kind):
    names = [f"place {i}" for i in range(6)]
    labels = pa.array([names[s] for s in WALKS.states], pa.string()).cast(kind)
    ids = pa.array([f"walk {i}" for i in np.repeat(range(4), WALKS.lengths)], pa.string()).cast(kind)
    table = table_of(WALKS, state=labels, trajectory_id=ids)
    found = StreamedTrajectories(spread(table, tmp_path / "w"), chunk_rows=4)
    assert together(found.chunks(chain(names))) == WALKS
    given = StreamedTrajectories(tmp_path / "w", state_labels=names)
    assert together(given.chunks(chain())) == WALKS
    with pytest.raises(InputError, match="column 'state' holds text, but the MDP has no state_names"):
        list(found.chunks(chain()))
    with pytest.raises(InputError, match="row 2: state 'place 0' is not a known state: correct it; did you mean"):
        list(found.chunks(chain([f"palace {i}" for i in range(6)])))


def test_steps_may_count_from_one_in_all_trajectories(tmp_path):
    folder = spread(table_of(WALKS, step=WALKS.step + 1), tmp_path / "w")
    assert together(StreamedTrajectories(folder, chunk_rows=4).chunks(chain())) == WALKS


def test_what_is_written_and_read_into_memory_is_what_is_streamed(tmp_path):
    given = problem("endless").unlabelled
    write_trajectories(given, tmp_path / "w.parquet")
    streamed = together(StreamedTrajectories(tmp_path / "w.parquet", chunk_rows=20).chunks(problem("endless").mdp))
    assert streamed == read_trajectories(tmp_path / "w.parquet")[0] == given


# ------------------------------------------------------------ faults


def refused(tmp_path, table, match, mdp=None, **how):
    found = StreamedTrajectories(spread(table, tmp_path / "w", **how), chunk_rows=4)
    with pytest.raises(InputError, match=match):
        looked_at(found, chain() if mdp is None else mdp)


def looked_at(found, mdp):
    return len(found), list(found.chunks(mdp))


def changed(row, column, value):
    table = table_of(WALKS)
    cells = table[column].to_pylist()
    cells[row] = value
    return table.set_column(table.column_names.index(column), column, pa.array(cells))


def test_rows_out_of_order_are_refused_by_file_row_and_trajectory(tmp_path):
    refused(tmp_path, changed(2, "step", 1), r"part-00.parquet, row 4: trajectory 0 has step 1 twice")
    refused(tmp_path, changed(5, "step", 7), r"part-01.parquet, row 3: step 7 of trajectory 1 follows step 1: count")
    refused(tmp_path, changed(7, "step", 1), r"part-01.parquet, row 5: trajectory 2 begins with step 1: count ")


def test_a_trajectory_whose_rows_are_not_together_is_refused(tmp_path):
    apart = "part-01.parquet, row 5: trajectory 0 begins again, after part-00.parquet, row 2: keep the rows"
    table = table_of(WALKS, trajectory_id=np.repeat([0, 1, 0, 3], WALKS.lengths))
    refused(tmp_path, table, apart)
    text = pa.array([f"t{i}" for i in np.repeat([0, 1, 0, 3], WALKS.lengths)])
    refused(tmp_path, table_of(WALKS, trajectory_id=text), apart.replace("0 begins", "t0 begins"))


def test_files_that_each_number_their_trajectories_anew_are_refused(tmp_path):
    for name in ("a", "b"):
        spread(table_of(WALKS), tmp_path / "w" / name, 1)
    with pytest.raises(InputError, match=r"b/part-00.parquet, row 2: trajectory 0 begins again, after a/part-00"):
        len(StreamedTrajectories(tmp_path / "w"))


def test_faults_against_the_mdp_are_named_with_file_row_and_trajectory(tmp_path):
    unknown = "row 3: trajectories: trajectory 1, step 2: state 9 is not one of 0 … 5: correct it"
    refused(tmp_path, changed(5, "state", 9), unknown)
    move = "trajectory 1, step 1: the transition from state 2 to 4 by action 0 has probability 0 in the MDP"
    refused(tmp_path, changed(5, "state", 4), move)
    short = "trajectory 2 has 2 states, but horizon=3"
    refused(tmp_path, table_of(WALKS[[0, 0, 2]]), short, mdp=chain().replace(horizon=3))
    started = chain().replace(start=[0.5, 0.0, 0.5, 0.0, 0.0, 0.0])
    with pytest.raises(InputError, match="unlabelled: trajectory 1, step 0: it begins in state 3, where start is 0"):
        MESSI().fit(started, WALKS[[0]], spread(table_of(WALKS), tmp_path / "w"))


def test_actions_must_be_there_for_every_step_and_nowhere_else(tmp_path):
    refused(tmp_path, changed(1, "action", None), "row 3: action is empty at step 1 of trajectory 0")
    refused(tmp_path, changed(2, "action", 1), "row 4: an action follows the last state of trajectory 0")


def test_columns_that_lack_or_hold_something_else_are_refused(tmp_path):
    refused(tmp_path, table_of(WALKS).drop_columns(["state"]), "column 'state' is missing")
    refused(tmp_path, table_of(WALKS, state=WALKS.states * 1.0), "column 'state' holds double: write whole")
    refused(tmp_path, changed(3, "state", None), "row 5: state is empty")
    refused(tmp_path, changed(3, "trajectory_id", None), "row 5: trajectory_id is empty")
    refused(tmp_path, table_of(WALKS, step=WALKS.step.astype(str)), "column 'step' holds string: write whole numbers")


def test_a_source_that_is_none_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.parquet").write_text("no table")
    for source, match in (
        (tmp_path / "absent", "absent: does not exist"),
        (tmp_path / "empty", "contains no .parquet file"),
        (tmp_path / "text.parquet", "text.parquet: is not a readable Parquet file"),
    ):
        with pytest.raises(InputError, match=match):
            MESSI().fit(chain(), WALKS, source)
    with pytest.raises(TypeError, match="3 is not a source of trajectories"):
        StreamedTrajectories(3)


def test_an_empty_set_is_refused(tmp_path):
    folder = spread(table_of(WALKS).slice(0, 0), tmp_path / "w", 2)
    assert len(StreamedTrajectories(folder)) == 0
    with pytest.raises(ValueError, match="unlabelled is empty: pass None"):
        MESSI().fit(chain(), WALKS, folder)


# ------------------------------------------------------------ what is gathered


@pytest.mark.parametrize("actions", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_one_pass_gathers_what_is_found_in_memory(tmp_path, kind, actions):
    mdp, _, walks = problem(kind)
    if not actions:
        walks = without_actions(walks)
    streamed = StreamedTrajectories(spread(table_of(walks), tmp_path / "w"), chunk_rows=9)
    found, made = gather_statistics(mdp, streamed), choices_of(mdp, walks)
    np.testing.assert_array_equal(found.first, np.bincount(walks.first, minlength=mdp.n_states))
    np.testing.assert_array_equal(found.own.counts, made.totals(np.ones(len(walks))))
    for name in ("group", "state", "of", "row", "log_probability"):
        np.testing.assert_allclose(getattr(found.own.choices(mdp), name), getattr(made, name), rtol=1e-12)
    np.testing.assert_allclose(
        fit_population_policy(mdp, streamed, 2.0), fit_population_policy(mdp, walks, 2.0), rtol=1e-12
    )
    if kind not in ("steps", "sparse") or actions:
        counts = gather_statistics(mdp, streamed, counted=True).counts
        np.testing.assert_allclose(counts, feature_counts(mdp, walks), rtol=1e-12)


def test_the_choices_counted_are_those_that_a_loop_counts(tmp_path):
    mdp, _, walks = problem("endless")
    often = np.zeros((mdp.n_states, mdp.n_actions))
    for walk in walks:
        for state, action in zip(walk.states[:-1], walk.actions, strict=True):
            often[state, action] += 1
    kinds = gather_statistics(mdp, StreamedTrajectories(spread(table_of(walks), tmp_path / "w"), chunk_rows=9)).own
    found = np.zeros(often.size)
    found[kinds.choices(mdp).row] = kinds.counts
    np.testing.assert_array_equal(found.reshape(often.shape), often)


def test_files_are_read_once_for_everything(tmp_path, monkeypatch):
    mdp, expert, walks = problem("finite")
    streamed = StreamedTrajectories(spread(table_of(walks), tmp_path / "w"))
    passes = []
    rows = StreamedTrajectories.rows
    monkeypatch.setattr(StreamedTrajectories, "rows", lambda *given: passes.append(1) or rows(*given))
    MESSI(lambda0=1.0, reference="unlabelled", unlabelled_weight=0.1).fit(mdp, expert, streamed)
    MaxEntIRL(ridge=0.1, standardise=True).fit(mdp, expert, streamed)
    assert len(passes) == 1


def test_the_shortest_trajectory_of_all_is_warned_of_once(tmp_path):
    walks = Trajectories.from_lists([[0, 1, 2, 3, 4, 5] * 1, [3, 2], [0, 1, 2]])
    streamed = StreamedTrajectories(spread(table_of(walks), tmp_path / "w", 1), chunk_rows=2)
    with pytest.warns(UserWarning, match="discount") as heard:
        gather_statistics(chain(), streamed, counted=True)
    assert len(heard) == 1
    assert "trajectory 1 (part-00.parquet, row 8) of unlabelled ends after 2 terms" in str(heard[0].message)


# ------------------------------------------------------------ in parts


@pytest.fixture(scope="module")
def pool():
    with ThreadPoolExecutor(2) as found:
        yield found


@pytest.mark.parametrize("chunk_rows", [1, 9, 1000])
@pytest.mark.parametrize("files", [1, 2, 5, 31])
@pytest.mark.parametrize("kind", KINDS)
def test_what_others_gather_is_what_is_gathered_here(tmp_path, monkeypatch, pool, kind, files, chunk_rows):
    monkeypatch.setattr(
        "messirl.data.streamed_trajectories.PART", 0
    )  # every file is a part, and trajectories go over several
    mdp, _, walks = problem(kind)
    folder = spread(table_of(walks), tmp_path / "w", files)
    there = StreamedTrajectories(folder, chunk_rows=chunk_rows, executor=pool)
    assert len(there.parts()) == files
    found, wanted = (
        gather_statistics(mdp, some, counted=True, moved=True)
        for some in (there, StreamedTrajectories(folder, chunk_rows=9))
    )
    for name in ("size", "made", "first", "counts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    assert found.mass == pytest.approx(wanted.mass, rel=1e-12)
    for recorded in (True, False):
        one, other = found.kinds(recorded=recorded), wanted.kinds(recorded=recorded)
        np.testing.assert_array_equal(one.keys, other.keys)
        np.testing.assert_array_equal(one.counts, other.counts)


@pytest.mark.parametrize("kept", [False, True], ids=["sent", "kept"])
@pytest.mark.parametrize("how", FITS)
def test_a_fit_to_what_others_gathered_is_the_one_from_memory(tmp_path, monkeypatch, pool, how, kept):
    pool = Keeping() if kept else pool
    monkeypatch.setattr("messirl.data.streamed_trajectories.PART", 0)
    mdp, expert, walks = problem("endless")
    one = clone(FITS[how]).fit(mdp, expert, walks)
    folder = spread(table_of(walks, trajectory_id=pa.array(np.repeat(list("abcdefgh"), walks.lengths))), tmp_path, 7)
    agree(clone(FITS[how]).fit(mdp, expert, StreamedTrajectories(folder, executor=pool)), one, 1e-10)


def test_faults_that_others_meet_are_named_as_here(tmp_path, monkeypatch, pool):
    monkeypatch.setattr("messirl.data.streamed_trajectories.PART", 0)
    for i, table in enumerate(
        [
            changed(5, "state", 4),  # in the middle of a part
            changed(2, "step", 7),
            changed(8, "state", 2),
            table_of(WALKS, step=WALKS.step + (np.arange(13) > 6)),  # a second base
            table_of(WALKS, trajectory_id=np.repeat([0, 1, 1, 3], WALKS.lengths)),
        ]
    ):
        said = []
        for executor in (None, pool):
            folder = spread(table, tmp_path / str(i), 4)
            with pytest.raises(InputError) as error:
                gather_statistics(chain(), StreamedTrajectories(folder, executor=executor))
            said.append(str(error.value))
        assert said[0] == said[1]


def test_a_set_goes_to_another_process_without_its_executor(tmp_path, pool):
    streamed = StreamedTrajectories(spread(table_of(WALKS), tmp_path / "w"), executor=pool)
    other = pickle.loads(pickle.dumps(streamed))
    assert other.executor is None
    assert together(other.chunks(chain())) == WALKS


# ------------------------------------------------------------ fits


def agree(other, one, digits=1e-12):
    for name in ("theta_", "objective_", "visitation_", "quadratic_", "reference_"):
        if getattr(one, name) is not None:
            np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=digits, atol=digits)


def both_fits(how, mdp, expert, walks, folder):
    one, other = clone(FITS[how]), clone(FITS[how])
    return one.fit(mdp, expert, walks), other.fit(mdp, expert, StreamedTrajectories(folder, chunk_rows=9))


@pytest.mark.parametrize("how", FITS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_from_files_is_the_fit_from_memory(tmp_path, kind, how):
    mdp, expert, walks = problem(kind)
    one, other = both_fits(how, mdp, expert, walks, spread(table_of(walks), tmp_path / "w"))
    agree(other, one, 1e-12 if FITS[how].unlabelled_weight <= 0 else 1e-10)  # sums in another order, then a search


@pytest.mark.parametrize("who", ["expert", "unlabelled", "neither"])
@pytest.mark.parametrize("how", FITS)
@pytest.mark.parametrize("kind", ["finite", "endless", "episodic"])
def test_it_is_so_whoever_has_actions(tmp_path, kind, how, who):
    mdp, expert, walks = problem(kind)
    expert = expert if who == "expert" else without_actions(expert)
    walks = walks if who == "unlabelled" else without_actions(walks)
    agree(*both_fits(how, mdp, expert, walks, spread(table_of(walks), tmp_path / "w")), digits=1e-10)


@pytest.mark.parametrize("kept", [0, spill.IN_MEMORY])
@pytest.mark.parametrize("how", FITS)
def test_it_is_so_where_counts_are_in_a_file_or_never_copied(tmp_path, monkeypatch, how, kept):
    mdp, expert, walks = problem("endless")
    monkeypatch.setattr(spill, "IN_MEMORY", kept)
    monkeypatch.setattr(spill, "COPIED", 0)
    monkeypatch.setattr(spill, "PART", 50)
    one, other = both_fits(how, mdp, expert, walks, spread(table_of(walks), tmp_path / "w"))
    agree(other, one, 1e-12 if FITS[how].unlabelled_weight <= 0 else 1e-10)


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("actions", [True, False])
@pytest.mark.parametrize("kind", ["finite", "endless", "episodic"])
def test_the_objective_of_pooling_from_files_is_the_one_from_memory(tmp_path, kind, actions, counted):
    mdp, expert, walks = problem(kind)
    walks = walks if actions else without_actions(walks)
    streamed = StreamedTrajectories(spread(table_of(walks), tmp_path / "w"), chunk_rows=9)
    rng = generator(6)
    own, theta = rng.random(len(expert)), -rng.random(mdp.n_features)
    data = TrainingData(expert, streamed)
    counts = data.counts(mdp) if counted else None
    weights = np.concatenate([own, np.full(len(walks), 0.3)])
    likely = "counts" if counted else "choices"
    one = Objective.from_trajectories(mdp, expert + walks, sample_weight=weights, objective=likely)
    other = training_objective(mdp, data, likely, weight=own, light=0.3, counts=counts)
    assert other.size == pytest.approx(one.size, rel=1e-12)
    assert other.sample_size == pytest.approx(one.sample_size, rel=1e-12)
    here, there = one(theta), other(theta)
    np.testing.assert_allclose(there.value, here.value, rtol=1e-12)
    np.testing.assert_allclose(there.gradient, here.gradient, rtol=1e-11, atol=1e-12)


def test_a_weighted_fit_from_files_is_the_one_from_memory(tmp_path):
    mdp, expert, walks = problem("endless")
    weights, model = generator(5).random(len(expert)), MESSI(unlabelled_weight=0.2)
    theta = model.fit(mdp, expert, walks, weights).theta_
    folder = spread(table_of(walks), tmp_path / "w")
    np.testing.assert_allclose(model.fit(mdp, expert, folder, weights).theta_, theta, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("measure", [RBF(2.0), Exponential(2.0), CompleteGraph(), NearestNeighbours(3)])
def test_every_similarity_of_counts_works_from_files(tmp_path, measure):
    mdp, expert, walks = problem("finite")
    folder = spread(table_of(walks), tmp_path / "w")
    one, other = (MESSI(measure, lambda0=2.0).fit(mdp, expert, some) for some in (walks, folder))
    np.testing.assert_allclose(other.penalty_matrix_, one.penalty_matrix_, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("likely", ["choices", "counts"])
@pytest.mark.parametrize("kind", ["finite", "endless", "episodic"])
def test_what_is_chosen_from_files_is_what_is_chosen_from_memory(tmp_path, kind, likely):
    mdp, expert, walks = problem(kind)
    folder = spread(table_of(walks), tmp_path / "w")
    few = expert[:3]
    one, other = (
        MESSICV(lambdas=[0.1, 1.0], cv=2, objective=likely, random_state=0).fit(mdp, few, some)
        for some in (walks, StreamedTrajectories(folder, chunk_rows=9))
    )
    assert str(other.candidate_) == str(one.candidate_)
    np.testing.assert_allclose(other.validation_.scores, one.validation_.scores, rtol=1e-7)
    np.testing.assert_allclose(other.agreement_.unlabelled, one.agreement_.unlabelled, rtol=1e-9)
    np.testing.assert_allclose(other.theta_, one.theta_, rtol=1e-7, atol=1e-9)


# ------------------------------------------------------------ diagnoses


def both_diagnoses(model, kind, folder, **how):
    """Of a fit to all but a few experts: from memory, and from files."""
    mdp, expert, walks = problem(kind)
    streamed = StreamedTrajectories(spread(table_of(walks), folder), chunk_rows=9)
    found = [
        diagnose(clone(model).fit(mdp, expert[:4], some), mdp, expert[:4], some, cv=2, random_state=0, **how)
        for some in (walks, streamed)
    ]
    return found, walks


@pytest.mark.slow
@pytest.mark.usefixtures("few_strengths")
@pytest.mark.parametrize(
    ("kind", "measure"),
    [
        ("finite", RBF(2.0)),
        ("finite", NearestNeighbours(3)),
        ("endless", CompleteGraph()),
        ("episodic", Exponential(2.0, standardise=True)),
    ],
)
def test_a_diagnosis_from_files_is_the_one_from_memory(tmp_path, kind, measure):
    (one, other), walks = both_diagnoses(MESSI(measure, lambda0=1.0), kind, tmp_path / "w", influential=0)
    assert other.verdict == one.verdict
    assert other.evidence == one.evidence
    assert other.influence is None
    for name in ("similarity", "share"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        other.agreement_with_experts.unlabelled, one.agreement_with_experts.unlabelled, rtol=1e-9
    )
    np.testing.assert_allclose([d.shrinkage for d in other.directions], [d.shrinkage for d in one.directions], 1e-7)
    assert other.share.shape == (len(walks),)


@pytest.mark.slow
@pytest.mark.usefixtures("few_strengths")
@pytest.mark.parametrize(
    ("kind", "measure"), [("finite", RBF(2.0)), ("endless", CompleteGraph()), ("episodic", RBF(2.0))]
)
def test_influence_from_files_is_near_that_of_a_refit(tmp_path, kind, measure):
    # A similarity that does not change when one is left out, and a prior: where the penalty alone held a weight, it
    # would move too far for one step.
    model = MESSI(measure, lambda0=0.05, theta_prior=1.0, tol=1e-9)
    (one, other), _ = both_diagnoses(model, kind, tmp_path / "w", influential=4)
    known = np.isfinite(one.influence)
    assert known.sum() == 4
    np.testing.assert_array_equal(np.isfinite(other.influence), known)
    np.testing.assert_allclose(other.influence[known], one.influence[known], rtol=0.05)


@pytest.mark.slow
@pytest.mark.usefixtures("few_strengths")
def test_no_influence_is_known_where_the_base_policy_or_the_pooling_is_from_files(tmp_path):
    for i, model in enumerate((MESSI(lambda0=1.0, reference="unlabelled"), MESSI(lambda0=1.0, unlabelled_weight=0.1))):
        (_, other), _ = both_diagnoses(model, "endless", tmp_path / str(i), influential=2)
        assert np.isnan(other.influence).all()
        assert "no influence is computed for trajectories in files" in other.evidence[-1]


def test_names_of_trajectories_are_those_of_the_files(tmp_path):
    ids = [f"walk {i}" for i in range(4)]
    text = table_of(WALKS, trajectory_id=pa.array(np.repeat(ids, WALKS.lengths)))
    for folder, table, wanted in (("a", table_of(WALKS), list("0123")), ("b", text, ids)):
        names = StreamedTrajectories(spread(table, tmp_path / folder)).names()
        assert list(names) == [names[j] for j in range(4)] == names[:] == wanted
        assert len(names) == 4


# ------------------------------------------------------------ what cannot be


def test_what_needs_trajectories_in_memory_says_so_at_once(tmp_path):
    class OfLengths(Similarity):
        def on(self, trajectories, counts):
            n = trajectories.lengths
            return lambda rows, columns: np.exp(-abs(n[rows][:, None] - n[columns]))

    mdp, expert, walks = problem("finite")
    folder = spread(table_of(walks), tmp_path / "w")
    remedy = "cannot stay in files: read them with messirl.io.read_trajectories"
    with pytest.raises(ValueError, match=f"EMMaxEnt reweights every trajectory in each round.*{remedy}"):
        EMMaxEnt().fit(mdp, expert, folder)
    with pytest.raises(ValueError, match=f"bootstrap draws .*{remedy}"):
        bootstrap(MESSI(), mdp, expert, str(folder))
    with pytest.raises(ValueError, match=f"stability fits to halves.*{remedy}"):
        stability(MESSI(), mdp, expert, folder)
    with pytest.raises(ValueError, match=f"looks at whole trajectories.*{remedy}"):
        MESSICV([OfLengths()]).fit(mdp, expert, folder)
    with pytest.raises(ValueError, match=f"looks at whole trajectories.*{remedy}"):
        MESSI(OfLengths()).fit(mdp, expert, StreamedTrajectories(folder))
    with pytest.raises(ValueError, match=f"looks at whole trajectories.*{remedy}"):
        diagnose(MESSI(OfLengths()).fit(mdp, expert, walks), mdp, expert, folder)
    aimed = problem("goals")
    with pytest.raises(ValueError, match="expert has goals, but trajectories in files cannot have any"):
        MESSI().fit(aimed.mdp, aimed.expert, spread(table_of(without_actions(aimed.unlabelled)), tmp_path / "g"))


@pytest.mark.parametrize("actions", [True, False])
@pytest.mark.parametrize("horizon", [None, 3])
def test_what_the_model_never_does_is_refused_from_files_as_from_memory(tmp_path, horizon, actions):
    moves = np.zeros((4, 2, 4))
    moves[0, 0, 1] = moves[0, 1, 2] = moves[1, 0, 1] = moves[2, 0, 2] = 1.0
    moves[1, 1, 2] = moves[1, 1, 3] = 0.5  # from 3 there is no way on
    mdp = MDP(moves, np.eye(4), discount=0.9, horizon=horizon)
    expert = Trajectories.from_lists([[0, 2, 2], [0, 1, 1]], [[1, 0], [0, 0]])
    others = Trajectories.from_lists([[0, 1, 1], [1, 1, 2], [1, 2, 2]], [[0, 0], [0, 1], [1, 0]])
    others = others if actions else without_actions(others)
    step = 1 if horizon is None else 0  # at the last step there is no way on that could be missed
    wrong = others if horizon is None else others[[0, 2]]
    for some in (wrong, spread(table_of(wrong), tmp_path / "w")):
        with pytest.raises(
            ValueError, match=rf"(?=.*unlabelled).*trajectory 1.*, step {step}: .*run into (a|the) dead end"
        ):
            MaxEntIRL(unlabelled_weight=1.0).fit(mdp, expert, some)


# ------------------------------------------------------------ the command


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A problem with labels, one whose states are numbered, and in files those of their trajectories with no role."""
    place, made = tmp_path_factory.mktemp("folders"), {}
    for name, build in (("grid", grid), ("park", park)):
        folder = build(place / name)
        whole = read_problem(folder)
        some = whole.select("role = unlabelled") if "role" in whole.meta else whole.select([0, 1])
        write_trajectories(some.trajectories, place / f"{name}.parquet", labels=Labels.of(some))
        made[name] = folder, spread(pq.read_table(place / f"{name}.parquet"), place / f"{name} files")
    return made


@pytest.mark.parametrize("words", [[], ["--reference", "unlabelled"], ["--unlabelled-weight", "0.1"]])
def test_messirl_fit_from_files_gives_the_scores_from_memory(folders, run, tmp_path, words):
    folder, files = folders["grid"]
    shared = [folder, "--expert", "role = expert", "--test", "role = test", *words, "--no-report"]
    run("fit", *shared, "--unlabelled", "role = unlabelled", "--out", tmp_path / "a")
    run("fit", *shared, "--unlabelled-from", files, "--out", tmp_path / "b")
    one, other = (read_json((tmp_path / name / "fit.json").read_text(encoding="utf-8")) for name in "ab")
    assert other["trajectories"] == one["trajectories"]
    assert list(other["theta"].values()) == pytest.approx(list(one["theta"].values()), rel=1e-9, abs=1e-9)
    for row, was in zip(other["scores"], one["scores"], strict=True):
        assert row["name"] == was["name"]
        assert (row["expert"], row["held_out"]) == pytest.approx((was["expert"], was["held_out"]), rel=1e-8)


def test_experts_that_are_all_in_the_files_are_told_of(tmp_path):
    with pinned():  # of some draws another trajectory is the first expert's
        mdp, expert, unlabelled = problem("finite")
    expert, others = expert[:4], unlabelled + expert[4:9]
    for name, added, told in (("all", expert, True), ("most", expert[1:], False)):
        write_trajectories(others + added + others[:2], tmp_path / f"{name}.parquet")
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            MESSICV(lambdas=(1.0,), cv=2).fit(mdp, expert, tmp_path / f"{name}.parquet")
        said = [str(one.message) for one in heard]
        assert any("all 4 expert trajectories are among the unlabelled ones" in text for text in said) is told


def test_other_ways_with_the_same_counts_are_not_taken_for_the_experts(tmp_path):
    mdp = MDP(np.ones((3, 1, 3)) / 3, np.ones((3, 1)), discount=0.9, horizon=3)
    write_trajectories(Trajectories.from_lists([[0, 1, 2], [0, 2, 1]]), tmp_path / "some.parquet")
    some = StreamedTrajectories(tmp_path / "some.parquet")
    gather_statistics(mdp, some, counted=True)
    assert all_in_files(mdp, Trajectories.from_lists([[0, 2, 1]]), some)
    assert not all_in_files(mdp, Trajectories.from_lists([[0, 2, 2]]), some)


@pytest.mark.parametrize(("named", "said"), [("expert", "expert"), ("test", "test"), ("unlabelled", None)])
def test_messirl_fit_tells_of_experts_and_held_out_ones_in_the_files(folders, run, tmp_path, named, said):
    folder, _ = folders["grid"]
    some = read_problem(folder).select(f"role = {named}")
    write_trajectories(some.trajectories, tmp_path / "some.parquet", labels=Labels.of(some))
    shared = ["--expert", "role = expert", "--test", "role = test", "--no-report", "--no-baselines"]
    run("fit", folder, *shared, "--unlabelled-from", tmp_path / "some.parquet", "--out", tmp_path / "a")
    notes = read_json((tmp_path / "a" / "fit.json").read_text(encoding="utf-8"))["warnings"]
    told = [note for note in notes if "are among those of `unlabelled_from`, state by state" in note]
    assert [note.split()[2] for note in told] == ([] if said is None else [said])


@pytest.mark.parametrize("command", ["select", "diagnose"])
def test_a_selection_from_files_tells_of_experts_in_them(folders, run, tmp_path, command):
    folder, _ = folders["grid"]
    some = read_problem(folder).select("role = expert")
    write_trajectories(some.trajectories, tmp_path / "some.parquet", labels=Labels.of(some))
    shared = ["--expert", "role = expert", "--cv", "2", "--no-report", "--out", tmp_path / "a"]
    run(command, folder, *shared, "--unlabelled-from", tmp_path / "some.parquet")
    name = "select" if command == "select" else "diagnosis"
    notes = read_json((tmp_path / "a" / f"{name}.json").read_text(encoding="utf-8"))["warnings"]
    assert sum("expert trajectories are among the unlabelled ones, state by state" in note for note in notes) == 1


def test_messirl_select_from_files_chooses_as_from_memory(folders, run, tmp_path):
    folder, files = folders["grid"]
    shared = [folder, "--expert", "role = expert", "--lambdas", "0.1,1", "--cv", "2"]
    run("select", *shared, "--unlabelled", "role = unlabelled", "--out", tmp_path / "a")
    run("select", *shared, "--unlabelled-from", files, "--out", tmp_path / "b")
    one, other = (read_json((tmp_path / name / "select.json").read_text(encoding="utf-8")) for name in "ab")
    assert other["chosen"]["candidate"] == one["chosen"]["candidate"]
    assert other["verdict"] == one["verdict"]
    assert list(other["theta"].values()) == pytest.approx(list(one["theta"].values()), rel=1e-6, abs=1e-9)
    assert [f"--unlabelled-from '{files}'" in command for command in other["next"]] == [True, True]


@pytest.mark.usefixtures("few_strengths")
def test_messirl_diagnose_from_files_says_what_it_says_from_memory(folders, run, tmp_path):
    folder, files = folders["grid"]
    shared = [folder, "--expert", "role = expert", "--cv", "2", "--influential", "2"]
    run("diagnose", *shared, "--unlabelled", "role = unlabelled", "--out", tmp_path / "a")
    run("diagnose", *shared, "--unlabelled-from", files, "--out", tmp_path / "b")
    one, other = (read_json((tmp_path / name / "diagnosis.json").read_text(encoding="utf-8")) for name in "ab")
    for name in ("verdict", "trajectories", "alike", "recommended"):
        assert other[name] == one[name]
    for name in ("likeness", "share", "similarity"):
        assert [row[name] for row in other["most_alike"]] == pytest.approx(
            [row[name] for row in one["most_alike"]], 1e-6
        )
    tables = [(tmp_path / name / "diagnosis.csv").read_text(encoding="utf-8").splitlines() for name in "ab"]
    assert len(tables[0]) == len(tables[1]) == 1 + one["trajectories"]["unlabelled"]
    assert (tmp_path / "b" / "report.html").is_file()


def test_messirl_fit_reads_the_labels_of_the_folder_from_files(folders, run, tmp_path):
    folder, files = folders["park"]
    run("fit", folder, "--unlabelled-from", files, "--no-baselines", "--out", tmp_path)
    assert read_json((tmp_path / "fit.json").read_text(encoding="utf-8"))["trajectories"]["unlabelled"] == 2
    assert (tmp_path / "report.html").is_file()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--unlabelled", "role = unlabelled"], "--unlabelled and --unlabelled-from both name"),
        (["--method", "em"], "--method em weights every trajectory anew in each round and cannot read them from files"),
        (["--dynamics", "estimated"], "--unlabelled-from needs --dynamics known"),
        (["--n-unlabelled", "3"], "--n-unlabelled has no effect without --unlabelled"),
    ],
)
def test_messirl_fit_says_what_does_not_go_with_files(folders, capsys, tmp_path, words, said):
    folder, files = folders["grid"]
    given = [folder, "--expert", "role = expert", "--unlabelled-from", files, *words, "--out", tmp_path / "out"]
    assert cli.main(["fit", *map(str, given)]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_messirl_fit_has_nothing_else_for_a_cluster_than_files(folders, capsys, tmp_path):
    words = ["fit", str(folders["grid"][0]), "--cluster", "tcp://127.0.0.1:1", "--out", str(tmp_path / "out")]
    assert cli.main(words) == 2
    assert "--cluster has no effect without --unlabelled-from" in capsys.readouterr().err


# ------------------------------------------------------------ memory


def test_too_little_room_is_foreseen_and_the_error_says_what_would_fit(tmp_path, monkeypatch):
    mdp, expert, walks = problem("finite")
    monkeypatch.setattr(spill, "IN_MEMORY", 24)  # one row of three numbers
    monkeypatch.setattr(spill, "SPARE", 2**62)
    read = []
    monkeypatch.setattr(StreamedTrajectories, "rows", lambda *given: read.append(1))
    with pytest.raises(MemoryError, match=r"take .* GB, but at most .*: use at most 1 trajectories .*TMPDIR"):
        MESSI(lambda0=1.0).fit(mdp, expert, spread(table_of(walks), tmp_path / "w"))
    assert not read, "before anything else was read"


def test_a_table_in_a_file_is_read_and_written_like_an_array():
    rows = generator(1).normal(size=(50, 3))
    table = spill.FileTable(50, 3)
    for lo in range(0, 50, 9):
        table[lo : lo + 9] = rows[lo : lo + 9]
    assert table.shape == (50, 3)
    assert len(table) == 50
    for some in (slice(None), slice(7, 12), slice(40, 99), slice(5, 5), slice(1, 20, 3), [4, 2, 4, -1]):
        np.testing.assert_array_equal(table[some], rows[some])


def test_a_table_above_another_is_used_like_an_array(monkeypatch):
    monkeypatch.setattr(spill, "PART", 80)
    monkeypatch.setattr(spill, "COPIED", 0)
    rows = generator(1).normal(size=(50, 3))
    table = spill.stack_tables(rows[:4], rows[4:])
    assert isinstance(table, spill.StackedTable)
    assert table.shape == (50, 3)
    mask = rows[:, 0] > 0
    for some in (slice(None), slice(0, 2), slice(2, 9), slice(7, 50), slice(1, 20, 3), [4, 2, 3, -1], mask):
        np.testing.assert_allclose(table[some], rows[some], rtol=1e-12)
    np.testing.assert_allclose(np.asarray(table), rows, rtol=1e-12)
    for name in ("sum", "mean", "max", "min"):
        np.testing.assert_allclose(getattr(table, name)(axis=0), getattr(rows, name)(axis=0), rtol=1e-12)


def test_files_that_grow_or_shrink_while_they_are_read_are_noticed():
    for n, match in ((3, "more trajectories than"), (9, "fewer trajectories than")):
        with pytest.raises(ValueError, match=match):
            filled(spill.TableBuilder(n, 2), 5)


def filled(place, rows):
    place.add(np.zeros((rows, 2)), rows)
    return place.table()


def test_chunks_of_a_random_world_are_checked_like_the_whole(tmp_path):
    mdp = random_mdp(4, discount=0.9)
    states = generator(8).integers(mdp.n_states, size=(40, 6))
    walks = Trajectories.from_lists(states.tolist())
    found = StreamedTrajectories(spread(table_of(walks), tmp_path / "w", 4), chunk_rows=25)
    assert together(found.chunks(mdp)) == walks
