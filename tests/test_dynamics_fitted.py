"""Rewards from recorded transitions with vectors as states: the tabular case, gradients, the methods, bad input."""

from __future__ import annotations

import warnings
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from seeds import generator, pinned, shifted
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor
from worlds import never_falls

import messirl
from messirl import MDP, MESSI, MaxEntIRL, Trajectories, feature_counts, sample, soft_policy
from messirl.dynamics import averaging_regressors, estimate_mdp
from messirl.dynamics.averaging_regressors import AveragerModel, Forest, _Leaves
from messirl.dynamics.fitted_messi import FittedMESSI
from messirl.dynamics.fitted_value_iteration import RefittedModel, RefittedObjective
from messirl.dynamics.importance_objective import ImportanceObjective, log_behaviour
from messirl.dynamics.state_features import Squares
from messirl.dynamics.transition_dataset import feature_table, read_samples, sample_counts
from messirl.io import Recording
from messirl.objective import Objective
from messirl.planning import Planner, soft_values
from messirl.similarity import RBF

S, A, D, GAMMA = 6, 2, 3, 0.8
FEATURES = generator(3).normal(size=(S, D))
END = 5
TREE = DecisionTreeRegressor(random_state=0)


def recording(states: Any, actions: Any, terminated: bool = False) -> Any:
    return SimpleNamespace(observations=np.asarray(states), actions=np.asarray(actions, int), terminated=terminated)


def table_features(states: np.ndarray) -> np.ndarray:
    return FEATURES[np.rint(states[:, 0]).astype(int)]


def quarter_mdp(seed: int = 0) -> MDP:
    """A random MDP whose probabilities are quarters; state 5 is terminal.

    Where the states on two sides of a split lead to the same place on average, a tree sees nothing to gain from telling
    them apart, and whether it does is a matter of rounding: such draws are passed over.
    """
    rng, means = generator(seed), np.zeros((S, A))
    while not all_splits_gain(means[:END]):
        p = np.zeros((S, A, S))
        for s, a in np.ndindex(S, A):
            np.add.at(p[s, a], rng.integers(0, S, 4), 0.25)
        means = p @ np.arange(S)
    return MDP(p, FEATURES, discount=GAMMA, terminal=np.arange(S) == END)


def all_splits_gain(means: np.ndarray) -> bool:
    """Whether any two rows of states that follow each other differ in the average of their means (S, A)."""
    cuts = combinations(range(len(means) + 1), 3)
    return all((np.abs(means[i:j].mean(axis=0) - means[j:k].mean(axis=0)) > 1e-6).all() for i, j, k in cuts)


def drawn(mdp: MDP, n: int = 12, length: int = 25) -> Trajectories:
    policy = soft_policy(mdp, mdp.reward(np.array([1.0, -0.5, 0.7])))
    return sample(mdp.replace(start=np.ones(S) / S), policy, n, length, random_state=shifted(1))


def as_recordings(trajectories: Trajectories) -> list[Any]:
    return [recording(t.states, t.actions, t.states[-1] == END) for t in trajectories]


def with_true_proportions(mdp: MDP, expert: Trajectories) -> Trajectories:
    """One-step trajectories that fill the expert's moves up to the true proportions."""
    seen = np.zeros((S, A, S))
    left = np.flatnonzero(expert.leaves)
    np.add.at(seen, (expert.states[left], expert.actions, expert.states[left + 1]), 1)
    p = np.asarray(mdp.transitions.todense()).reshape(S, A, S)
    missing = (4 * seen.max() * p - seen).astype(int)
    assert (missing >= 0).all()
    rows = np.repeat(np.argwhere(np.ones_like(p)), missing.ravel(), axis=0)
    return Trajectories.from_lists([[s, t] for s, _, t in rows], actions=[[a] for _, a, _ in rows])


def plane(n: int = 12, length: int = 15, seed: int = 0) -> list[Any]:
    """Walks on the unit square: action 0 drifts left, action 1 right; the right edge ends them."""
    rng = generator(seed)
    out = []
    for _ in range(n):
        x, states, actions, done = rng.random(2) * [0.5, 1.0], [], [], False
        states.append(x)
        while len(actions) < length and not done:
            a = int(rng.random() < 0.6)
            x = np.clip(x + rng.normal([0.15 * (2 * a - 1), 0.0], 0.05), 0, 1)
            done = x[0] >= 1.0
            states.append(x)
            actions.append(a)
        out.append(recording(states, actions, bool(done)))
    return out


