"""Models on disk: what is saved comes back, what is damaged or foreign is refused, nothing in it is executed."""

from __future__ import annotations

import io
import json
import os
import pickle
import stat
import tempfile
import zipfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from problems import KINDS, problem
from sklearn.base import clone
from worlds import ROUNDING

import messirl
from messirl import MESSI, EMMaxEnt, MaxEntIRL
from messirl.estimators import persistence
from messirl.similarity import RBF, CompleteGraph, Exponential, NearestNeighbours, Precomputed

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
every = pytest.mark.parametrize("kind", KINDS)
MODELS = [
    MaxEntIRL(ridge=0.1, theta_max=None),
    MESSI(RBF(sigma=2.0, standardise=True), lambda0=3.0),
    EMMaxEnt(steps_per_round=3, max_iter=7, step_size=0.01),
]
models = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def own_similarity(trajectories, counts):
    return np.ones((len(counts), len(counts)))


def there_and_back(model, path):
    model.save(path)
    return messirl.load(path)


def fitted_parts(model):
    return {name for name in vars(model) if name.endswith("_")}


def assert_same_model(a, b):
    assert type(a) is type(b)
    assert fitted_parts(a) == fitted_parts(b)
    for name in fitted_parts(a) - {"mdp_", "policy_"}:
        x, y = getattr(a, name), getattr(b, name)
        assert type(x) is type(y), name
        if isinstance(x, np.ndarray):
            assert_array_equal(x, y, err_msg=name)
        else:
            assert x == y, name


def assert_same_mdp(a, b):
    assert repr(a) == repr(b)
    assert a.discount == b.discount
    assert_array_equal(a.transitions.toarray(), b.transitions.toarray())
    assert sp.issparse(a.features) is sp.issparse(b.features)
    dense = [m.features.toarray() if sp.issparse(m.features) else m.features for m in (a, b)]
    assert_array_equal(*dense)
    for name in ("start", "terminal", "allowed"):
        assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    for name in ("state_names", "action_names", "feature_names"):
        assert getattr(a, name) == getattr(b, name)


# ------------------------------------------------------------ there and back


@every
@models
def test_a_model_comes_back_as_it_was(model, kind, tmp_path):
    mdp, expert, unlabelled = problem(kind)
    model = clone(model).fit(mdp, expert, unlabelled)
    again = there_and_back(model, tmp_path / "model.npz")
    assert_same_model(model, again)
    assert_same_mdp(model.mdp_, again.mdp_)
    assert repr(again) == repr(model)
    assert_allclose(again.score(unlabelled), model.score(unlabelled), rtol=ROUNDING)
    arguments = {"goals": {"goal": 8}, "endless": {"length": 5}}.get(kind, {})
    assert again.sample(5, random_state=0, **arguments) == model.sample(5, random_state=0, **arguments)
    if kind == "goals":
        assert list(again.policy_) == list(model.policy_)
        assert_array_equal(again.policy_[5], model.policy_[5])
    else:
        assert_array_equal(again.policy_, model.policy_)


@every
@models
def test_a_model_that_was_loaded_fits_again(model, kind, tmp_path):
    model = clone(model).fit(*problem(kind))
    again = there_and_back(model, tmp_path / "model.npz")
    assert_array_equal(again.fit(*problem(kind)).theta_, model.theta_)
    warm = messirl.load(tmp_path / "model.npz").set_params(warm_start=True).fit(*problem(kind))
    assert_array_equal(warm.theta_init_, model.theta_)


@every
def test_saving_what_was_loaded_changes_nothing(kind, tmp_path):
    once = there_and_back(MaxEntIRL(ridge=0.1).fit(*problem(kind)[:2]), tmp_path / "a")
    assert_same_model(once, there_and_back(once, tmp_path / "b"))


def test_names_start_and_noncausal_entropy_come_back(tmp_path):
    mdp, expert, _ = problem("finite")
    named = mdp.replace(
        state_names=["Zürich", "Køge", "東京", "e", "s p"], action_names=list("xyz"), feature_names=["α", "β", "γ"]
    )
    model = MaxEntIRL(ridge=0.1, entropy="noncausal").fit(named, expert)
    again = there_and_back(model, tmp_path / "model.npz")
    assert_same_mdp(again.mdp_, named)
    assert again.entropy == "noncausal"
    assert_array_equal(again.policy_, model.policy_)


