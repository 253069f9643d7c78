"""Recordings: Minari's data sets by its API and by h5py alone, arrays, tables, and back."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from seeds import generator

from messirl import Trajectories
from messirl.data.errors import InputError
from messirl.io.interop.hdf5 import episodes_from_hdf5
from messirl.io.interop.minari import episodes_from_minari, from_minari, to_minari
from messirl.io.recordings.files import recordings_from_numpy, recordings_from_table
from messirl.io.recordings.recording import Recording, recordings_from_trajectories, trajectories_from_recordings

WALK = Trajectories.from_lists([[0, 1, 2, 2], [3, 2], [1, 1, 0]], [[0, 1, 1], [2], [0, 0]])


@pytest.fixture
def store(tmp_path, monkeypatch):
    """An empty place for data sets."""
    pytest.importorskip("minari")
    pytest.importorskip("h5py")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


def drawn(dtype=np.float32):
    """Three recordings of points and of continuous actions; ended, cut short, and neither."""
    rng = generator(0)
    return [
        Recording(
            rng.normal(size=(T + 1, 3)).astype(dtype),
            rng.normal(size=(T, 2)).astype(dtype),
            terminated,
            truncated,
            rng.normal(size=T),
            i,
        )
        for i, (T, terminated, truncated) in enumerate([(4, True, False), (2, False, True), (7, False, False)])
    ]


def assert_same(ours, theirs):
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert (one.terminated, one.truncated, one.id) == (other.terminated, other.truncated, other.id)
        for name in ("observations", "actions", "rewards"):
            a, b = getattr(one, name), getattr(other, name)
            assert (a is None) == (b is None)
            if a is not None:
                assert a.dtype == b.dtype
                np.testing.assert_array_equal(a, b)


# ------------------------------------------------------------ Minari


def test_a_data_set_written_anew_is_the_data_set_that_was_read(store):
    minari = pytest.importorskip("minari")
    from gymnasium import spaces
    from minari.data_collector import EpisodeBuffer

    rng = generator(1)
    box = spaces.Box(-5, 5, (2,), np.float32)
    buffers = [
        EpisodeBuffer(
            observations=rng.uniform(-5, 5, (T + 1, 2)).astype(np.float32),
            actions=rng.integers(0, 3, T),
            rewards=rng.normal(size=T),
            terminations=np.arange(T) == (T - 1 if i % 2 else -1),
            truncations=np.arange(T) == (-1 if i % 2 else T - 1),
        )
        for i, T in enumerate([3, 1, 6])
    ]
    with pytest.warns(UserWarning, match="is set to None|env_spec is None"):
        first = minari.create_dataset_from_buffers(
            "first-v0", buffers, observation_space=box, action_space=spaces.Discrete(3)
        )
    second = to_minari(
        episodes_from_minari(first),
        "second-v0",
        observation_space=first.observation_space,
        action_space=first.action_space,
    )
    assert second.observation_space == first.observation_space
    assert second.action_space == first.action_space
    assert len(second) == 3
    for one, other in zip(first, second, strict=True):
        assert one.id == other.id
        for name in ("observations", "actions", "rewards", "terminations", "truncations"):
            a, b = getattr(one, name), getattr(other, name)
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("data_format", ["hdf5", "arrow"])
def test_recordings_come_back_from_minari_as_they_went(store, data_format):
    assert_same(drawn(), episodes_from_minari(to_minari(drawn(), "points-v0", data_format=data_format)))


def test_h5py_alone_reads_what_minari_reads(store):
    data = to_minari(drawn(), "points-v0")
    by_file = episodes_from_hdf5(store / "points-v0" / "data" / "main_data.hdf5")
    assert_same(episodes_from_minari(data), by_file)
    assert_same(by_file, episodes_from_hdf5(store / "points-v0"))


def test_episodes_of_a_file_are_read_in_the_order_of_their_numbers(store):
    to_minari(Trajectories.from_lists([[i, i] for i in range(12)], [[0]] * 12), "many-v0")
    assert [one.observations[0] for one in episodes_from_hdf5(store / "many-v0")] == list(range(12))


def test_trajectories_come_back_from_minari_by_object_and_by_id(store):
    data = to_minari(WALK, "space/walk-v1", terminated=[True, False, True], description="three walks")
    assert from_minari(data) == WALK
    assert from_minari("space/walk-v1") == WALK
    assert (data.observation_space.n, data.action_space.n) == (4, 3)
    assert [bool(one.terminations[-1]) for one in data] == [True, False, True]
    assert [bool(one.truncations[-1]) for one in data] == [False, True, False]
    assert all(np.isnan(one.rewards).all() for one in data)


def test_an_end_state_takes_the_place_of_the_last_state_of_terminated_episodes_only(store):
    data = to_minari(WALK, "walk-v0", terminated=[True, False, True])
    assert [t.states.tolist() for t in from_minari(data, end_state=4)] == [[0, 1, 2, 4], [3, 2], [1, 1, 4]]


def test_a_discrete_space_that_starts_elsewhere_is_numbered_from_zero(store):
    spaces = pytest.importorskip("gymnasium").spaces
    moved = [Recording(t.states + 10, t.actions - 1, id=i) for i, t in enumerate(WALK)]
    data = to_minari(
        moved, "moved-v0", observation_space=spaces.Discrete(4, start=10), action_space=spaces.Discrete(3, start=-1)
    )
    assert from_minari(data) == WALK


def test_a_number_is_a_discrete_space(store):
    data = to_minari(WALK, "walk-v0", observation_space=9, action_space=5)
    assert (data.observation_space.n, data.action_space.n) == (9, 5)


def test_one_entry_of_a_dict_of_observations_can_be_read(store):
    minari = pytest.importorskip("minari")
    from gymnasium import spaces
    from minari.data_collector import EpisodeBuffer

    place = np.arange(6.0).reshape(3, 2)
    buffer = EpisodeBuffer(
        observations={"place": place, "goal": place * 0},
        actions=np.array([0, 1]),
        rewards=[0.0, 1.0],
        terminations=[False, True],
        truncations=[False, False],
    )
    box = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    with pytest.warns(UserWarning, match="is set to None|env_spec is None"):
        data = minari.create_dataset_from_buffers(
            "maze-v0",
            [buffer],
            observation_space=spaces.Dict({"place": box, "goal": box}),
            action_space=spaces.Discrete(2),
        )
    for found in (episodes_from_minari(data, key="place"), episodes_from_hdf5(store / "maze-v0", key="place")):
        np.testing.assert_array_equal(found[0].observations, place)
        assert found[0].terminated
    with pytest.raises(InputError, match=r"maze-v0: its observations are a Dict of .*: choose one of them with key="):
        episodes_from_minari(data)
    with pytest.raises(InputError, match=r"its observations are a group of .*: choose one with key="):
        episodes_from_hdf5(store / "maze-v0")
    with pytest.raises(InputError, match=r"maze-v0: its observations are Dict\(.*\), not Discrete: use episodes_from"):
        from_minari(data)


def test_episodes_taken_from_a_larger_set_keep_their_ids_and_are_renumbered_only_on_request(store):
    some = to_minari(drawn(), "points-v0").filter_episodes(lambda one: one.id > 0)
    taken = episodes_from_minari(some)
    assert [one.id for one in taken] == [1, 2]
    with pytest.raises(
        InputError, match=r"some-v0: the ids of the episodes are not 0, 1, ….*: Minari supports no other ids"
    ):
        to_minari(taken, "some-v0")
    assert [one.id for one in to_minari(taken, "some-v0", renumber=True)] == [0, 1]


@pytest.mark.parametrize(
    ("episodes", "arguments", "message"),
    [
        ([], {}, "x-v0: there are no episodes: give at least one"),
        (WALK, {"dataset_id": "x"}, r"x: it is not the id of a data set: give \(namespace/\)name-v0"),
        (
            WALK,
            {"observation_space": 3},
            r"observations 0 … 3 lie outside Discrete\(3\): give another observation_space",
        ),
        (WALK, {"action_space": 2}, r"actions 0 … 2 lie outside Discrete\(2\): give another action_space"),
        (WALK, {"terminated": [True]}, r"terminated: has dtype bool and shape \(1,\): give one bool, or 3 of them"),
        (WALK, {"terminated": [1, 0, 1]}, "terminated: has dtype int64 and shape"),
        (Trajectories.from_lists([[0, 1]]), {}, "trajectories: they have no actions: give one action per step"),
        (drawn(), {"terminated": True}, "terminated: given together with recordings: omit it"),
        (drawn(), {"observation_space": 3}, r"the observations do not have the shape of Discrete\(3\)"),
        ([Recording([[0, 1], [1, 0]], [0])], {}, "observations that are int64 fit several spaces"),
        ([Recording([-1, 0], [0])], {}, r"observations -1 … 0 lie outside Discrete\(1\)"),
    ],
)
def test_writing_refuses_what_minari_cannot_keep(store, episodes, arguments, message):
    with pytest.raises(InputError, match=message):
        to_minari(episodes, **{"dataset_id": "x-v0", **arguments})
    assert not list(store.iterdir())


def test_only_data_sets_are_read(store):
    with pytest.raises(TypeError, match="dataset must be a MinariDataset or its id, not int"):
        from_minari(3)
    with pytest.raises(InputError, match="nowhere-v0: there is no such local data set"):
        from_minari("nowhere-v0")
    data = to_minari(drawn(), "points-v0")
    with pytest.raises(InputError, match=r"points-v0: its observations are Box\(.*\), not Discrete"):
        from_minari(data)
    with pytest.raises(InputError, match="points-v0: its observations have no entry 'x': omit key="):
        episodes_from_minari(data, key="x")
    with pytest.raises(TypeError, match="recordings must be a list of Recording, not of int"):
        to_minari([1], "y-v0")


# ------------------------------------------------------------ the HDF5 file


def test_files_that_are_no_data_sets_are_refused(tmp_path):
    h5py = pytest.importorskip("h5py")
    with pytest.raises(InputError, match=r"nothing: there is no such file, nor main_data\.hdf5 in it"):
        episodes_from_hdf5(tmp_path / "nothing")
    (tmp_path / "text.hdf5").write_text("text")
    with pytest.raises(InputError, match=r"text\.hdf5: it is not an HDF5 file"):
        episodes_from_hdf5(tmp_path / "text.hdf5")
    with h5py.File(tmp_path / "other.hdf5", "w") as file:
        file["x"] = np.zeros(3)
    with pytest.raises(InputError, match=r"other\.hdf5: it has no groups episode_0"):
        episodes_from_hdf5(tmp_path / "other.hdf5")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rewards": None}, r"episode 0: it has no rewards: an episode needs observations, actions"),
        ({"terminations": [True, False]}, r"episode 0: it is terminated at step 0 of 2: split the episode there"),
        ({"truncations": [True, True]}, r"episode 0: it is truncated at step 0 of 2: split the episode there"),
        ({"actions": [0, 1, 0]}, r"recording 0: it has 3 observations and 3 actions: give one per step"),
        ({"observations": np.full((3, 9), [255, 216, 255] * 3, np.uint8)}, "episode 0: its observations are images"),
        ({"observations": np.zeros((3, 2, 2))}, r"recording 0: its observations have shape \(3, 2, 2\)"),
    ],
)
def test_an_episode_that_contradicts_itself_is_refused(tmp_path, changes, message):
    h5py = pytest.importorskip("h5py")
    arrays = {
        "observations": [0, 1, 2],
        "actions": [0, 1],
        "rewards": [0.0, 0.0],
        "terminations": [False, False],
        "truncations": [False, True],
        **changes,
    }
    with h5py.File(tmp_path / "main_data.hdf5", "w") as file:
        for name, values in arrays.items():
            if values is not None:
                file[f"episode_0/{name}"] = values
    with pytest.raises(InputError, match=message):
        episodes_from_hdf5(tmp_path)


# ------------------------------------------------------------ recordings


def test_trajectories_come_back_from_recordings():
    recordings = recordings_from_trajectories(WALK, terminated=[True, False, False], ids=["a", "b", "c"])
    assert [one.id for one in recordings] == ["a", "b", "c"]
    assert [one.terminated for one in recordings] == [True, False, False]
    assert [one.truncated for one in recordings] == [False, True, True]
    assert [len(one) for one in recordings] == [3, 1, 2]
    assert trajectories_from_recordings(recordings) == WALK


def test_columns_of_one_whole_number_are_states():
    assert trajectories_from_recordings([Recording([[4], [5]], [[1]])]) == Trajectories.from_lists([[4, 5]], [[1]])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([[1, 2], [3]], [0]), InputError, "a recording: its observations have rows of different lengths"),
        ((["x", "y"], [0]), InputError, "a recording: its observations are <U1, not numbers"),
        (([0, 1], [0], False, False, [[1.0]]), InputError, r"its rewards have shape \(1, 1\)"),
        (([0, 1], [0], False, False, [1.0, 2.0], "k"), InputError, "recording k: it has 2 observations and 2 rewards"),
        (([], []), InputError, "a recording: it has 0 observations and 0 actions"),
        (([0, 1], [0], 1), TypeError, "a recording: terminated must be True or False, not 1"),
    ],
)
def test_a_recording_that_contradicts_itself_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Recording(*arguments)


def test_points_are_no_states():
    with pytest.raises(InputError, match=r"recording 0: its observations are float32 of shape \(5, 3\), not state or"):
        trajectories_from_recordings(drawn())
    with pytest.raises(InputError, match="ids: there are 1 for 3 trajectories: give one per trajectory"):
        recordings_from_trajectories(WALK, ids=["a"])


# ------------------------------------------------------------ arrays and tables

FLAT = {
    "observations": np.arange(10.0).reshape(5, 2) + 0.25,
    "actions": np.array([7, 8, 9]),
    "rewards": np.array([0.5, 1.5, 2.5]),
    "lengths": np.array([2, 3]),
    "terminated": np.array([True, False]),
    "truncated": np.array([False, True]),
    "ids": np.array(["a", "b"]),
}
CUT = [
    Recording(np.array([[0.25, 1.25], [2.25, 3.25]]), np.array([7]), True, False, np.array([0.5]), "a"),
    Recording(FLAT["observations"][2:], np.array([8, 9]), False, True, np.array([1.5, 2.5]), "b"),
]


def test_arrays_are_cut_into_recordings(tmp_path):
    np.savez(tmp_path / "flat.npz", **FLAT)
    assert_same(recordings_from_numpy(FLAT), CUT)
    assert_same(recordings_from_numpy(tmp_path / "flat.npz"), CUT)


def test_arrays_without_lengths_are_one_recording():
    found = recordings_from_numpy({"observations": np.zeros((4, 2)), "actions": np.zeros((3, 1))})
    assert_same(found, [Recording(np.zeros((4, 2)), np.zeros((3, 1)), id=0)])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"actions": None}, "arrays: there is no array 'actions': the arrays are ids, lengths"),
        ({"obs": np.zeros(3)}, "arrays: unknown array 'obs': allowed are actions"),
        ({"lengths": np.array([2, 2])}, r"arrays: lengths are \[2 2\]: give whole numbers >= 1 that sum to 5"),
        ({"lengths": None}, "arrays: 3 actions in 1 recording: give one per step, 4 in all"),
        ({"rewards": np.zeros(5)}, "arrays: 5 rewards in 2 recordings"),
        ({"terminated": np.array([1, 0])}, r"arrays: terminated is int64 of shape \(2,\): give 2 bools"),
        ({"ids": np.array(["a"])}, "arrays: 1 id for 2 recordings: give one each"),
        ({"ids": np.array([["a", "b"]])}, r"arrays: ids have shape \(1, 2\): give one per recording, of shape \(2,\)"),
        ({"ids": np.array(["a", "a"])}, r"arrays: ids\[0\] and ids\[1\] are both 'a': give every recording an id of"),
        ({"ids": np.array([1.0, np.nan])}, r"arrays: ids\[1\] is NaN: give every recording an id, or leave out ids"),
    ],
)
def test_arrays_that_do_not_fit_each_other_are_refused(changes, message):
    arrays = {name: value for name, value in {**FLAT, **changes}.items() if value is not None}
    with pytest.raises(InputError, match=message):
        recordings_from_numpy(arrays)


def test_files_that_hold_no_named_arrays_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"none\.npz: does not exist"):
        recordings_from_numpy(tmp_path / "none.npz")
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(InputError, match=r"one\.npy: it contains a single array: save several named arrays"):
        recordings_from_numpy(tmp_path / "one.npy")
    (tmp_path / "text.npz").write_text("text")
    with pytest.raises(InputError, match=r"text\.npz: it is not an \.npz file of numbers"):
        recordings_from_numpy(tmp_path / "text.npz")


TABLE = {
    "trajectory_id": ["a", "a", "b", "b", "b"],
    "step": [0, 1, 0, 1, 2],
    "o_x": [0.25, 2.25, 4.25, 6.25, 8.25],
    "o_y": [1.25, 3.25, 5.25, 7.25, 9.25],
    "action": [7, None, 8, 9, None],
    "reward": [0.5, None, 1.5, 2.5, None],
    "terminated": [False, True, False, False, False],
}


def written(tmp_path, ending, **changes):
    columns = {name: column for name, column in {**TABLE, **changes}.items() if column is not None}
    path = tmp_path / f"table{ending}"
    (pq.write_table if ending == ".parquet" else csv.write_csv)(pa.table(columns), path)
    return path


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_tables_are_cut_into_recordings(tmp_path, ending):
    expected = [
        CUT[0],
        Recording(CUT[1].observations, CUT[1].actions, False, False, CUT[1].rewards, "b"),
    ]
    assert_same(recordings_from_table(written(tmp_path, ending)), expected)


def test_a_table_of_recordings_is_read_as_people_write_it(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(
        "trajectory_id;step;o_x;o_y;action;reward;terminated\n"
        "b;3;8,25;9,25;;;no\nb;2;6,25;7,25;9.0;2,5;no\na;1;0,25;1,25;7.0;0,5;no\n"
        "a;2;2,25;3,25;;;yes\nb;1;4,25;5,25;8.0;1,5;no\n"
    )
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        found = recordings_from_table(path)
    assert [one.id for one in found] == ["b", "a"]
    expected = recordings_from_table(written(tmp_path, ".parquet"))
    assert_same(found[::-1], expected)
    said = " ".join(str(warning.message) for warning in heard)
    for part in ("separated by semicolons", "decimal commas", "not sorted", "steps count from 1"):
        assert part in said


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_terminated_may_be_in_the_row_of_the_action_that_ended_it(tmp_path, ending):
    path = written(tmp_path, ending, terminated=[False, False, False, True, False])
    with pytest.warns(UserWarning, match="terminated is True at the action that ended a trajectory, and counts for"):
        found = recordings_from_table(path)
    assert [one.terminated for one in found] == [False, True]


def test_terminated_may_be_in_every_row(tmp_path):
    path = written(tmp_path, ".parquet", terminated=[True, True, False, False, False])
    assert [one.terminated for one in recordings_from_table(path)] == [True, False]


def test_a_table_may_hold_continuous_actions_and_no_rewards(tmp_path):
    moves = {"a_x": [0.1, None, 0.2, 0.3, None], "a_y": [1.0, None, 2.0, 3.0, None]}
    path = written(tmp_path, ".parquet", action=None, reward=None, terminated=None, **moves)
    found = recordings_from_table(path)
    np.testing.assert_array_equal(found[1].actions, [[0.2, 2.0], [0.3, 3.0]])
    assert found[1].rewards is None
    assert not found[0].terminated


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"step": None}, "there is no column step: the columns are trajectory_id, o_x"),
        ({"action": None}, "there is no column action"),
        ({"o_x": None, "o_y": None}, r"there is no column o_\*"),
        ({"step": [0, 1, 0, 1, 3]}, "row 6: step 3 of trajectory 'b' follows step 1: number steps 0, 1, 2, …"),
        (
            {"trajectory_id": ["a", "a", "b", "b", "a"], "step": [0, 1, 0, 1, 0], "action": [7, None, 8, None, None]},
            "row 6: trajectory 'a' has step 0 twice: keep one row per step",
        ),
        ({"action": [7, None, None, 9, None]}, "row 4: action is empty: fill it in"),
        ({"action": [7, 7, 8, 9, None]}, "row 3: action is given where its trajectory ends: leave it empty there"),
        ({"o_y": [1.0, None, 5.0, 7.0, 9.0]}, "row 3: o_y is empty: fill it in"),
        (
            {"terminated": [False, True, True, False, False]},
            "row 4: terminated is True, but the trajectory goes on: mark",
        ),
        ({"terminated": [0, 2, 0, 0, 0]}, "row 3: terminated holds 2, not a boolean: write true or false"),
        ({name: column[:0] for name, column in TABLE.items()}, "it has no rows: give at least one observation"),
    ],
)
def test_tables_that_contradict_themselves_are_refused(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        recordings_from_table(written(tmp_path, ".parquet", **changes))


def test_files_that_are_no_tables_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"x\.txt: its name ends in '\.txt': give a \.parquet or \.csv file"):
        recordings_from_table(tmp_path / "x.txt")
    with pytest.raises(InputError, match=r"x\.csv: does not exist"):
        recordings_from_table(tmp_path / "x.csv")
    (tmp_path / "x.parquet").write_text("text")
    with pytest.raises(InputError, match=r"x\.parquet: is not a readable Parquet file"):
        recordings_from_table(tmp_path / "x.parquet")
