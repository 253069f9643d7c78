"""The unit of a feature is the user's business: what is learnt does not depend on it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from roads import network, trips
from seeds import generator, pinned
from sklearn.exceptions import ConvergenceWarning
from worlds import drawn, maze, random_mdp

from messirl import MDP, MESSI, EMMaxEnt, MaxEntIRL, Trajectories
from messirl.data.feature_scale import feature_spread, spread_of
from messirl.estimators import _search
from messirl.estimators.uniform import uniform_score
from messirl.inference import estimation_table
from messirl.inference.baselines import explain_below_chance
from messirl.optim.box_search import ROUNDING
from messirl.similarity import RBF

KINDS = ["finite", "steps", "sparse", "noncausal", "endless", "episodic", "goals", "roads"]
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
HUGE = 1e20  # a box that holds nothing


@cache
def case(kind: str, seed: int = 0) -> tuple[MDP, Trajectories, dict[str, Any]]:
    """A problem whose optimum exists and is identified, and the arguments it asks for."""
    theta = np.array([1.0, -1.0, 0.5])
    if kind in ("finite", "steps", "sparse", "noncausal"):
        mdp = random_mdp(seed, by_step=kind in ("steps", "sparse"), discount=0.9, horizon=6, start=np.full(5, 0.2))
        if kind == "sparse":
            mdp = mdp.replace(features=sp.csr_array(mdp.feature_rows))
        return mdp, drawn(mdp, theta, 200, seed), {"entropy": "noncausal"} if kind == "noncausal" else {}
    if kind == "endless":
        mdp = random_mdp(seed, discount=0.8, start=np.full(5, 0.2))
        return mdp, drawn(mdp, theta, 200, seed, length=40), {}
    if kind == "roads":
        mdp = network(seed=seed)
        return mdp, trips(mdp, 100, seed), {}
    anywhere = np.full(16, 1 / 16)
    features = generator(seed).random((16, 2)) + 0.3
    ends = None if kind == "goals" else np.arange(16) == 15
    mdp = maze(4, 4, features, discount=1.0, terminal=ends)
    if kind == "episodic":
        return mdp, drawn(mdp, [-2.0, -1.0], 60, seed, start=anywhere), {}
    return (
        mdp,
        drawn(mdp, [-2.0, -1.0], 30, seed, start=anywhere, goal=3)
        + drawn(mdp, [-2.0, -1.0], 30, seed + 1, start=anywhere, goal=15),
        {},
    )


def in_other_units(mdp: MDP, factor: np.ndarray) -> MDP:
    features = mdp.features @ sp.diags_array(factor) if sp.issparse(mdp.features) else mdp.features * factor
    return mdp.replace(features=features, feature_names=mdp.feature_names)


def policies(model: Any) -> Any:
    return model.policy_ if model.goals_ is None else np.stack([model.policy_[goal] for goal in model.policy_])


def assert_the_same_but_for_units(plain: Any, other: Any, factor: np.ndarray, expert: Trajectories) -> None:
    assert plain.converged_
    assert other.converged_
    assert_allclose(other.theta_ * factor, plain.theta_, atol=1e-5 * np.abs(plain.theta_).max())
    assert_allclose(policies(other), policies(plain), atol=1e-6)
    assert_allclose(other.objective_, plain.objective_, rtol=1e-6)
    assert_allclose(other.score(expert), plain.score(expert), rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 4), powers=st.lists(st.integers(-9, 9), min_size=3, max_size=3), standardised=st.booleans())
def test_multiplying_features_divides_their_weights_and_changes_nothing_else(kind, seed, powers, standardised):
    mdp, expert, arguments = case(kind, seed)
    factor = 10.0 ** np.array(powers[: mdp.n_features])
    model = {"theta_max": None, "ridge": 0.01 if standardised else 0.0, "standardise": standardised, **arguments}
    plain = MaxEntIRL(**model).fit(mdp, expert)
    other = MaxEntIRL(**model).fit(in_other_units(mdp, factor), expert)
    assert_the_same_but_for_units(plain, other, factor, expert)
    if not standardised:
        one, two = estimation_table(plain, expert), estimation_table(other, expert)
        assert_allclose(two.t, one.t, rtol=1e-4)
        assert_allclose(two.robust_t, one.robust_t, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("power", [-9, -4, 5, 9])
def test_messi_on_standardised_counts_is_the_same_in_every_unit(kind, power):
    mdp, every, arguments = case(kind)
    rows = np.arange(len(every))
    expert, unlabelled = every[rows % 3 != 0], every[rows % 3 == 0]
    factor = np.ones(mdp.n_features)
    factor[0] = 10.0**power
    model = MESSI(RBF("median", standardise=True), lambda0=0.01 * HUGE, theta_max=HUGE, **arguments)
    plain = model.fit(mdp, expert, unlabelled)
    other = MESSI(**model.get_params(deep=False)).fit(in_other_units(mdp, factor), expert, unlabelled)
    assert_the_same_but_for_units(plain, other, factor, expert)


@quiet
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("power", [-9, 9])
def test_em_with_the_exact_solver_is_the_same_in_every_unit(kind, power):
    mdp, every, arguments = case(kind)
    factor = np.ones(mdp.n_features)
    factor[-1] = 10.0**power
    model = EMMaxEnt(solver="lbfgs", steps_per_round=4, max_iter=12, theta_max=None, **arguments)
    rows = np.arange(len(every))
    parts = every[rows % 2 == 0], every[rows % 2 == 1]
    plain = model.fit(mdp, *parts)
    other = EMMaxEnt(**model.get_params()).fit(in_other_units(mdp, factor), *parts)
    assert_allclose(policies(other), policies(plain), atol=1e-6)


# ------------------------------------------------------------ the box and the penalty are in the user's units


def named(mdp: MDP, names: list[str]) -> MDP:
    return mdp.replace(feature_names=names)


def test_a_weight_that_the_box_holds_is_named_with_what_to_do():
    mdp, expert, _ = case("finite")
    small = named(in_other_units(mdp, np.array([1.0, 1e-4, 1.0])), ["view", "length", "noise"])
    model = MaxEntIRL(theta_max=5.0).fit(small, expert)
    assert model.converged_
    assert model.standing_.names(small)["box"] == ["length"]
    (remark,) = model.warnings_
    assert remark.startswith("theta_max=5: the weight of 'length' is at its bound")
    assert "give the feature in a smaller unit, so that its values are larger, or raise theta_max" in remark


@pytest.mark.parametrize("method", [MaxEntIRL, MESSI])
def test_a_weight_that_the_penalty_holds_is_named(method):
    with pinned():  # of other draws the other weights make up for the one that is held, and nothing is named
        mdp, expert, _ = case.__wrapped__("finite")
    small = named(in_other_units(mdp, np.array([1.0, 1e-3, 1.0])), ["view", "length", "noise"])
    if method is MaxEntIRL:
        model = MaxEntIRL(ridge=0.01, theta_max=None).fit(small, expert)
    else:
        similarity = RBF(1e9)
        model = MESSI(similarity, lambda0=HUGE * 1e3, theta_max=HUGE).fit(small, expert, expert)
    assert "length" in model.standing_.names(small)["penalty"]
    assert any("the penalty shrinks the weight of" in remark and "'length'" in remark for remark in model.warnings_)


def test_a_fit_that_nothing_holds_makes_no_remark():
    mdp, expert, _ = case("finite")
    model = MaxEntIRL().fit(mdp, expert)
    assert model.warnings_ == []
    assert model.standing_.names(mdp) == {
        "box": [],
        "penalty": [],
        "unidentified": [],
        "unsettled": [],
        "undetermined": [],
    }


def test_weights_that_run_on_are_not_called_converged_and_are_named():
    mud = np.isin(np.arange(16), [5, 9])
    mdp = maze(4, 4, np.column_stack([np.ones(16), mud]), discount=1.0, terminal=np.arange(16) == 15)
    mdp = named(mdp, ["steps", "mud"])
    dry = Trajectories.from_lists([[0, 1, 2, 3, 7, 11, 15], [0, 1, 2, 6, 2, 3, 7, 11, 15]])
    with pytest.warns(ConvergenceWarning, match=r"Not converged: 'mud'\. The data hardly determine them: add"):
        model = MaxEntIRL(theta_max=None).fit(mdp, dry)
    assert not model.converged_
    assert model.standing_.names(mdp)["unsettled"] == ["mud"]


def test_where_rounding_is_in_the_way_the_data_are_not_blamed(monkeypatch):
    mdp, expert, _ = case("finite")
    found = _search.run_solver

    def rounded(*given):  # where rounding ends a search differs between processors
        result = yield from found(*given)
        return replace(result, converged=False, reason=ROUNDING, move=np.full(3, 1e-5))

    monkeypatch.setattr(_search, "run_solver", rounded)
    with pytest.warns(ConvergenceWarning, match=r"1e-05 from its optimum.* Rounding allows no more: use a larger tol"):
        assert MaxEntIRL().fit(mdp, expert).standing_.unsettled == (0, 1, 2)


# ------------------------------------------------------------ convergence


def correlated(seed: int, n_features: int = 45) -> tuple[MDP, Trajectories]:
    """Features in pairs of correlation 0.99, with spreads from 0.01 to 100."""
    rng = generator(seed)
    mdp = random_mdp(seed, n_states=150, n_actions=4, n_features=n_features, discount=0.9)
    table = rng.normal(size=(150, n_features))
    table[:, 1::2] = 0.99 * table[:, : n_features - 1 : 2] + np.sqrt(1 - 0.99**2) * table[:, 1::2]
    spread = rng.permutation(np.logspace(-2, 2, n_features))
    mdp = mdp.replace(features=table * spread, start=np.full(150, 1 / 150))
    theta = 0.5 * rng.normal(size=n_features) / spread
    return mdp, drawn(mdp, theta, 800, seed, length=50)


@pytest.mark.parametrize("seed", [0, 1])
def test_many_correlated_features_of_all_sizes_converge(seed):
    mdp, expert = correlated(seed)
    model = MaxEntIRL(theta_max=None, max_iter=500).fit(mdp, expert)
    assert model.converged_


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_converged_means_that_no_weight_would_move_by_more_than_tol(kind, tol):
    for seed in range(3):
        mdp, expert, arguments = case(kind, seed)
        found = MaxEntIRL(theta_max=None, tol=tol, **arguments).fit(mdp, expert)
        best = MaxEntIRL(theta_max=None, tol=1e-9, max_iter=2000, theta_init=found.theta_, **arguments)
        best.fit(mdp, expert)
        unit = np.maximum(np.abs(found.theta_), 1.0 / feature_spread(mdp))
        assert found.converged_
        assert (np.abs(best.theta_ - found.theta_) <= 1.1 * tol * unit + 1e-9 * unit).all()


@pytest.mark.parametrize("kind", ["finite", "steps", "noncausal", "endless"])
@pytest.mark.parametrize("ridge", [1e-3, 1.0])
def test_a_penalty_in_the_users_units_does_not_keep_the_search_from_its_end(kind, ridge):
    for seed in range(3):
        mdp, expert, arguments = case(kind, seed)
        factor = 10.0 ** generator(seed).permutation([-9, 0, 9])[: mdp.n_features]
        model = MaxEntIRL(ridge=ridge, theta_max=None, **arguments).fit(in_other_units(mdp, factor), expert)
        assert model.converged_


# ------------------------------------------------------------ the spread


def test_the_spread_is_the_standard_deviation_and_the_size_of_what_does_not_vary():
    table = np.column_stack([np.arange(6.0), np.full(6, -3.0), np.zeros(6), 1e6 + 1e-6 * np.arange(6.0)])
    expected = [np.arange(6.0).std(), 3.0, 1.0, 1e6]
    assert_allclose(spread_of(table), expected, rtol=1e-6)
    assert_allclose(spread_of(sp.csr_array(table)), expected, rtol=1e-6)


@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_the_spread_neither_over_nor_underflows(size):
    assert_allclose(spread_of(size * np.arange(5.0)[:, None]), size * np.arange(5.0).std(), rtol=1e-12)


def test_moves_that_are_not_allowed_do_not_count_for_the_spread():
    features = np.zeros((2, 2, 1))
    features[0] = [[1.0], [3.0]]
    features[1] = [[1e9], [1e9]]
    transitions = np.zeros((2, 2, 2))
    transitions[0, :, 1] = 1.0
    mdp = MDP(transitions, features, discount=1.0, terminal=[False, True])
    assert_allclose(feature_spread(mdp), 1.0)


# ------------------------------------------------------------ values no unit should have


@pytest.mark.parametrize(("value", "said"), [(1e200, "reaches"), (1e-200, "reaches only")])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_values_that_cannot_be_computed_with_are_refused_by_name(value, said, as_sparse):
    mdp, _, _ = case("finite")
    table = np.array(mdp.features)
    table[:, 1] *= value
    features = sp.csr_array(table) if as_sparse else table
    with pytest.raises(ValueError, match=rf"feature 'length' {said} \d"):
        mdp.replace(features=features, feature_names=["view", "length", "noise"])


def test_costs_in_millimetres_are_no_obstacle_where_trips_end():
    mdp, expert, _ = case("roads")
    model = MaxEntIRL().fit(in_other_units(mdp, np.array([1e6, 1.0, 1.0])), expert)
    assert model.converged_
    assert_allclose(model.theta_[0] * 1e6, MaxEntIRL().fit(mdp, expert).theta_[0], rtol=1e-5)


def test_costs_too_small_for_the_box_are_named_where_trips_end():
    mdp, expert, _ = case("goals")
    mdp = named(in_other_units(mdp, np.array([1e-6, 1e-6])), ["length", "slope"])
    with pytest.raises(ValueError, match=r"theta_max=500 no step can cost enough .* on '(length|slope)', whose values"):
        MaxEntIRL().fit(mdp, expert)


# ------------------------------------------------------------ starts


@pytest.mark.parametrize("fit", [MaxEntIRL().fit, MESSI().fit, EMMaxEnt().fit])
@pytest.mark.parametrize("who", ["expert", "unlabelled"])
def test_a_start_that_excludes_a_beginning_that_was_seen_is_refused(fit, who):
    mdp, every, _ = case("finite")
    elsewhere = np.flatnonzero(every.first != 0)
    here = np.flatnonzero(every.first == 0)
    parts = {"expert": every[here], "unlabelled": every[here]} | {who: every[np.append(here, elsewhere[:2])]}
    mdp = mdp.replace(start=np.eye(5)[0], state_names=list("abcde"))
    with pytest.raises(
        ValueError, match=rf"trajectory \d+ of {who}: it begins in state '[bcde]', where start is 0 \(as do 1 other\)"
    ):
        fit(mdp, parts["expert"], parts["unlabelled"])


def test_with_goals_any_beginning_goes():
    mdp, expert, _ = case("goals")
    MaxEntIRL().fit(mdp.replace(start=np.eye(16)[0]), expert)


# ------------------------------------------------------------ a score below chance


def test_a_score_below_chance_on_the_experts_themselves_is_explained():
    mdp, expert, _ = case("endless")
    model = MaxEntIRL().fit(mdp, expert)
    assert explain_below_chance(model, expert) is None
    other = case("endless", 1)
    poor = MaxEntIRL(ridge=1e-3, objective="counts").fit(other[0], other[1])
    poor.reward_ = -5.0 * poor.reward_
    said = explain_below_chance(poor, other[1])
    assert said.startswith("on the trajectories it was fitted to, the model scores -")
    assert "counts discounted by 0.8 per step while the score is not discounted" in said
    assert "the penalty keeps" in said


def test_a_score_of_choices_below_chance_is_not_explained_by_counts_and_their_discount():
    mdp, every, _ = case("endless", 1)
    expert, others = every[:100], every[100:]
    poor = MaxEntIRL(objective="choices", unlabelled_weight=1e6, reference="unlabelled").fit(mdp, expert, others)
    plain = MaxEntIRL(objective="choices").fit(mdp, expert)
    poor.reward_ = plain.reward_ = -5.0 * plain.reward_
    said = explain_below_chance(poor, expert)
    assert "counts" not in said
    assert "likelihood of the unlabelled trajectories; the experts' actions are unlikely under the prior policy" in said
    assert "uniform policy: no better reward of these features was found" in explain_below_chance(plain, expert)


def test_a_score_that_four_decimals_do_not_tell_from_chance_is_not_below_it():
    mdp, expert, _ = case("endless", 1)
    model = MaxEntIRL().fit(mdp, expert)
    model.reward_ = -1e-6 * model.reward_
    assert model.score(expert) < uniform_score(mdp, expert)
    assert explain_below_chance(model, expert) is None
