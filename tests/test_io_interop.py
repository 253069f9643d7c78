"""Other packages' conventions: axis orders, QuantEcon's sparse form, imitation's demonstrations."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from seeds import generator
from worlds import maze, random_mdp

from messirl import MDP, Trajectories, optimal_values
from messirl.data.axis_order import read_axes
from messirl.data.errors import InputError
from messirl.io.interop.imitation import from_imitation, recordings_from_imitation, to_table
from messirl.io.interop.quantecon import SparseForm, from_quantecon, to_quantecon
from messirl.io.recordings.recording import Recording

# ------------------------------------------------------------ orders


def law(n_states=4, n_actions=2):
    return generator(0).dirichlet(np.ones(n_states), size=(n_states, n_actions))


def in_order(p, axes):
    """p[s, a, s'] with its axes in another order."""
    return np.einsum({"sas": "sap->sap", "ssa": "sap->spa", "ass": "sap->asp"}[axes], p)


@pytest.mark.parametrize("axes", ["sas", "ssa", "ass"])
def test_an_mdp_is_made_from_an_array_with_its_axes_in_any_order_and_gives_it_back(axes):
    p, features = law(), np.eye(4)
    mdp = MDP.from_array(in_order(p, axes), features, axes=axes, discount=0.9)
    np.testing.assert_array_equal(mdp.to_array("sas"), p)
    np.testing.assert_array_equal(mdp.to_array(axes), in_order(p, axes))
    np.testing.assert_array_equal(mdp.transitions.toarray(), MDP(p, features, discount=0.9).transitions.toarray())


def test_sparse_matrices_one_an_action_stay_sparse():
    mdp = random_mdp(discount=0.95)
    rows = read_axes([sp.csr_matrix(one) for one in mdp.to_array("ass")], "ass")
    assert sp.issparse(rows)
    np.testing.assert_array_equal(rows.toarray(), mdp.transitions.toarray())


def test_an_action_that_is_not_allowed_is_a_row_of_zeros_in_any_order():
    mdp = maze(2, 2, discount=0.9)
    for axes in ("sas", "ssa", "ass"):
        again = MDP.from_array(mdp.to_array(axes), mdp.features, axes=axes, discount=0.9)
        np.testing.assert_array_equal(again.allowed, mdp.allowed)


@pytest.mark.parametrize(
    ("axes", "given", "message"),
    [
        ("ssa", law(), r"has shape \(4, 2, 4\); in the order ssa, .*: the order sas would fit; use axes='sas'"),
        ("sas", in_order(law(), "ssa"), "the order ssa would fit; use axes='ssa'"),
        ("sas", in_order(law(), "ass"), "the order ass would fit; use axes='ass'"),
        ("ass", in_order(law(3, 3), "ssa"), "state 0, action 0 sums to .*: the order ssa would fit; use axes='ssa'"),
        ("sas", law() * 0.97, r"state 0, action 0 sums to 0\.9700: give three axes that sum to one"),
        ("sas", -law(), "some probability is negative or not finite"),
        ("sas", np.zeros((2, 2, 2)), "every row is zero"),
        ("sas", np.eye(2), r"transitions: has shape \(2, 2\): give three axes"),
        ("ass", [sp.eye_array(2), sp.eye_array(3)], r"transitions: matrix 1 has shape \(3, 3\): give \(2, 2\)"),
        ("ass", [0.5 * sp.eye_array(2)], r"transitions: matrix 0, row 0 sums to 0\.5000, not 1"),
        ("ass", [-1.0 * sp.eye_array(2)], "transitions: matrix 0 has negative or non-finite entries"),
        ("sap", law(), "axes='sap': must be one of sas, ssa, ass"),
    ],
)
def test_an_array_in_another_order_is_refused_and_never_turned(axes, given, message):
    with pytest.raises(ValueError, match=message):
        MDP.from_array(given, np.eye(4), axes=axes, discount=0.9)


def test_an_array_is_asked_for_by_a_known_order():
    with pytest.raises(ValueError, match="axes='aps': must be one of sas, ssa, ass"):
        random_mdp(discount=0.95).to_array("aps")


def test_orders_hold_numbers():
    with pytest.raises(TypeError, match="transitions must be numbers, not <U1"):
        MDP.from_array([[["a"]]], np.eye(1), axes="sas", discount=0.9)


# ------------------------------------------------------------ QuantEcon


def bellman(form, sweeps=4000):
    """Optimal values of the sparse form by value iteration, as QuantEcon defines them."""
    V = np.zeros(form.Q.shape[1])
    for _ in range(sweeps):
        Q = form.R + form.beta * (form.Q @ V)
        V = np.full(V.shape, -np.inf)
        np.maximum.at(V, form.s_indices, Q)
    return V


@pytest.mark.parametrize("shape", ["state", "step"])
def test_the_sparse_form_has_the_same_optimal_values(shape):
    ends = np.arange(9) == 4
    mdp = maze(discount=0.9, terminal=ends)
    rng = generator(0)
    reward = rng.normal(size=(9,) if shape == "state" else (9, 4))
    form = to_quantecon(mdp, reward)
    np.testing.assert_allclose(bellman(form), optimal_values(mdp, reward), atol=1e-10)


def test_the_sparse_form_and_back_changes_nothing():
    mdp = maze(discount=0.9)
    reward = np.where(mdp.allowed, generator(0).normal(size=(9, 4)), 0.0)
    form = to_quantecon(mdp, reward)
    back, again = from_quantecon(form)
    assert (back.transitions != mdp.transitions).nnz == 0
    np.testing.assert_array_equal(back.allowed, mdp.allowed)
    np.testing.assert_array_equal(again, reward)
    assert back.discount == 0.9
    for one, other in zip(to_quantecon(back, again), form, strict=True):
        np.testing.assert_array_equal(*(x.toarray() if sp.issparse(x) else x for x in (one, other)))


def test_pairs_may_come_in_any_order():
    mdp = random_mdp(discount=0.9)
    form = to_quantecon(mdp, np.arange(15.0).reshape(5, 3))
    mixed = generator(1).permutation(15)
    shuffled = SparseForm(form.R[mixed], form.Q[mixed], 0.9, form.s_indices[mixed], form.a_indices[mixed])
    back, reward = from_quantecon(shuffled, start=np.eye(5)[0])
    assert (back.transitions != mdp.transitions).nnz == 0
    np.testing.assert_array_equal(reward, np.arange(15.0).reshape(5, 3))
    assert back.start[0] == 1.0


def test_the_product_form_is_read_and_minus_infinity_forbids():
    R = np.array([[5.0, 10.0], [-1.0, -np.inf]])
    Q = np.array([[[0.5, 0.5], [0, 1]], [[0, 1], [0.5, 0.5]]])
    program = SimpleNamespace(R=R, Q=Q, beta=0.95, s_indices=None, a_indices=None)
    mdp, reward = from_quantecon(program, features=np.eye(2))
    np.testing.assert_array_equal(mdp.allowed, [[True, True], [True, False]])
    np.testing.assert_array_equal(reward, [[5, 10], [-1, 0]])
    # Puterman (2005), section 3.1: v*(s1) = (5 − 5.5·β)/((1 − 0.5·β)(1 − β)), v*(s2) = −1/(1 − β), for β > 10/11
    expected = [(5 - 5.5 * 0.95) / ((1 - 0.5 * 0.95) * (1 - 0.95)), -1 / (1 - 0.95)]
    np.testing.assert_allclose(optimal_values(mdp, reward), expected, rtol=1e-9)


FORM = to_quantecon(random_mdp(discount=0.9), np.zeros(5))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"beta": None}, TypeError, "SparseForm has no beta: give a DiscreteDP or a SparseForm"),
        (
            {"R": FORM.R[:-1]},
            InputError,
            r"s_indices: has dtype int64 and shape \(15,\): give 14 numbers from 0, one per pair",
        ),
        ({"Q": FORM.Q[:-1]}, InputError, r"Q: has shape \(14, 5\), R \(15,\): give one row"),
        ({"Q": FORM.Q[:, :4]}, InputError, "s_indices: holds 4: Q has 4 columns, so states are 0 … 3"),
        ({"a_indices": FORM.a_indices * 0}, InputError, r"s_indices: the pair \(0, 0\) is listed twice"),
        ({"a_indices": FORM.a_indices - 1}, InputError, "a_indices: has dtype int64 and shape"),
        ({"R": FORM.R * np.nan}, InputError, "R: some reward is NaN or infinite: use finite rewards, or -inf"),
        ({"s_indices": None}, InputError, r"Q: has shape \(15, 5\), R \(15,\): give R \(S, A\)"),
    ],
)
def test_a_program_that_contradicts_itself_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        from_quantecon(FORM._replace(**changes))