def plane_features(states: np.ndarray) -> np.ndarray:
    return np.column_stack([states[:, 0], states[:, 1], (states[:, 0] - 0.5) ** 2])


def quiet(estimator: FittedMESSI, *data: Any) -> FittedMESSI:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="recording .* is cut after")
        return estimator.fit(*data)


# -- the tabular case ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["counts", "choices"])
@pytest.mark.parametrize("lambda0", [0.0, 2.0])
@pytest.mark.parametrize("regressor", [TREE, ExtraTreesRegressor(5, random_state=0)], ids=["tree", "forest"])
@pytest.mark.filterwarnings("ignore:trajectory .* ends after")
def test_one_leaf_a_state_and_true_proportions_give_the_known_dynamics_answer(
    regressor: Any, lambda0: float, objective: str
) -> None:
    mdp = quarter_mdp()
    expert = drawn(mdp)
    rest = with_true_proportions(mdp, expert)
    arguments: dict[str, Any] = {"similarity": RBF(1.0), "lambda0": lambda0, "theta_max": 50.0, "objective": objective}
    known = MESSI(**arguments).fit(mdp, expert, rest)
    fitted = FittedMESSI(table_features, regressor=regressor, discount=GAMMA, **arguments)
    quiet(fitted, as_recordings(expert), as_recordings(rest))
    going = np.flatnonzero(~mdp.terminal)
    assert fitted.theta_ == pytest.approx(known.theta_, abs=1e-4)
    assert fitted.objective_ == pytest.approx(known.objective_, abs=1e-9)
    assert fitted.policy(going) == pytest.approx(known.policy_[going], abs=1e-5)

    # At the same θ all is the same, so that the two maximise the same function.
    here = Objective.from_trajectories(mdp, expert, quadratic=known.quadratic_, objective=objective)
    reward, point = mdp.reward(fitted.theta_), here(fitted.theta_)
    assert fitted.objective_ == pytest.approx(point.value, abs=1e-9)
    assert fitted.feature_counts_ == pytest.approx(here.from_start(fitted.theta_, point).counts(mdp), abs=1e-9)
    assert fitted.policy(going) == pytest.approx(soft_policy(mdp, reward)[going], abs=1e-9)
    assert fitted.values(going) == pytest.approx(soft_values(mdp, reward)[going], abs=1e-9)
    assert fitted.reward(going) == pytest.approx(reward[going], rel=1e-12, abs=1e-12)
    assert abs(fitted.mdp_.transitions - mdp.transitions).max() < 1e-12


def test_choices_need_a_regressor_that_averages_and_the_models_counts() -> None:
    steps = np.linspace(0.0, 1.0, 6)[:, None]
    right = Recording(steps, np.array([1, 1, 0, 1, 1]), terminated=True)
    asked: dict[str, Any] = {"discount": 0.9, "lambda0": 0.0, "objective": "choices"}
    with pytest.raises(ValueError, match="needs a regressor that averages"):
        FittedMESSI(lambda s: s, regressor=Ridge(), **asked).fit([right, right])
    with pytest.raises(ValueError, match="leave counts='importance' out"):
        FittedMESSI(lambda s: s, counts="importance", **asked).fit([right, right])
    with pytest.raises(ValueError, match="choose 'choices' or 'counts'"):
        FittedMESSI(lambda s: s, discount=0.9, objective="both").fit([right, right])


@pytest.mark.filterwarnings("ignore:trajectory .* ends after")
def test_one_leaf_a_state_refitted_at_every_backup_gives_the_known_dynamics_answer() -> None:
    mdp = quarter_mdp()
    expert = drawn(mdp)
    samples = read_samples(as_recordings(expert), as_recordings(with_true_proportions(mdp, expert)), None)
    wanted = Objective.from_trajectories(mdp, expert)
    model = RefittedModel(TREE, samples, FEATURES, GAMMA, 500, 1e-14)
    theta = np.array([0.5, -1.0, 2.0])
    here = RefittedObjective(model, wanted.target, None)(theta)
    assert here.value == pytest.approx(wanted(theta).value, abs=1e-9)
    assert here.gradient == pytest.approx(wanted(theta).gradient, abs=1e-9)
    values, policy = model.values(mdp.reward(theta))
    assert values == pytest.approx(soft_values(mdp, mdp.reward(theta)), abs=1e-9)
    assert policy[:END] == pytest.approx(soft_policy(mdp, mdp.reward(theta))[:END], abs=1e-9)