def test_a_problem_without_start_and_with_taken_away_actions_comes_back(tmp_path):
    mdp, expert, _ = problem("episodic")
    again = there_and_back(MaxEntIRL().fit(mdp, expert), tmp_path / "model.npz")
    assert again.mdp_.start is None
    assert_array_equal(again.mdp_.allowed, mdp.allowed)


@pytest.mark.parametrize(
    "similarity",
    [
        None,
        RBF(0.5),
        RBF("median"),
        RBF(np.float64(2.0)),
        Exponential(3.0),
        Exponential(2, standardise=True),
        CompleteGraph(),
        NearestNeighbours(3),
        RBF(2.0, tol=0.01),
    ],
    ids=repr,
)
def test_similarities_come_back(similarity, tmp_path):
    model = MESSI(similarity, max_iter=2).fit(*problem("finite"))
    again = there_and_back(model, tmp_path / "model.npz")
    assert again.similarity == similarity
    assert_array_equal(again.fit(*problem("finite")).theta_, model.theta_)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_precomputed_similarity_comes_back(form, tmp_path):
    n = 38
    matrix = np.exp(-np.abs(np.subtract.outer(np.arange(n), np.arange(n))))
    model = MESSI(Precomputed(form(matrix)), lambda0=20.0).fit(*problem("finite"))
    again = there_and_back(model, tmp_path / "model.npz")
    assert isinstance(again.similarity, Precomputed)
    assert_allclose(again.fit(*problem("finite")).theta_, model.theta_, rtol=1e-9)


def test_a_similarity_of_ones_own_is_missed_only_where_it_is_needed(tmp_path):
    model = MESSI(own_similarity, lambda0=2.0).fit(*problem("finite"))
    again = there_and_back(model, tmp_path / "model.npz")
    expert = problem("finite").expert
    assert_allclose(again.score(expert), model.score(expert), rtol=ROUNDING)
    with pytest.raises(
        ValueError, match=r"own_similarity was not saved with the model: set_params\(similarity=\.\.\.\)"
    ):
        again.fit(*problem("finite"))
    assert_array_equal(again.set_params(similarity=own_similarity).fit(*problem("finite")).theta_, model.theta_)


def test_a_callback_is_left_out(tmp_path):
    model = MaxEntIRL(callback=lambda state: None).fit(*problem("finite")[:2])
    assert there_and_back(model, tmp_path / "model.npz").callback is None


def test_arrays_and_seeds_among_the_parameters_come_back(tmp_path):
    model = MaxEntIRL(theta_init=[0.5, 0.0, -0.5], random_state=7, max_iter=3).fit(*problem("finite")[:2])
    again = there_and_back(model, tmp_path / "model.npz")
    assert_array_equal(again.theta_init, [0.5, 0.0, -0.5])
    assert again.sample(3) == model.sample(3)


# ------------------------------------------------------------ the file