@pytest.mark.parametrize(
    ("mdp", "reward", "message"),
    [
        (random_mdp(discount=0.95), np.zeros(4), r"reward: has shape \(4,\): give \(5,\) or \(5, 3\)"),
        (
            random_mdp(horizon=4, discount=0.95),
            np.zeros(5),
            "mdp: discount is 0.95, horizon is 4: the sparse form needs discount < 1",
        ),
        (maze(discount=1.0), np.zeros(9), "mdp: discount is 1, horizon is None: the sparse form needs discount < 1"),
        (
            MDP(np.array([[[0, 1.0]], [[0, 0]]]), np.eye(2), discount=0.95),
            np.zeros(2),
            "mdp: state 1 has no action: make it terminal",
        ),
    ],
)
def test_what_the_form_cannot_hold_is_refused(mdp, reward, message):
    with pytest.raises(InputError, match=message):
        to_quantecon(mdp, reward)


# ------------------------------------------------------------ imitation

WALK = Trajectories.from_lists([[0, 1, 2], [3, 2]], [[0, 1], [2]])
OBJECTS = [
    SimpleNamespace(obs=np.array([0, 1, 2]), acts=np.array([0, 1]), infos=None, terminal=True),
    SimpleNamespace(obs=np.array([3, 2]), acts=np.array([2]), infos=None, terminal=False),
]
TABLE = {"obs": [[0, 1, 2], [3, 2]], "acts": [[0, 1], [2]], "infos": [["{}"] * 2, ["{}"]], "terminal": [True, False]}