def test_one_leaf_a_state_gives_the_estimated_dynamics_answer() -> None:
    mdp = quarter_mdp(4)
    expert = drawn(mdp, 400)
    ends = np.arange(S) == END
    estimated = estimate_mdp(expert, FEATURES, discount=GAMMA, terminal=ends, unseen="error").mdp
    assert estimated.allowed[~ends].all()
    wanted = MaxEntIRL().fit(estimated, expert)
    fitted = FittedMESSI(table_features, regressor=TREE, lambda0=0.0, discount=GAMMA)
    quiet(fitted, as_recordings(expert))
    assert abs(fitted.mdp_.transitions - estimated.transitions).max() < 1e-12
    assert fitted.theta_ == pytest.approx(wanted.theta_, abs=1e-4)
    assert fitted.objective_ == pytest.approx(wanted.objective_, abs=1e-9)
    assert fitted.score(as_recordings(expert)) == pytest.approx(wanted.score(expert), abs=1e-5)


@pytest.mark.filterwarnings("ignore:trajectory .* ends after", "ignore:recording .* is cut after")
def test_counts_are_those_of_the_house() -> None:
    mdp = quarter_mdp()
    expert = drawn(mdp, length=4)
    samples = read_samples(as_recordings(expert), None, None)
    table = feature_table(table_features, samples.points)
    assert 0 < mdp.terminal[expert.last].sum() < len(expert)
    assert sample_counts(samples, table, GAMMA, slice(None)) == pytest.approx(feature_counts(mdp, expert), abs=1e-12)


# -- the model ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "regressor",
    [
        DecisionTreeRegressor(min_samples_leaf=4, random_state=1),
        ExtraTreesRegressor(7, min_samples_leaf=3, random_state=1),
        KNeighborsRegressor(4),
        KNeighborsRegressor(4, weights="distance"),
        KNeighborsRegressor(4, weights=lambda d: np.exp(-d)),
    ],
    ids=["tree", "forest", "uniform", "distance", "callable"],
)
def test_averager_weights_are_the_regressors_own_predictions(regressor: Any) -> None:
    samples = read_samples(plane(), None, None)
    model = AveragerModel(regressor, samples)
    away = generator(5).random((20, 2))
    scaled = (samples.points - samples.points.mean(axis=0)) / samples.points.std(axis=0)
    ends = np.column_stack([scaled, samples.terminal])
    for action, (source, target) in enumerate(samples.moves()):
        fitted = clone(regressor).fit(scaled[source], ends[target])
        wanted = fitted.predict((away - samples.points.mean(axis=0)) / samples.points.std(axis=0))
        rows = model.successors(away, action)
        assert rows.min() >= 0
        assert rows.sum(axis=1) == pytest.approx(np.ones(20), abs=1e-12)
        assert rows @ ends == pytest.approx(wanted, abs=1e-9)


def test_a_tree_from_a_file_with_a_leaf_that_holds_no_sample_is_refused() -> None:
    tree = Forest(
        *(np.array(nodes) for nodes in ([1, -1, -1], [2, -1, -1], [0, -2, -2])), np.array([0.5, 0, 0]), np.zeros(1, int)
    )
    leaves = _Leaves(tree, np.zeros((2, 1)), sp.csr_array(np.eye(2)))
    assert leaves.weights(np.zeros((1, 1))).sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="holds no sample"):
        leaves.weights(np.ones((1, 1)))


def test_a_forest_grown_on_draws_still_knows_every_recorded_move() -> None:
    samples = read_samples(plane(), None, None)
    model = AveragerModel(RandomForestRegressor(3, random_state=0), samples)
    for action, (source, target) in enumerate(samples.moves()):
        rows = model.successors(samples.points[source], action)
        assert (rows[np.arange(source.size), target] > 0).all()


def finite_differences(function: Any, theta: np.ndarray) -> np.ndarray:
    step = 1e-5
    return np.array(
        [(function(theta + step * e).value - function(theta - step * e).value) / (2 * step) for e in np.eye(theta.size)]
    )