@cache
def stored() -> bytes:
    """A saved model of MESSI, as bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        MESSI(RBF(2.0), max_iter=3).fit(*problem("finite")).save(path)
        return path.read_bytes()


FACTS = {"discount": 0.9, "horizon": 6, "state_names": None, "action_names": None, "feature_names": None}
FITTED = {"objective_": -1.0, "n_iter_": 3, "converged_": True, "termination_": "", "gradient_norm_": 0.0}


def parts_of(content: bytes):
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def described(parts):
    return json.loads(parts["description"].tobytes())


def with_description(parts, description):
    return {**parts, "description": np.frombuffer(json.dumps(description).encode(), dtype=np.uint8)}


def written(path, parts):
    np.savez(path, **parts)
    return path


def test_the_name_given_is_the_name_of_the_file(tmp_path):
    MaxEntIRL(ridge=0.1).fit(*problem("finite")[:2]).save(tmp_path / "model")
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


def test_saving_replaces_and_leaves_nothing_else_behind(tmp_path):
    path = tmp_path / "model.npz"
    path.write_text("something else")
    model = MaxEntIRL(ridge=0.1).fit(*problem("finite")[:2])
    model.save(str(path))
    assert_array_equal(messirl.load(str(path)).theta_, model.theta_)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.npz"]


def test_a_save_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    model = MaxEntIRL(ridge=0.1).fit(*problem("finite")[:2])
    model.save(path)
    before = path.read_bytes()

    def fail(*arguments, **named):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="disk full"):
        model.save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.npz"]


@pytest.mark.skipif(os.name != "posix", reason="permissions as in POSIX")
def test_a_saved_model_may_be_read_by_whoever_may_read_a_new_file(tmp_path):
    (tmp_path / "new").write_text("")
    MaxEntIRL(ridge=0.1).fit(*problem("finite")[:2]).save(tmp_path / "model.npz")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("new", "model.npz")]
    assert modes[0] == modes[1]


def test_a_file_holds_plain_arrays_and_json_that_says_its_version():
    parts = parts_of(stored())
    assert all(array.dtype.kind != "O" for array in parts.values())
    assert described(parts)["format"] == "messirl-model"
    assert described(parts)["version"] == 1
    assert described(parts)["estimator"] == "MESSI"


def test_a_file_of_an_earlier_version_is_read(tmp_path):
    """It names a similarity by the parameter it is, and has its matrix under another name."""
    parts = parts_of(stored())
    old = described(parts)
    old["parameters"]["similarity"] = {"similarity": "RBF", "arguments": {"sigma": 2.0, "standardise": False}}
    assert messirl.load(written(tmp_path / "old.npz", with_description(parts, old))).similarity == RBF(2.0)
    old["parameters"]["similarity"] = {"precomputed": "parameter_similarity"}
    parts["parameter_similarity"] = np.eye(3)
    given = messirl.load(written(tmp_path / "old.npz", with_description(parts, old))).similarity
    assert isinstance(given, Precomputed)
    assert_array_equal(given.matrix, np.eye(3))


# ------------------------------------------------------------ damaged and foreign files


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.npz"):
        messirl.load(tmp_path / "nowhere.npz")


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"not a model\n" * 100, b"PK", b"PK\x03\x04" + bytes(100), bytes(1000), b"\x93NUMPY"],
    ids=repr,
)
def test_what_is_no_archive_is_refused(content, tmp_path):
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.npz is not a messirl model, or is damaged"):
        messirl.load(path)


def test_an_array_of_numpy_is_refused(tmp_path):
    np.save(tmp_path / "array.npy", np.eye(3))
    with pytest.raises(ValueError, match=r"array\.npy is not a messirl model"):
        messirl.load(tmp_path / "array.npy")


def test_an_archive_of_something_else_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is not a messirl model"):
        messirl.load(written(tmp_path / "foreign.npz", {"weights": np.eye(3)}))
    for description in ([], 3, "model", {}, {"format": "other"}, {"format": "other", "version": 1}, None):
        with pytest.raises(ValueError, match="is not a messirl model"):
            messirl.load(written(tmp_path / "foreign.npz", with_description({}, description)))
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("description.npy", "not an array")
    with pytest.raises(ValueError, match="is not a messirl model"):
        messirl.load(tmp_path / "other.zip")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises((ValueError, IsADirectoryError, PermissionError), match=tmp_path.name):
        messirl.load(tmp_path)


def test_every_truncated_file_is_refused(tmp_path):
    content, path = stored(), tmp_path / "model.npz"
    cuts = np.unique(np.concatenate([np.arange(40), np.linspace(40, len(content) - 1, 150).astype(int)]))
    for cut in cuts:
        path.write_bytes(content[:cut])
        with pytest.raises(ValueError, match=r"model\.npz is .*damaged"):
            messirl.load(path)


@pytest.mark.slow
def test_a_flipped_byte_is_refused_or_does_not_matter(tmp_path):
    content, path = stored(), tmp_path / "model.npz"
    rng = np.random.default_rng(0)
    places = np.concatenate([rng.choice(len(content), 400, replace=False), np.arange(len(content) - 40, len(content))])
    refused = 0
    for at in places:
        damaged = bytearray(content)
        damaged[at] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        with suppress(ValueError):
            model = messirl.load(path)
            for name in ("theta_", "feature_counts_", "visitation_", "start_", "penalty_matrix_"):  # dates and the like
                assert_array_equal(getattr(model, name), parts_of(content)[name])
            continue
        refused += 1
    assert refused > 200


def test_every_missing_part_is_refused(tmp_path):
    parts = parts_of(stored())
    for name in set(parts) - {"penalty_matrix_", "quadratic_", "mdp_start"}:  # a model may do without these
        with pytest.raises(ValueError, match="model"):
            messirl.load(written(tmp_path / "part.npz", {k: v for k, v in parts.items() if k != name}))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("theta_", lambda old: np.zeros(7)),
        ("theta_", lambda old: np.full(3, np.nan)),
        ("start_", lambda old: np.zeros(2)),
        ("visitation_", lambda old: np.zeros(2)),
        ("feature_counts_", lambda old: np.zeros(9)),
        ("history_", lambda old: np.zeros(3)),
        ("penalty_matrix_", lambda old: np.zeros((2, 2))),
        ("quadratic_", lambda old: np.zeros((2, 2))),
        ("mdp_features", lambda old: np.full((5, 3), np.nan)),
        ("mdp_terminal", lambda old: np.zeros(3, dtype=bool)),
        ("mdp_transitions_data", lambda old: 2 * old),
        ("mdp_transitions_indices", lambda old: old + 9),
        ("mdp_transitions_indptr", lambda old: old[::-1].copy()),
        ("mdp_transitions_shape", lambda old: np.array([3, 5])),
        ("mdp_transitions_shape", lambda old: np.array([2**40, 2**40])),
        ("mdp_transitions_indptr", lambda old: np.where(np.arange(old.size) % 2, 10**9, 0)),
        ("mdp_transitions_indptr", lambda old: np.r_[old[:-1], 0]),
        ("mdp_transitions_indptr", lambda old: -old),
        ("mdp_transitions_indptr", lambda old: old.astype(float)),
        ("mdp_transitions_indices", lambda old: -1 - old),
        ("mdp_transitions_data", lambda old: old.astype(complex)),
        ("theta_", lambda old: old.astype(complex)),
        ("theta_", lambda old: old.astype("M8[s]")),
        ("theta_", lambda old: np.zeros(3, dtype="U3")),
        ("start_", lambda old: np.r_[-1.0, 2.0, np.zeros(old.size - 2)]),
        ("start_", lambda old: 2 * old),
        ("history_", lambda old: old["objective"]),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(name, change, tmp_path):
    parts = parts_of(stored())
    with pytest.raises(ValueError, match=r"part\.npz is .*damaged"):
        messirl.load(written(tmp_path / "part.npz", {**parts, name: change(parts[name])}))


def test_an_array_that_claims_to_be_larger_than_memory_is_refused(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**16,)})
    with zipfile.ZipFile(tmp_path / "huge.npz", "w") as archive:
        archive.writestr("description.npy", header.getvalue())
    with pytest.raises(ValueError, match=r"huge\.npz is not a messirl model, or is damaged"):
        messirl.load(tmp_path / "huge.npz")


def test_zeros_that_would_fill_memory_are_refused(tmp_path):
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, **{**parts_of(stored()), "theta_": np.zeros(2**26)})
    assert path.stat().st_size < 2**20
    with pytest.raises(ValueError, match="theta_ would take 537 MB, too much for a file of this size"):
        messirl.load(path)


def test_two_arrays_of_one_name_are_refused(tmp_path):
    path = written(tmp_path / "twice.npz", parts_of(stored()))
    with zipfile.ZipFile(path) as archive:
        first = archive.read("theta_.npy")
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("theta_.npy", first)
    with pytest.raises(ValueError, match="two of its arrays have the same name"):
        messirl.load(path)


def test_a_similarity_matrix_that_no_fit_would_accept_is_refused(tmp_path):
    mdp, expert, unlabelled = problem("finite")
    model = MESSI(Precomputed(np.eye(len(expert) + len(unlabelled)))).fit(mdp, expert, unlabelled)
    model.save(tmp_path / "model.npz")
    parts = parts_of((tmp_path / "model.npz").read_bytes())
    (name,) = (name for name in parts if "similarity_matrix" in name)
    for matrix in (np.zeros(9, dtype=bool), -parts[name], parts[name][1:]):
        with pytest.raises(ValueError, match="damaged messirl model"):
            messirl.load(written(tmp_path / "part.npz", {**parts, name: matrix}))


@pytest.mark.parametrize("stage", ["read", "restored"])
def test_a_lack_of_memory_is_no_damage(stage, tmp_path, monkeypatch):
    def full(*_, **__):
        raise MemoryError("Unable to allocate 9 GiB")

    (tmp_path / "model.npz").write_bytes(stored())
    monkeypatch.setattr(*((np.lib.format, "read_array") if stage == "read" else (persistence, "MDP")), full)
    with pytest.raises(MemoryError, match="Unable to allocate 9 GiB"):
        messirl.load(tmp_path / "model.npz")


@pytest.mark.parametrize(
    "change",
    [
        {"estimator": "Pipeline"},
        {"estimator": None},
        {"parameters": {"gamma": 1}},
        {"parameters": None},
        {"parameters": {"similarity": {"similarity": "os.system", "arguments": {}}}},
        {"parameters": {"similarity": {"similarity": "RBF", "arguments": {"command": "x"}}}},
        {"parameters": {"similarity": {"precomputed": "not there"}}},
        {"parameters": {"similarity": {}}},
        {"parameters": {"entropy": "unknown"}},
        {"fitted": {}},
        {"fitted": {**FITTED, "converged_": "yes"}},
        {"fitted": {**FITTED, "n_iter_": -3}},
        {"fitted": {**FITTED, "objective_": None}},
        {"parameters": {"lambda0": -1.0}},
        {"mdp": {**FACTS, "horizon": 10**9}},
        {"mdp": {}},
        {"mdp": {**FACTS, "discount": 7.0}},
        {"mdp": {**FACTS, "horizon": "x"}},
    ],
    ids=str,
)
def test_a_description_that_makes_no_sense_is_refused(change, tmp_path):
    parts = parts_of(stored())
    with pytest.raises(ValueError, match=r"odd\.npz is a damaged messirl model"):
        messirl.load(written(tmp_path / "odd.npz", with_description(parts, {**described(parts), **change})))


@pytest.mark.parametrize("version", [0, 2, 99, "next", None])
def test_another_version_is_refused_and_named(version, tmp_path):
    parts = parts_of(stored())
    with pytest.raises(ValueError, match=f"is a model of format {version}; this messirl reads format 1"):
        messirl.load(written(tmp_path / "v.npz", with_description(parts, {**described(parts), "version": version})))


def test_very_deep_json_is_refused(tmp_path):
    deep = np.frombuffer(b"[" * 200_000, dtype=np.uint8)
    with pytest.raises(ValueError, match="is not a messirl model"):
        messirl.load(written(tmp_path / "deep.npz", {"description": deep}))


# ------------------------------------------------------------ nothing is executed


class Trap:
    """Unpickling this makes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("name", ["description", "theta_", "history_", "mdp_features", "stranger"])
