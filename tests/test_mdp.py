"""The Markov decision process: what it accepts, what it refuses, and that it never changes."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from seeds import generator
from worlds import ROUNDING, maze, random_mdp, ring

from messirl import MDP, optimal_policy, soft_policy, soft_values

S, A, D = 4, 2, 3


@pytest.fixture
def tables():
    rng = generator(3)
    return rng.dirichlet(np.ones(S), size=(S, A)), rng.random((S, D))


def rows(transitions):
    return transitions.reshape(-1, transitions.shape[-1])


# ------------------------------------------------------------ what it stores


def test_sizes_are_those_of_the_tables(tables):
    mdp = MDP(*tables, discount=0.95)
    assert (mdp.n_states, mdp.n_actions, mdp.n_features) == (S, A, D)
    assert not mdp.state_action
    assert not mdp.deterministic
    assert repr(mdp) == "MDP(4 states, 2 actions, 3 state features, discount 0.95, no horizon, 0 terminal)"


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array, sp.lil_array, sp.csr_matrix])
def test_sparse_transitions_are_the_dense_ones(tables, kind):
    dense, sparse = MDP(*tables, discount=0.95), MDP(kind(rows(tables[0])), tables[1], discount=0.95)
    assert_array_equal(dense.transitions.toarray(), sparse.transitions.toarray())
    assert_array_equal(dense.allowed, sparse.allowed)


def test_repeated_entries_of_sparse_transitions_add_up():
    halves = sp.coo_array(([0.5, 0.5, 1.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert_array_equal(MDP(halves, np.eye(2), discount=0.95).transitions.toarray(), [[0, 1], [1, 0]])


@pytest.mark.parametrize("by_step", [False, True])
def test_sparse_features_give_the_rewards_of_dense_ones(by_step):
    dense = random_mdp(1, by_step=by_step, discount=0.95)
    sparse = dense.replace(features=sp.csr_array(dense.feature_rows))
    assert sparse.state_action is by_step
    theta = np.array([0.3, -2.0, 1.0])
    assert_allclose(sparse.reward(theta), dense.reward(theta), rtol=ROUNDING, atol=ROUNDING)
    assert_allclose(soft_policy(sparse, sparse.reward(theta)), soft_policy(dense, dense.reward(theta)), rtol=1e-12)
    visits = generator(0).random(dense.reward(theta).shape)
    assert_allclose(sparse.counts(visits), dense.counts(visits), rtol=ROUNDING)


def test_whole_numbers_and_single_precision_are_accepted(tables):
    assert MDP(np.eye(2, dtype=int)[:, None], np.eye(2, dtype=np.float32), discount=0.95).deterministic
    single = MDP(tables[0].astype(np.float32), tables[1], discount=0.95)
    assert_allclose(np.asarray(single.transitions.sum(axis=1)).ravel(), 1.0, rtol=ROUNDING)


def test_an_all_zero_row_is_an_action_that_is_not_allowed(tables):
    transitions, features = tables
    transitions[2, 1] = 0
    mdp = MDP(transitions, features, discount=0.95)
    assert not mdp.allowed[2, 1]
    assert mdp.allowed.sum() == S * A - 1


def test_allowed_takes_actions_away(tables):
    allowed = np.ones((S, A), dtype=bool)
    allowed[1, 0] = False
    mdp = MDP(*tables, allowed=allowed, discount=0.95)
    assert_array_equal(mdp.allowed, allowed)
    assert mdp.transitions[[1 * A]].nnz == 0


def test_rows_of_terminal_states_are_ignored(tables):
    transitions, features = tables
    transitions[3] = 7.0
    mdp = MDP(transitions, features, terminal=np.arange(S) == 3, discount=0.95)
    assert not mdp.allowed[3].any()
    assert mdp.transitions[[3 * A, 3 * A + 1]].nnz == 0


def test_a_state_may_be_a_dead_end(tables):
    transitions, features = tables
    transitions[3] = 0.0
    assert not MDP(transitions, features, discount=0.95).allowed[3].any()


def test_sums_within_rounding_of_single_precision_are_made_exact(tables):
    transitions, features = tables
    mdp = MDP(transitions * (1 + 5e-7), features, discount=0.95)
    assert_allclose(np.asarray(mdp.transitions.sum(axis=1)).ravel(), 1.0, rtol=ROUNDING)


def test_rewards_have_one_number_a_state_or_one_a_state_and_action(tables):
    theta = np.array([1.0, -1.0, 2.0])
    assert_allclose(MDP(*tables, discount=0.95).reward(theta), tables[1] @ theta)
    by_step = random_mdp(2, S, A, D, by_step=True, discount=0.95)
    assert by_step.state_action
    assert_allclose(by_step.reward(theta), np.einsum("sad,d->sa", by_step.features, theta))


# ------------------------------------------------------------ bad input


@pytest.mark.parametrize("sparse", [False, True])
def test_a_row_that_does_not_sum_to_one_is_named(tables, sparse):
    transitions, features = tables
    transitions[3, 1] *= 0.97
    given = sp.csr_array(rows(transitions)) if sparse else transitions
    with pytest.raises(ValueError, match=re.escape("transitions[3, 1] sums to 0.9700, not 1: renormalise the row")):
        MDP(given, features, discount=0.95)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("value", "says"), [(-0.1, "is negative"), (np.nan, "is not finite"), (np.inf, "is not finite")]
)
def test_a_value_that_is_no_probability_is_named(tables, value, says, sparse):
    transitions, features = tables
    transitions[2, 1, 3] = value
    given = sp.csr_array(rows(transitions)) if sparse else transitions
    with pytest.raises(ValueError, match=rf"transitions\[2, 1, 3\] = {value} {says}"):
        MDP(given, features, discount=0.95)


def test_a_negative_probability_in_a_row_that_still_sums_to_one_is_named(tables):
    transitions, features = tables
    transitions[0, 0] = [1.5, -0.5, 0.0, 0.0]
    with pytest.raises(ValueError, match=re.escape("transitions[0, 0, 1] = -0.5 is negative")):
        MDP(transitions, features, discount=0.95)


@pytest.mark.parametrize("shape", [(4, 4), (4, 2, 3), (2, 4, 4, 1), (0, 2, 0), (4, 0, 4)])
def test_transitions_of_the_wrong_shape_are_refused(shape):
    with pytest.raises(ValueError, match=r"transitions have shape .* \(S, A, S\) in the order state, action, next"):
        MDP(np.zeros(shape), np.ones((4, 1)), discount=0.95)


def test_sparse_transitions_of_the_wrong_shape_are_refused():
    with pytest.raises(ValueError, match=re.escape("sparse transitions have shape (5, 4): they need S*A rows")):
        MDP(sp.csr_array((5, 4)), np.ones((4, 1)), discount=0.95)


def test_transitions_that_are_no_numbers_are_refused():
    with pytest.raises(TypeError, match="transitions must be numbers"):
        MDP([[["a"]]], np.ones((1, 1)), discount=0.95)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_feature_that_is_not_finite_is_named(tables, value):
    transitions, features = tables
    features[1, 2] = value
    with pytest.raises(ValueError, match=re.escape("features[1, 2] is not finite: fill it in or drop the feature")):
        MDP(transitions, features, discount=0.95)
    by_step = np.ones((S, A, D))
    by_step[3, 1, 0] = value
    with pytest.raises(ValueError, match=re.escape("features[3, 1, 0] is not finite")):
        MDP(transitions, by_step, discount=0.95)
    with pytest.raises(ValueError, match=re.escape("features[1, 2] is not finite: fill it in or drop the feature")):
        MDP(transitions, sp.csr_array(features), discount=0.95)


@pytest.mark.parametrize("shape", [(3, 2), (4,), (4, 0), (2, 4, 3), (4, 3, 2), (4, 2, 0), (1, 4, 2, 3)])
def test_features_of_the_wrong_shape_are_refused(tables, shape):
    with pytest.raises(ValueError, match=re.escape(f"features have shape {shape}: give (4, d), or (4, 2, d)")):
        MDP(tables[0], np.ones(shape), discount=0.95)


@pytest.mark.parametrize("shape", [(3, 2), (5, 2), (4, 0)])
def test_sparse_features_of_the_wrong_shape_are_refused(tables, shape):
    with pytest.raises(ValueError, match=re.escape(f"sparse features have shape {shape}: they need 4 rows")):
        MDP(tables[0], sp.csr_array(shape), discount=0.95)


def test_masked_features_are_refused_since_what_is_under_the_mask_is_no_value(tables):
    with pytest.raises(ValueError, match="features holds masked values: fill them in"):
        MDP(tables[0], np.ma.masked_array(tables[1], mask=np.eye(S, D) > 0), discount=0.95)
    assert MDP(tables[0], np.ma.masked_array(tables[1]), discount=0.95).n_features == D


def test_features_that_are_no_numbers_are_refused(tables):
    with pytest.raises(TypeError, match="features must be numbers"):
        MDP(tables[0], np.full((S, 1), "red"), discount=0.95)


@pytest.mark.parametrize("discount", [0.0, -0.5, 1.0001, np.nan, np.inf])
def test_a_discount_outside_zero_to_one_is_refused(tables, discount):
    with pytest.raises(ValueError, match=re.escape(f"discount is {discount}, but must lie in (0, 1]")):
        MDP(*tables, discount=discount)


@pytest.mark.parametrize("discount", ["0.9", None, True, [0.9]])
def test_a_discount_that_is_no_number_is_refused(tables, discount):
    with pytest.raises(TypeError, match="discount must be a number"):
        MDP(*tables, discount=discount)


@pytest.mark.parametrize("horizon", [0, -3])
def test_a_horizon_without_a_state_is_refused(tables, horizon):
    with pytest.raises(ValueError, match=f"horizon is {horizon}: a trajectory has at least one state"):
        MDP(*tables, horizon=horizon, discount=0.95)


@pytest.mark.parametrize("horizon", [2.5, "10", True, np.inf])
def test_a_horizon_that_is_no_whole_number_is_refused(tables, horizon):
    with pytest.raises(TypeError, match="horizon must be a whole number of states or None"):
        MDP(*tables, horizon=horizon, discount=0.95)


@pytest.mark.parametrize(
    ("start", "says"),
    [
        ([0.5, 0.5], r"start has shape \(2,\)"),
        ([0.5, 0.6, 0.0, 0.0], r"start sums to 1\.1000, not 1: divide it by its sum"),
        ([1.5, -0.5, 0.0, 0.0], r"start\[1\] = -0\.5"),
        ([np.nan, 0.0, 0.0, 1.0], r"start\[0\] = nan"),
        ([0.0, 0.0, 0.0, 0.0], r"start sums to 0\.0000, not 1"),
    ],
)
def test_a_start_that_is_no_distribution_is_refused(tables, start, says):
    with pytest.raises(ValueError, match=says):
        MDP(*tables, start=start, discount=0.95)


def test_terminal_is_an_array_of_bool_and_not_of_states(tables):
    with pytest.raises(TypeError, match=re.escape("terminal must be an array of bool of shape (4,), not of int64")):
        MDP(*tables, terminal=np.array([0, 3]), discount=0.95)
    with pytest.raises(ValueError, match=re.escape("terminal has shape (3,), not (4,)")):
        MDP(*tables, terminal=np.zeros(3, dtype=bool), discount=0.95)


def test_allowed_must_fit_the_transitions(tables):
    with pytest.raises(ValueError, match=re.escape("allowed has shape (2, 4), not (4, 2)")):
        MDP(*tables, allowed=np.ones((A, S), dtype=bool), discount=0.95)
    with pytest.raises(TypeError, match="allowed must be an array of bool"):
        MDP(*tables, allowed=np.ones((S, A)), discount=0.95)
    transitions, features = tables
    transitions[1, 0] = 0.0
    with pytest.raises(ValueError, match=re.escape("allowed[1, 0] is True but transitions[1, 0] is all zero")):
        MDP(transitions, features, allowed=np.ones((S, A), dtype=bool), discount=0.95)


@pytest.mark.parametrize("what", ["state_names", "action_names", "feature_names"])
def test_names_are_as_many_as_what_they_name_and_differ(tables, what):
    n = {"state_names": S, "action_names": A, "feature_names": D}[what]
    assert getattr(MDP(*tables, discount=0.95, **{what: [f"n{i}" for i in range(n)]}), what)[1] == "n1"
    with pytest.raises(ValueError, match=f"{what} has length {n + 1}, but {n}"):
        MDP(*tables, discount=0.95, **{what: [f"n{i}" for i in range(n + 1)]})
    with pytest.raises(ValueError, match=f"{what} contains 'a' twice"):
        MDP(*tables, discount=0.95, **{what: ["a"] * n})
    with pytest.raises(TypeError, match=f"{what} must be a sequence of strings"):
        MDP(*tables, discount=0.95, **{what: range(n)})
    with pytest.raises(TypeError, match=f"{what} must be a sequence of strings"):
        MDP(*tables, discount=0.95, **{what: "abcd"[:n]})


@pytest.mark.parametrize("of", [soft_values, soft_policy, optimal_policy])
def test_nothing_that_ends_with_discount_one_is_refused(of):
    with pytest.raises(ValueError, match=r"discount=1 with no horizon, no terminal state .*: no trajectory ends"):
        of(ring(discount=1.0), np.full(4, -1.0))


# ------------------------------------------------------------ it never changes


def arrays_of(mdp):
    parts = {"terminal": mdp.terminal, "allowed": mdp.allowed, "start": mdp.start}
    for name in ("transitions", "features"):
        value = getattr(mdp, name)
        if sp.issparse(value):
            parts |= {f"{name}.{part}": getattr(value, part) for part in ("data", "indices", "indptr")}
        else:
            parts[name] = value
    return parts


@pytest.fixture(params=["dense", "sparse"])
def full(request, tables):
    """An MDP that has everything."""
    transitions, features = tables
    return MDP(
        transitions,
        features if request.param == "dense" else sp.csr_array(features),
        start=np.full(S, 1 / S),
        discount=0.9,
        horizon=5,
        terminal=np.arange(S) == 3,
        state_names=list("abcd"),
        action_names=["left", "right"],
        feature_names=["x", "y", "z"],
    )


def test_attributes_cannot_be_set(full):
    with pytest.raises(AttributeError, match=re.escape("mdp.replace(discount=...)")):
        full.discount = 0.5


def test_no_array_can_be_written_to(full):
    for name, array in arrays_of(full).items():
        assert not array.flags.writeable, name


@pytest.mark.parametrize("again", [copy.deepcopy, lambda mdp: pickle.loads(pickle.dumps(mdp))], ids=["copy", "pickle"])
def test_a_copy_is_equal_and_cannot_be_written_to_either(full, again):
    soft_policy(full, full.reward(np.ones(D)))  # what is remembered does not get in the way
    twin = again(full)
    for (name, a), b in zip(arrays_of(full).items(), arrays_of(twin).values(), strict=True):
        assert_array_equal(a, b, err_msg=name)
        assert not b.flags.writeable, name
    assert repr(twin) == repr(full)
    assert twin.feature_names == full.feature_names
    with pytest.raises(AttributeError, match="immutable"):
        twin.horizon = 3


def test_the_arrays_given_stay_the_callers_own(tables):
    transitions, features = tables
    terminal, start = np.arange(S) == 3, np.full(S, 1 / S)
    allowed = np.ones((S, A), dtype=bool)
    mdp = MDP(transitions, features, terminal=terminal, start=start, allowed=allowed, discount=0.95)
    before = {name: np.array(array) for name, array in arrays_of(mdp).items()}
    for array in (transitions, features, terminal, start, allowed):
        array[...] = 0
    for name, array in arrays_of(mdp).items():
        assert_array_equal(array, before[name], err_msg=name)


def test_the_sparse_matrices_given_stay_the_callers_own(tables):
    transitions, features = sp.csr_array(rows(tables[0])), sp.csr_array(tables[1])
    mdp = MDP(transitions, features, discount=0.95)
    transitions.data[:] = 0.0
    features.data[:] = 0.0
    assert_array_equal(mdp.transitions.toarray(), rows(tables[0]))
    assert_array_equal(mdp.features.toarray(), tables[1])


# ------------------------------------------------------------ replace, scaled


def test_replace_changes_what_is_named_and_nothing_else(full):
    other = full.replace(discount=0.5)
    assert (other.discount, full.discount) == (0.5, 0.9)
    for (name, a), b in zip(arrays_of(full).items(), arrays_of(other).values(), strict=True):
        assert_array_equal(a, b, err_msg=name)
    for name in ("horizon", "state_names", "action_names", "feature_names"):
        assert getattr(other, name) == getattr(full, name)


def test_replace_keeps_actions_that_were_taken_away(tables):
    allowed = np.ones((S, A), dtype=bool)
    allowed[0, 1] = False
    mdp = MDP(*tables, allowed=allowed, discount=0.95)
    assert_array_equal(mdp.replace(discount=0.5).allowed, allowed)
    assert_array_equal(mdp.replace(transitions=tables[0]).allowed, allowed)


def test_replace_of_features_drops_their_names(full):
    assert full.replace(features=np.ones((S, 1))).feature_names is None
    assert full.replace(features=np.ones((S, 1)), feature_names=["one"]).feature_names == ("one",)


def test_replace_refuses_an_argument_that_does_not_exist(full):
    with pytest.raises(TypeError, match=r"an MDP has no argument 'gamma': choose from action_names, allowed, discount"):
        full.replace(gamma=0.5)


@pytest.mark.parametrize("sparse", [False, True])
def test_scaled_divides_by_the_maximum_and_multiplies_by_one_minus_discount(sparse):
    features = np.array([[0.0, 8.0, 0.0], [2.0, 4.0, 0.0], [5.0, 0.0, 0.0], [1.0, 2.0, 0.0]])
    given = sp.csr_array(features) if sparse else features
    mdp = ring(4, discount=0.75).replace(features=given, feature_names=["a", "b", "zero"])
    scaled = mdp.scaled()
    table = scaled.features.toarray() if sparse else scaled.features
    assert_allclose(table, 0.25 * features / [5.0, 8.0, 1.0], rtol=ROUNDING)
    assert scaled.feature_names == ("a", "b", "zero")
    assert scaled.discount == 0.75


def test_scaled_works_on_state_action_features():
    mdp = random_mdp(4, by_step=True, discount=0.9)
    assert_allclose(mdp.scaled().features, 0.1 * mdp.features / mdp.features.max(axis=(0, 1)), rtol=ROUNDING)


@pytest.mark.parametrize("sparse", [False, True])
def test_scaled_refuses_negative_features_by_name(sparse):
    features = np.array([[1.0, 0.0], [0.0, -2.5], [0.0, 0.0], [3.0, 1.0]])
    mdp = ring(4, discount=0.95).replace(
        features=sp.csr_array(features) if sparse else features, feature_names=["sun", "rain"]
    )
    with pytest.raises(ValueError, match=r"feature 'rain' has the minimum -2\.5: scaled\(\) needs features >= 0"):
        mdp.scaled()


def test_scaled_refuses_discount_one():
    with pytest.raises(ValueError, match=re.escape("scaled() multiplies by 1 - discount, which is 0 here")):
        maze(discount=1.0).scaled()