def test_gradient_of_the_default_is_that_of_its_objective() -> None:
    seen: list[Any] = []
    estimator = FittedMESSI(plane_features, discount=0.8, lambda0=3.0, theta_max=10.0, callback=seen.append)
    quiet(estimator, plane(4, seed=1), plane(12))
    first = np.array([row["objective"] for row in seen])
    assert never_falls(first)
    assert estimator.converged_
    mdp = estimator.mdp_
    objective = Objective(mdp, Planner(mdp, "causal", mdp.start), estimator.expert_counts_, np.eye(3))
    theta = np.array([0.5, -1.0, 2.0])
    assert objective(theta).gradient == pytest.approx(finite_differences(objective, theta), abs=1e-6)


@pytest.mark.parametrize("regressor", [Ridge(1.0), make_pipeline("passthrough", KNeighborsRegressor(4))])
def test_gradient_of_a_refitted_linear_smoother_is_that_of_its_objective(regressor: Any) -> None:
    samples = read_samples(plane(5), None, None)
    table = feature_table(plane_features, samples.points)
    model = RefittedModel(regressor, samples, table, 0.5, 500, 1e-13)
    objective = RefittedObjective(model, np.array([1.0, 0.5, 0.2]), np.eye(3))
    theta = np.array([0.5, -1.0, 2.0])
    assert objective(theta).gradient == pytest.approx(finite_differences(objective, theta), abs=1e-6)
    assert model.capped == 0


@pytest.mark.slow
def test_refitting_neighbours_gives_what_their_weights_give() -> None:
    data = plane(3, 8, seed=1), plane(3, 8)
    neighbours = KNeighborsRegressor(4)
    direct = FittedMESSI(plane_features, regressor=neighbours, objective="counts", discount=0.5, theta_max=20.0)
    refitted = clone(direct).set_params(regressor=make_pipeline("passthrough", neighbours), backup_tol=1e-11)
    quiet(direct, *data)
    quiet(refitted, *data)
    away = generator(5).random((20, 2))
    assert refitted.theta_ == pytest.approx(direct.theta_, abs=1e-3)
    assert refitted.policy(away) == pytest.approx(direct.policy(away), abs=1e-4)
    assert refitted.objective_ == pytest.approx(direct.objective_, abs=1e-8)


@pytest.mark.slow
def test_regressors_of_one_output_serve_too() -> None:
    boosting = GradientBoostingRegressor(n_estimators=2, random_state=0)
    estimator = FittedMESSI(plane_features, regressor=boosting, discount=0.5, max_iter=1, max_backups=5)
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        quiet(estimator, plane(3, 8))
    assert np.isfinite(estimator.theta_).all()
    assert estimator.policy([[0.3, 0.3]]).sum() == pytest.approx(1.0)


def test_zero_lambda_does_not_look_at_unlabelled_counts() -> None:
    one = FittedMESSI(plane_features, regressor=TREE, lambda0=0.0, discount=0.8)
    other = clone(one).set_params(similarity=RBF(0.001))
    data = plane(6, seed=1), plane(12)
    assert quiet(one, *data).theta_ == pytest.approx(quiet(other, *data).theta_, abs=0)


def test_the_reward_of_a_goal_is_found_and_followed() -> None:
    with pinned():  # eight walks may happen to say little about the goal
        rng = generator(0)

    def walk(chance_right: float) -> Any:
        x, states, actions = 0.2 * rng.random(), [], []
        states.append([x])
        while x < 1.0 and len(actions) < 40:
            a = int(rng.random() < chance_right)
            x = min(max(x + (0.1 if a else -0.1) + rng.normal(0, 0.01), 0.0), 1.0)
            states.append([x])
            actions.append(a)
        return recording(states, actions, x >= 1.0)

    expert, mixed = [walk(0.95) for _ in range(8)], [walk(0.5) for _ in range(30)]
    cost_and_goal = FittedMESSI(  # a width is given: walks that never get there have equal counts, and most may be such
        lambda s: np.column_stack([np.ones(len(s)), s >= 1.0]), discount=0.9, similarity=RBF(1.0)
    )
    fitted = quiet(cost_and_goal, expert, mixed)
    assert fitted.policy([[0.5]])[0, 1] > 0.8
    assert fitted.score([walk(0.95) for _ in range(40)]) > np.log(0.5) + 0.1


# -- importance weights -------------------------------------------------------------------------------------------