class Dataset:
    """As much of a Hugging Face data set as is looked at."""

    def __init__(self):
        self.column_names = list(TABLE)

    def __getitem__(self, name):
        return TABLE[name]


@pytest.mark.parametrize(
    "source", [OBJECTS, TABLE, pa.table(TABLE), Dataset()], ids=["objects", "dict", "arrow", "hub"]
)
def test_demonstrations_are_read_whatever_holds_them(source):
    assert from_imitation(source) == WALK
    assert [t.states.tolist() for t in from_imitation(source, end_state=4)] == [[0, 1, 4], [3, 2]]
    assert [one.terminated for one in recordings_from_imitation(source)] == [True, False]


def test_the_table_and_back_changes_nothing():
    assert to_table(WALK, terminated=[True, False]) == TABLE
    assert to_table(recordings_from_imitation(TABLE)) == TABLE


def test_points_and_rewards_are_kept():
    demonstration = SimpleNamespace(
        obs=np.arange(6.0).reshape(3, 2), acts=np.ones((2, 1)), terminal=np.array(True), rews=np.array([0.5, 1.5])
    )
    (found,) = recordings_from_imitation([demonstration])
    np.testing.assert_array_equal(found.observations, demonstration.obs)
    np.testing.assert_array_equal(found.rewards, [0.5, 1.5])
    assert found.terminated
    (again,) = recordings_from_imitation(pa.table(to_table([found])))
    np.testing.assert_array_equal(again.observations, demonstration.obs)
    np.testing.assert_array_equal(again.actions, demonstration.acts)
    np.testing.assert_array_equal(again.rewards, [0.5, 1.5])


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ([SimpleNamespace(obs=[0, 1])], TypeError, "demonstration 0 has no acts, terminal: give objects like"),
        (
            {"obs": [[0]], "acts": [[]]},
            InputError,
            "table: there is no column 'terminal': the columns are obs, acts; rename them",
        ),
        ({**TABLE, "acts": [[0, 1]]}, InputError, "table: its columns have 1, 2 rows: give one row per demonstration"),
        ({**TABLE, "acts": [[0], [2]]}, InputError, "recording 0: it has 3 observations and 1 action"),
        (
            {**TABLE, "terminal": [[True], [False]]},
            TypeError,
            r"recording 0: terminated must be True or False, not \[True",
        ),
    ],
)
def test_demonstrations_that_contradict_themselves_are_refused(source, error, message):
    with pytest.raises(error, match=message):
        from_imitation(source)


def test_a_table_holds_all_rewards_or_none():
    mixed = [Recording([0, 1], [0], rewards=[1.0]), Recording([0, 1], [0])]
    with pytest.raises(InputError, match="to_table: some recordings have rewards and some do not"):
        to_table(mixed)
    with pytest.raises(InputError, match="trajectories: they have no actions"):
        to_table(Trajectories.from_lists([[0, 1]]))