def test_a_pickle_inside_an_archive_is_never_opened(name, tmp_path):
    sprung = tmp_path / "sprung"
    trap = np.empty(1, dtype=object)
    trap[0] = Trap(sprung)
    path = tmp_path / "trap.npz"
    np.savez(path, allow_pickle=True, **{**parts_of(stored()), name: trap})
    with pytest.raises(ValueError, match="is not a messirl model, or is damaged"):
        messirl.load(path)
    assert not sprung.exists()
    with np.load(path, allow_pickle=True) as archive:  # the trap works
        archive[name][0].close()
    assert sprung.exists()


def test_a_pickle_is_never_opened(tmp_path):
    sprung = tmp_path / "sprung"
    (tmp_path / "trap.npz").write_bytes(pickle.dumps(Trap(sprung)))
    with pytest.raises(ValueError, match="is not a messirl model, or is damaged"):
        messirl.load(tmp_path / "trap.npz")
    assert not sprung.exists()


# ------------------------------------------------------------ what cannot be computed with


@pytest.mark.parametrize("weight", [1e101, 1e308])
def test_a_penalty_that_cannot_be_computed_with_is_refused(weight, tmp_path):
    with pytest.raises(ValueError, match=r"lambda0=1e\+\d+ is too large to compute with: give a smaller one"):
        MESSI(lambda0=weight).fit(*problem("finite"))
    told = described(parts_of(stored()))
    told["parameters"]["lambda0"] = weight
    with pytest.raises(ValueError, match=r"damaged messirl model \(lambda0=1e\+\d+ is too large to compute with"):
        messirl.load(written(tmp_path / "large.npz", with_description(parts_of(stored()), told)))