def test_gradient_of_importance_is_that_of_its_objective_and_the_sample_size_is_bounded() -> None:
    rng = generator(0)
    objective = ImportanceObjective(rng.normal(size=(9, 3)), -rng.random(9), np.ones(3), np.eye(3))
    theta = np.array([0.5, -1.0, 2.0])
    assert objective(theta).gradient == pytest.approx(finite_differences(objective, theta), abs=1e-6)
    assert 1.0 <= objective.effective_sample_size(theta) <= 9.0
    even = ImportanceObjective(np.zeros((9, 3)), np.zeros(9), np.ones(3), None)
    assert even.effective_sample_size(theta) == pytest.approx(9.0)


def test_importance_finds_the_counts_of_the_uniform_policy_at_zero() -> None:
    """Weights 1/b turn recordings of any behaviour into those of the policy that takes all actions alike."""
    rng = generator(0)
    walks = [recording([[0.0], [float(a)]], [a], True) for a in (rng.random(4000) < 0.8).astype(int)]
    samples = read_samples(walks, None, None)
    b = log_behaviour(LogisticRegression(), samples)
    counts = sample_counts(samples, samples.points, 0.5, slice(None))
    expected = ImportanceObjective(counts, b, np.ones(1), None)(np.zeros(1)).expected_counts
    assert expected == pytest.approx([0.25], abs=1e-3)  # γ/2: half of them get to 1


def test_importance_fits_and_says_on_how_many_recordings_it_rests() -> None:
    fitted = FittedMESSI(plane_features, counts="importance", discount=0.8, theta_max=2.0)
    quiet(fitted, plane(6, 4, seed=1), plane(60, 4))
    assert fitted.converged_
    assert 2.0 <= fitted.effective_sample_size_ <= 66.0
    assert fitted.policy([[0.3, 0.3]]).sum() == pytest.approx(1.0)


@pytest.mark.filterwarnings("ignore:FittedMESSI did not converge")  # one recording may hold nothing at all
def test_importance_on_one_recording_warns() -> None:
    fitted = FittedMESSI(plane_features, counts="importance", discount=0.8, lambda0=0.0)
    outlier = recording([[0.0, 2.0], [0.1, 2.0], [0.0, 2.0]], [1, 0], True)
    with pytest.warns(UserWarning, match=r"effective sample size .* 1\.\d\d of 14 recordings"):
        quiet(fitted, [outlier], plane(13))


def test_a_classifier_that_rules_out_what_was_done_is_an_error() -> None:
    class Sure(LogisticRegression):  # type: ignore[misc]
        def predict_proba(self, points: np.ndarray) -> np.ndarray:
            return np.tile([1.0, 0.0], (len(points), 1))

    with pytest.raises(ValueError, match="the classifier gives probability 0 to the action recorded"):
        quiet(FittedMESSI(plane_features, counts="importance", classifier=Sure(), discount=0.95), plane())


# -- using --------------------------------------------------------------------------------------------------------


def test_a_fit_repeats_clones_and_draws_actions_from_its_policy() -> None:
    estimator = FittedMESSI(plane_features, discount=0.8)
    quiet(estimator, plane(6, seed=1), plane(12))
    again = quiet(clone(estimator), plane(6, seed=1), plane(12))
    assert again.theta_ == pytest.approx(estimator.theta_, abs=0)
    state = np.array([0.4, 0.6])
    often = np.mean([estimator.act(state, seed) for seed in range(60)])
    assert often == pytest.approx(estimator.policy([state])[0, 1], abs=0.2)
    assert estimator.act(state, 7) == estimator.act(state, 7)
    assert estimator.history_.objective[-1] == pytest.approx(estimator.objective_)
    assert estimator.n_iter_ == estimator.history_.iteration[-1]
    assert estimator.termination_ == "no weight would move by more than tol"


def test_one_recording_without_unlabelled_has_nothing_to_compare_and_fits() -> None:
    one = recording([[0.0], [0.5], [0.2], [0.6], [1.0]], [1, 0, 1, 1], True)
    fitted = FittedMESSI(lambda s: s, regressor=TREE, discount=0.5, theta_max=1.0).fit([one])
    assert np.abs(fitted.theta_) <= 1.0


def test_too_few_iterations_warn_and_are_on_the_estimator() -> None:
    estimator = FittedMESSI(plane_features, discount=0.8, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 iterations were done"):
        quiet(estimator, plane())
    assert not estimator.converged_


def test_backups_cut_short_are_said() -> None:
    estimator = FittedMESSI(plane_features, regressor=Ridge(), discount=0.8, max_backups=2, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="did not converge within max_backups=2"):
        quiet(estimator, plane())
    assert not estimator.converged_


def test_short_cut_recordings_warn() -> None:
    with pytest.warns(UserWarning, match=r"is cut after \d+ states, where discount\*\*T is still"):
        FittedMESSI(plane_features, regressor=TREE, discount=0.99, lambda0=0.0, max_iter=3000).fit(
            [recording([[0.0, 0.0], [0.5, 0.1], [0.0, 0.2]], [1, 0])]
        )


# -- bad input ----------------------------------------------------------------------------------------------------

STEP = recording([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0, 1], True)


@pytest.mark.parametrize(
    ("expert", "message"),
    [
        ([], "expert is empty"),
        (STEP, "must be a list of recordings"),
        ([SimpleNamespace(observations=[[0.0]])], "recording 0 has no actions"),
        ([recording([[0.0], [1.0]], [])], "2 observations and 0 actions"),
        ([recording([[0.0]], [])], "there are no transitions"),
        ([recording([[0.0], [np.nan]], [0])], "recording 0: state 1 is not finite"),
        ([recording(np.zeros((2, 2, 2)), [0])], r"states have shape \(2, 2, 2\)"),
        ([STEP, recording([[0.0], [1.0]], [0])], "recording 1 has observations of 1 numbers"),
        ([recording([[0.0], [1.0]], [0])], "reward cannot be learned"),
        ([recording([[0.0], [1.0]], [-1])], "action -1 is not one of"),
        ([recording([[0.0], [1.0], [0.0]], [0, 2])], "action 1 is never taken"),
        ([recording([["a"], ["b"]], [0])], "must be numbers"),
    ],
)
def test_bad_recordings_are_named(expert: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        FittedMESSI(lambda s: s, discount=0.95).fit(expert)


def test_recordings_of_other_dimension_among_the_unlabelled_are_named() -> None:
    with pytest.raises(ValueError, match="unlabelled: recording 0 has observations of 1 numbers"):
        FittedMESSI(lambda s: s, discount=0.95).fit([STEP], [recording([[0.0], [1.0]], [0])])


def test_actions_that_are_not_numbers_of_actions_are_named() -> None:
    bad = SimpleNamespace(observations=np.zeros((2, 1)), actions=np.array([0.5]), terminated=False)
    with pytest.raises(TypeError, match="give one whole number per step"):
        FittedMESSI(lambda s: s, discount=0.95).fit([bad])


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (lambda s: s[:, 0], r"features\(states\) has shape \(3,\)"),
        (lambda s: s[:1], r"features\(states\) has shape \(1, 2\)"),
        (lambda s: s * np.nan, "is not finite, at state"),
        (lambda s: s.astype(str), "not numbers"),
        (3, "features must be a function"),
    ],
)
def test_features_of_the_wrong_shape_or_kind_are_named(features: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        FittedMESSI(features, discount=0.95).fit([STEP])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"counts": "both"}, "choose 'model' or 'importance'"),
        ({"discount": 1.0}, "must be below 1"),
        ({"discount": 0.0}, "discount=0.0"),
        ({"lambda0": -1.0}, "lambda0=-1.0"),
        ({"theta_max": 0.0}, "theta_max=0.0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"max_backups": 1.5}, "max_backups=1.5"),
        ({"n_actions": 3}, "action 2 is never taken"),
        ({"n_actions": 1}, "action 1 is not one of 0 … 0"),
        ({"regressor": "trees"}, "must be a scikit-learn estimator"),
        ({"regressor": KNeighborsRegressor(5)}, "action 0 is recorded 1 times, but n_neighbors=5"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        FittedMESSI(lambda s: s, **{"discount": 0.95, **arguments}).fit([STEP])


def test_a_regressor_that_predicts_nan_is_an_error() -> None:
    class Lost(LinearRegression):  # type: ignore[misc]
        def predict(self, points: np.ndarray) -> np.ndarray:
            return np.full(len(points), np.nan)

    with pytest.raises(ValueError, match="predicts a value that is not finite for action 0"):
        quiet(FittedMESSI(plane_features, regressor=Lost(), discount=0.95), plane())


def test_divergence_is_an_error_that_says_what_to_use() -> None:
    class Doubling(LinearRegression):  # type: ignore[misc]
        def predict(self, points: np.ndarray) -> np.ndarray:
            return 2.0 * super().predict(points)

    with pytest.raises(ValueError, match=r"diverges with Doubling.*use a regressor that averages"):
        quiet(FittedMESSI(plane_features, regressor=Doubling(), discount=0.95), plane())


def test_weights_of_neighbours_below_zero_are_an_error() -> None:
    with pytest.raises(ValueError, match="correct its callable"):
        quiet(
            FittedMESSI(plane_features, regressor=KNeighborsRegressor(2, weights=lambda d: d - 9.0), discount=0.95),
            plane(),
        )


def test_more_weights_than_can_be_held_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(averaging_regressors, "MAX_ENTRIES", 100)
    with pytest.raises(ValueError, match="use smaller leaves"):
        quiet(FittedMESSI(plane_features, discount=0.95), plane())


def test_use_before_fit_and_of_the_wrong_dimension_are_errors() -> None:
    estimator = FittedMESSI(plane_features, regressor=TREE, discount=0.8)
    with pytest.raises(NotFittedError, match="call fit first"):
        estimator.policy([[0.0, 0.0]])
    with pytest.raises(NotFittedError, match="call fit first"):
        estimator.reward([[0.0, 0.0]])
    quiet(estimator, plane())
    with pytest.raises(ValueError, match=r"states have shape \(1, 3\), give \(n, 2\)"):
        estimator.policy([[0.0, 0.0, 0.0]])
    with pytest.raises(ValueError, match="states have shape"):
        estimator.act([[0.0, 0.0], [1.0, 1.0]])
    with pytest.raises(ValueError, match="no step to score"):
        estimator.score([recording([[0.0, 0.0]], [])])
    with pytest.raises(ValueError, match="actions must be among 0 … 1"):
        estimator.score([recording([[0.0, 0.0], [0.0, 0.1]], [2])])


# -- saving -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "regressor",
    [None, TREE, RandomForestRegressor(5, random_state=0), KNeighborsRegressor(3, weights="distance")],
    ids=lambda r: type(r).__name__,
)
@pytest.mark.parametrize("features", [Squares.fit(np.random.default_rng(0).normal(size=(9, 2))), plane_features])
def test_a_fit_comes_back_from_its_file(regressor: Any, features: Any, tmp_path: Any) -> None:
    fitted = quiet(FittedMESSI(features, regressor=regressor, discount=0.8, lambda0=3.0), plane(6, seed=1), plane(12))
    fitted.save(tmp_path / "model.npz")
    again = messirl.load(tmp_path / "model.npz")
    at = np.random.default_rng(1).normal(size=(40, 2))
    assert_array_equal(again.predict_proba(at), fitted.predict_proba(at))
    assert again.score(plane(3)) == fitted.score(plane(3))
    assert again.act(at[0], 3) == fitted.act(at[0], 3)
    assert_array_equal(again.theta_, fitted.theta_)
    if features is plane_features:
        with pytest.raises(ValueError, match=r"the features plane_features was not saved .*: set_params\(features="):
            again.values(at)
        again.set_params(features=plane_features)
    assert_array_equal(again.values(at), fitted.values(at))
    assert_allclose(quiet(again, plane(6, seed=1), plane(12)).theta_, fitted.theta_)


@pytest.mark.parametrize("regressor", [Ridge(), KNeighborsRegressor(3, weights=lambda d: 1.0 / (1.0 + d))])
def test_what_cannot_be_written_as_numbers_is_refused_with_what_can(regressor: Any, tmp_path: Any) -> None:
    fitted = quiet(FittedMESSI(plane_features, regressor=regressor, discount=0.8, max_iter=2, tol=1e3), plane(3, 8))
    with pytest.raises(ValueError, match="cannot be saved as plain numbers: use a tree, a forest or nearest"):
        fitted.save(tmp_path / "model.npz")
    assert not (tmp_path / "model.npz").exists()


def test_damaged_samples_are_refused(tmp_path: Any) -> None:
    quiet(FittedMESSI(plane_features, regressor=TREE, discount=0.8), plane()).save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as archive:
        parts = {name: archive[name] for name in archive.files}
    for name in ("samples_points", "samples_states", "forest_0_left", "sample_values_"):
        np.savez(tmp_path / "part.npz", **{k: v for k, v in parts.items() if k != name})
        with pytest.raises(ValueError, match=r"part\.npz is a damaged messirl model"):
            messirl.load(tmp_path / "part.npz")
