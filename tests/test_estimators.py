"""What all estimators share: scikit-learn's manners, arguments, what a fit leaves behind and what it is good for."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import KINDS, THETA, problem
from seeds import shifted
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from worlds import ROUNDING, drawn, maze, never_falls, ring, to_rounding, without_actions

from messirl import MDP, MESSI, EMMaxEnt, MaxEntIRL, Trajectories, feature_counts, soft_policy, state_visitation
from messirl.data.validation import trajectory_faults
from messirl.objective import Objective
from messirl.similarity import RBF, Precomputed

ALL = [MaxEntIRL, MESSI, EMMaxEnt]
STEPS = {"step_size": 0.02}  # small enough for fixed steps to stay where values are finite
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
every = pytest.mark.parametrize("kind", KINDS)
methods = pytest.mark.parametrize("method", ALL)


def optimum(kind, method=MaxEntIRL, **arguments):
    """A converged fit; a little ridge keeps θ inside the box."""
    return method(**({"ridge": 0.01} if method is MaxEntIRL else {}), max_iter=500, **arguments).fit(*problem(kind)[:2])


def left_over(model, expert, ridge):
    """What a gradient may be where no weight would move by more than tol: as much as the objective bends on that way.

    Ten times that, since a search knows the bend from its steps alone.
    """
    mdp, size = model.mdp_, np.maximum(1.0, np.abs(model.theta_))
    bend = -Objective.from_trajectories(mdp, expert, objective=model.likelihood_).hessian(model.theta_)
    return 10.0 * model.tol * (np.abs(bend + ridge * np.eye(mdp.n_features)) @ size).max()


# ------------------------------------------------------------ scikit-learn's manners


@methods
def test_constructors_store_their_arguments_untouched(method):
    for name in inspect.signature(method).parameters:
        anything = object()
        assert getattr(method(**{name: anything}), name) is anything
        assert method(**{name: anything}).get_params(deep=False)[name] is anything


@quiet
@methods
def test_a_clone_has_the_parameters_and_not_the_fit(method):
    model = method(theta_max=7.0, max_iter=3, theta_init=np.ones(3), **STEPS).fit(*problem("finite"))
    twin = clone(model)
    assert not hasattr(twin, "theta_")
    assert {k: v for k, v in twin.get_params().items() if k != "theta_init"} == {
        k: v for k, v in model.get_params().items() if k != "theta_init"
    }
    assert_array_equal(twin.theta_init, np.ones(3))


def test_a_clone_keeps_the_similarity():
    assert clone(MESSI(RBF(3.0, standardise=True))).similarity == RBF(3.0, standardise=True)


@methods
def test_set_params_sets_and_refuses_what_does_not_exist(method):
    assert method().set_params(max_iter=7).max_iter == 7
    with pytest.raises(ValueError, match="Invalid parameter 'gamma' for estimator"):
        method().set_params(gamma=0.5)


def test_repr_shows_what_differs_from_the_defaults():
    assert repr(MaxEntIRL(ridge=0.5)) == "MaxEntIRL(ridge=0.5)"
    assert repr(EMMaxEnt(steps_per_round=5)) == "EMMaxEnt(steps_per_round=5)"
    assert "RBF(sigma=5.0" in repr(MESSI(RBF(5.0), lambda0=1.0))


@methods
@pytest.mark.parametrize(
    "use",
    [
        lambda model: model.score(problem("finite").expert),
        lambda model: model.predict_proba([0], step=0),
        lambda model: model.sample(1),
        lambda model: model.save("nowhere"),
    ],
    ids=["score", "predict_proba", "sample", "save"],
)
def test_a_model_that_is_not_fitted_says_so(method, use):
    with pytest.raises(NotFittedError, match=f"this {method.__name__} is not fitted yet: call fit first"):
        use(method())


@quiet
@methods
def test_fit_returns_the_model_and_leaves_its_parameters_alone(method):
    model = method(max_iter=4, callback=lambda state: None, **STEPS)
    before = model.get_params(deep=False)
    assert model.fit(*problem("finite")) is model
    assert all(model.get_params(deep=False)[name] is value for name, value in before.items())


@quiet
@methods
def test_a_second_fit_forgets_the_first(method):
    model = method(max_iter=20, **STEPS)
    once = model.fit(*problem("finite")).theta_
    model.fit(*problem("endless"))
    assert_array_equal(model.fit(*problem("finite")).theta_, once)


@quiet
@methods
@pytest.mark.parametrize("solver", ["lbfgs", "paper"])
def test_warm_start_begins_where_the_last_fit_ended(method, solver):
    model = method(max_iter=3, warm_start=True, solver=solver, **STEPS).fit(*problem("finite"))
    theta = model.theta_
    assert np.abs(theta).max() > 0
    model.fit(*problem("finite"))
    assert_array_equal(model.theta_init_, theta)
    assert_allclose(model.history_.theta_norm[0], np.abs(theta).max(), rtol=ROUNDING)
    cold = method(max_iter=3, solver=solver, **STEPS).fit(*problem("finite")).fit(*problem("finite"))
    assert_array_equal(cold.theta_init_, np.zeros(3))


@quiet
def test_warm_starts_of_the_paper_add_up_to_one_long_run():
    model = MaxEntIRL(solver="paper", max_iter=5, warm_start=True, **STEPS)
    for _ in range(4):
        model.fit(*problem("finite"))
    long = MaxEntIRL(solver="paper", max_iter=20, **STEPS).fit(*problem("finite"))
    assert_allclose(model.theta_, long.theta_, rtol=1e-12)


# ------------------------------------------------------------ sample_weight


@every
def test_a_weight_of_two_is_a_trajectory_seen_twice(kind):
    mdp, expert, _ = problem(kind)
    arguments = {"ridge": 0.05, "max_iter": 500, "tol": 1e-7}
    weights = np.ones(len(expert))
    weights[[0, 3]] = [2.0, 3.0]
    weighted = MaxEntIRL(**arguments).fit(mdp, expert, sample_weight=weights)
    repeated = MaxEntIRL(**arguments).fit(mdp, expert + expert[[0, 3, 3]])
    assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-10)
    assert_allclose(weighted.theta_, repeated.theta_, rtol=1e-4, atol=1e-6)
    assert_allclose(weighted.start_, repeated.start_, rtol=1e-12)


def test_a_weight_of_zero_leaves_a_trajectory_out_and_only_ratios_matter():
    mdp, expert, _ = problem("endless")
    arguments = {"ridge": 0.05, "max_iter": 500, "tol": 1e-7}
    weighted = MaxEntIRL(**arguments).fit(mdp, expert, sample_weight=5.0 * (np.arange(30) % 3 > 0))
    left = MaxEntIRL(**arguments).fit(mdp, expert[np.arange(30) % 3 > 0])
    assert_allclose(weighted.theta_, left.theta_, rtol=1e-4)


def test_in_messi_weights_are_on_the_likelihood_and_not_on_the_penalty():
    mdp, expert, unlabelled = problem("finite")
    weights = np.arange(1.0, 31.0)
    model = MESSI(RBF(1.0), objective="counts", lambda0=100.0, max_iter=500)
    plain = clone(model).fit(mdp, expert, unlabelled)
    weighted = model.fit(mdp, expert, unlabelled, sample_weight=weights)
    assert_array_equal(weighted.penalty_matrix_, plain.penalty_matrix_)
    pull = 100.0 / 500.0 * plain.penalty_matrix_ @ weighted.theta_
    target = np.average(feature_counts(mdp, expert), axis=0, weights=weights)
    assert_allclose(weighted.feature_counts_ + pull, target, atol=1e-5)


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ([1.0, 1.0], "give one weight for each of the 30 expert trajectories"),
        ([1] * 29 + [-1], "finite, not negative and not all zero"),
        ([1] * 29 + [np.nan], "finite, not negative and not all zero"),
        ([0] * 30, "finite, not negative and not all zero"),
    ],
)
def test_weights_that_make_no_sense_are_refused(weights, says):
    with pytest.raises(ValueError, match=f"sample_weight .*{says}"):
        MaxEntIRL().fit(*problem("finite")[:2], sample_weight=weights)


@pytest.mark.parametrize("wrong", [["a"] * 30, [1j] * 30, {"a": 1}], ids=["text", "complex", "dict"])
def test_weights_and_starts_that_are_no_numbers_are_refused_by_name(wrong):
    with pytest.raises(TypeError, match="sample_weight must be numbers, not"):
        MaxEntIRL().fit(*problem("finite")[:2], sample_weight=wrong)
    with pytest.raises(TypeError, match="theta_init must be numbers, not"):
        MaxEntIRL(theta_init=wrong).fit(*problem("finite")[:2])


# ------------------------------------------------------------ callback


@quiet
@methods
@pytest.mark.parametrize("solver", ["lbfgs", "paper"])
def test_the_callback_sees_every_iteration_as_the_history_tells_it(method, solver):
    seen = []
    model = method(max_iter=7, solver=solver, callback=seen.append, **STEPS).fit(*problem("finite"))
    assert [state["iteration"] for state in seen] == model.history_.iteration.tolist() == list(range(model.n_iter_ + 1))
    assert model.n_iter_ == 7 if solver == "paper" else 1 <= model.n_iter_ <= 7
    for name in ("objective", "theta_norm", "gradient_norm"):
        assert_array_equal([state[name] for state in seen], model.history_[name])
    assert_array_equal(seen[-1]["theta"], model.theta_)


@quiet
@pytest.mark.parametrize(
    "model",
    [
        MaxEntIRL(),
        MaxEntIRL(solver="paper", **STEPS),
        MESSI(),
        *(EMMaxEnt(steps_per_round=eta, **STEPS) for eta in (1, 2, 3, 50)),
        EMMaxEnt(solver="lbfgs", steps_per_round=2),
    ],
    ids=repr,
)
def test_a_callback_that_returns_true_stops_the_fit(model):
    model = clone(model).set_params(max_iter=30, callback=lambda state: state["iteration"] >= 4)
    model.fit(*problem("finite"))
    assert model.n_iter_ == 4
    assert model.history_.iteration[-1] == 4
    assert model.termination_ == "the callback asked to stop"
    assert not model.converged_


@quiet
def test_a_callback_may_answer_in_numpys_bool():
    model = MaxEntIRL(callback=lambda state: np.abs(state["theta"]).max() > 0.0)
    assert model.fit(*problem("finite")).n_iter_ == 1


@quiet
def test_a_callback_cannot_reach_into_the_fit():
    def meddle(state):
        state["theta"][:] = 1e6
        state["objective"] = np.nan

    meddled = MaxEntIRL(max_iter=20, callback=meddle).fit(*problem("finite"))
    assert_array_equal(meddled.theta_, MaxEntIRL(max_iter=20).fit(*problem("finite")).theta_)


@methods
def test_an_error_in_the_callback_comes_through(method):
    def fail(state):
        raise RuntimeError("enough")

    model = method(callback=fail)
    with pytest.raises(RuntimeError, match="enough"):
        model.fit(*problem("finite"))
    assert model.callback is fail


# ------------------------------------------------------------ theta_init


@methods
@pytest.mark.parametrize("kind", ["episodic", "goals"])
def test_a_start_without_finite_values_is_an_error_if_it_was_given(method, kind):
    with pytest.raises(
        ValueError, match=r"at theta_init the model has no finite value.*make the weights of .* more negative"
    ):
        method(theta_init=np.zeros(2)).fit(*problem(kind))


@quiet
@methods
@pytest.mark.parametrize("kind", ["episodic", "goals"])
def test_a_feasible_start_is_found_where_zero_is_none(method, kind):
    model = method(max_iter=5, **STEPS).fit(*problem(kind))
    assert np.abs(model.theta_init_).max() > 0
    assert np.isfinite(model.history_.objective).all()


@to_rounding
def test_a_feasible_start_leads_to_the_same_optimum_as_any_other():
    arguments = {"max_iter": 500, "tol": 1e-9, "ridge": 0.1}  # without a ridge the optimum of some draws is far out
    found = MaxEntIRL(**arguments).fit(*problem("episodic")[:2])
    given = MaxEntIRL(**arguments, theta_init=[-6.0, 1.0]).fit(*problem("episodic")[:2])
    assert_allclose(found.theta_, given.theta_, rtol=1e-6)


def test_zero_is_the_start_where_it_is_feasible():
    assert_array_equal(optimum("finite").theta_init_, np.zeros(3))


def test_features_that_cannot_make_steps_costly_are_refused():
    mdp = maze(discount=1.0, terminal=np.arange(9) == 8, features=np.eye(9)[:, [8]])
    with pytest.raises(ValueError, match="no theta was found for which the model has finite values"):
        MaxEntIRL().fit(mdp, problem("episodic").expert)


def test_a_box_too_small_for_any_finite_value_is_refused():
    with pytest.raises(
        ValueError, match=r"theta_max=0.1 no step can cost enough .* takes a weight of -\S+ on 1, .* raise theta_max"
    ):
        MaxEntIRL(theta_max=0.1).fit(*problem("episodic")[:2])


@quiet
def test_a_random_start_follows_the_seed_and_stays_in_the_box():
    start = [
        MaxEntIRL(theta_init="random", random_state=seed, theta_max=0.5, max_iter=0)
        .fit(*problem("finite")[:2])
        .theta_init_
        for seed in (3, 3, 4)
    ]
    assert_array_equal(start[0], start[1])
    assert not np.array_equal(start[0], start[2])
    assert np.abs(start).max() <= 0.5


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([1.0, 2.0], "theta_init must be 3 finite numbers, one per feature"),
        ([1.0, np.nan, 2.0], "theta_init must be 3 finite numbers, one per feature"),
        (np.zeros((3, 1)), "theta_init must be 3 finite numbers, one per feature"),
        ("ones", "theta_init='ones': give an array, 'random' or None for zeros"),
    ],
    ids=str,
)
def test_a_start_that_makes_no_sense_is_refused(value, says):
    with pytest.raises(ValueError, match=says):
        MaxEntIRL(theta_init=value).fit(*problem("finite")[:2])


# ------------------------------------------------------------ arguments


@methods
@pytest.mark.parametrize(
    ("name", "value", "error", "says"),
    [
        ("theta_max", -1.0, ValueError, "theta_max=-1.0: it must be finite and > 0"),
        ("theta_max", 0.0, ValueError, "theta_max=0.0: it must be finite and > 0"),
        ("theta_max", np.nan, ValueError, "theta_max=nan: it must be finite and > 0"),
        ("theta_max", "5", TypeError, "theta_max='5': it must be a number"),
        ("step_size", 0.0, ValueError, "step_size=0.0: it must be finite and > 0"),
        ("step_size", -1, ValueError, "step_size=-1: it must be finite and > 0"),
        ("tol", -1e-6, ValueError, "tol=-1e-06: it must be finite and >= 0"),
        ("max_iter", -1, ValueError, "max_iter=-1: it must be a whole number >= 0"),
        ("max_iter", 10.0, TypeError, "max_iter=10.0: it must be a whole number"),
        ("entropy", "soft", ValueError, "entropy='soft': choose 'causal' or 'noncausal'"),
        ("solver", "adam", ValueError, "solver='adam': choose 'lbfgs'"),
        ("callback", 3, TypeError, "callback must be callable"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_an_argument_out_of_its_range_is_refused_by_fit(method, name, value, error, says):
    with pytest.raises(error, match=says):
        method(**{name: value}).fit(*problem("finite"))


@pytest.mark.parametrize(
    ("model", "error", "says"),
    [
        (MESSI(lambda0=-0.1), ValueError, "lambda0=-0.1: it must be finite and >= 0"),
        (MESSI(lambda0=np.inf), ValueError, "lambda0=inf: it must be finite and >= 0"),
        (MESSI(lambda0=None), TypeError, "lambda0=None: it must be a number"),
        (MESSI(theta_max=None), TypeError, "theta_max=None: it must be a number"),
        (MESSI(5), TypeError, "similarity must be RBF, Exponential, CompleteGraph, Precomputed or a callable"),
        (MESSI(RBF), TypeError, "similarity is the class RBF: give an instance"),
        (MaxEntIRL(ridge=-1.0), ValueError, "ridge=-1.0: it must be finite and >= 0"),
        (MaxEntIRL(ridge="1"), TypeError, "ridge='1': it must be a number"),
    ],
    ids=repr,
)
def test_an_argument_of_one_estimator_out_of_its_range_is_refused_by_fit(model, error, says):
    with pytest.raises(error, match=says):
        model.fit(*problem("finite"))


@methods
def test_empty_sets_are_refused(method):
    mdp, expert, unlabelled = problem("finite")
    with pytest.raises(ValueError, match="expert is empty: at least one trajectory is needed"):
        method().fit(mdp, expert[:0], unlabelled)
    with pytest.raises(ValueError, match="unlabelled is empty: pass None to fit without"):
        method().fit(mdp, expert, unlabelled[:0])


@methods
def test_other_types_are_refused(method):
    mdp, expert, _ = problem("finite")
    with pytest.raises(TypeError, match="expected an MDP, not ndarray"):
        method().fit(np.eye(3), expert)
    with pytest.raises(TypeError, match="expert must be Trajectories, not dict"):
        method().fit(mdp, {0: [0, 1, 2, 3, 4, 0]})


@methods
def test_trajectories_that_do_not_fit_are_named_with_their_set(method):
    mdp, expert, _ = problem("finite")
    far = Trajectories.from_lists([[0, 1, 2, 3, 9, 0]])
    with pytest.raises(ValueError, match="expert: trajectory 0, step 4: state 9 is not one of 0 … 4"):
        method().fit(mdp, far)
    with pytest.raises(ValueError, match="unlabelled: trajectory 0, step 4: state 9 is not one of 0 … 4"):
        method().fit(mdp, expert, far)


@methods
def test_goals_in_one_set_only_are_refused(method):
    mdp = maze(discount=0.3)
    free = Trajectories.from_lists([[0, 1, 2]])
    aimed = Trajectories.from_lists([[0, 1, 2]], goals=[2])
    with pytest.raises(ValueError, match="expert and unlabelled must both have goals, or neither"):
        method().fit(mdp, aimed, free)


@methods
def test_noncausal_entropy_needs_a_horizon_and_no_goals(method):
    with pytest.raises(ValueError, match="entropy='noncausal' needs a horizon"):
        method(entropy="noncausal").fit(*problem("endless"))
    with pytest.raises(ValueError, match=r"entropy='noncausal' (does not allow goals|needs a horizon)"):
        method(entropy="noncausal").fit(*problem("goals"))


@methods
def test_discount_one_with_nothing_that_ends_is_refused(method):
    with pytest.raises(ValueError, match=r"not terminal: with discount=1 and no horizon|no trajectory ends"):
        method().fit(ring(discount=1.0), Trajectories.from_lists([[0, 1]]))


@pytest.mark.parametrize("actions", [[[0, 0]], None], ids=["actions", "states"])
@pytest.mark.parametrize("way", ["endless", "horizon", "goal"])
def test_an_expert_that_risks_a_dead_end_is_refused(way, actions):
    # Action 0 leads from state 0 to 1 or into dead end 3; action 1 leads to 2, which stays.
    transitions = np.zeros((4, 2, 4))
    transitions[0, 0, [1, 3]] = 0.5
    transitions[0, 1, 2] = transitions[1, 0, 2] = transitions[2, 0, 2] = 1.0
    mdp = MDP(transitions, np.eye(4)[:, 1:3], discount=0.01, horizon=3 if way == "horizon" else None)
    expert = Trajectories.from_lists([[0, 1, 2]], actions=actions, goals=[2] if way == "goal" else None)
    with pytest.raises(ValueError, match=r"trajectory 0 of expert, step 0: .*dead end"):
        MaxEntIRL().fit(mdp, expert)


# ------------------------------------------------------------ what a fit leaves behind


@every
def test_reward_is_features_times_theta(kind):
    model = optimum(kind)
    mdp = problem(kind).mdp
    assert_allclose(model.reward_.ravel(), mdp.feature_rows @ model.theta_, rtol=ROUNDING, atol=ROUNDING)
    assert model.reward_.shape == ((5, 3) if mdp.state_action else (mdp.n_states,))


@pytest.mark.parametrize(
    ("kind", "shape"), [("finite", (5, 5, 3)), ("steps", (5, 5, 3)), ("endless", (5, 3)), ("episodic", (9, 4))]
)
def test_the_policy_has_one_row_a_state_and_with_a_horizon_one_table_a_step(kind, shape):
    model = optimum(kind)
    assert model.policy_.shape == shape
    moving = ~problem(kind).mdp.terminal
    assert_allclose(model.policy_.sum(axis=-1)[..., moving], 1.0, rtol=1e-12)
    assert_array_equal(model.policy_[..., ~moving, :], 0.0)


def test_with_goals_the_policy_maps_a_goal_to_its_policy():
    model = optimum("goals")
    assert isinstance(model.policy_, Mapping)
    assert list(model.policy_) == [2, 8]
    assert len(model.policy_) == 2
    assert model.policy_[8].shape == (9, 4)
    assert_array_equal(model.policy_[8][8], 0.0)
    assert model.policy_[5].shape == (9, 4), "any state may be asked for"
    assert 5 in model.policy_
    assert 9 not in model.policy_
    with pytest.raises(KeyError, match="9"):
        model.policy_[9]


@pytest.mark.parametrize("kind", ["finite", "endless", "episodic", "steps"])
def test_visitation_is_that_of_the_policy(kind):
    model = optimum(kind)
    expected = state_visitation(problem(kind).mdp, model.policy_, start=model.start_)
    assert_allclose(model.visitation_, expected, rtol=1e-9, atol=1e-12)


def test_with_goals_visitation_is_the_mean_over_the_experts_trips():
    mdp, expert, _ = problem("goals")
    model = optimum("goals")
    trips = [state_visitation(mdp, model.policy_[row.goal], row.goal, start=np.eye(9)[row.states[0]]) for row in expert]
    assert_allclose(model.visitation_, np.mean(trips, axis=0), rtol=1e-9)


@every
def test_at_the_optimum_expected_counts_match_the_experts(kind):
    mdp, expert, _ = problem(kind)
    wanted = feature_counts(mdp, expert).mean(axis=0)
    # A little ridge: the counts of some draws are out of reach of every theta, by luck of the dynamics.
    model = MaxEntIRL(objective="counts", ridge=1e-3, max_iter=500, theta_max=None).fit(mdp, expert)
    assert model.converged_
    assert_allclose(
        model.feature_counts_ + 1e-3 * model.theta_, wanted, rtol=ROUNDING, atol=left_over(model, expert, 1e-3)
    )
    if not mdp.state_action:
        assert_allclose(model.feature_counts_, model.visitation_ @ mdp.features, rtol=1e-12)


@every
def test_the_objective_is_that_of_theta(kind):
    mdp, expert, _ = problem(kind)
    model = optimum(kind)
    there = Objective.from_trajectories(
        mdp, expert, quadratic=0.01 * np.eye(mdp.n_features), objective=model.likelihood_
    )(model.theta_)
    assert_allclose(model.objective_, there.value, rtol=1e-12)
    assert model.objective_ == model.history_.objective[-1]
    assert_allclose(model.gradient_norm_, np.abs(there.gradient).max(), rtol=1e-3, atol=1e-9)


def test_a_start_that_is_not_given_is_the_experts_own():
    mdp, expert, _ = problem("finite")
    model = MaxEntIRL(ridge=0.1).fit(mdp.replace(start=None), expert)
    assert_allclose(model.start_, np.bincount(expert.first, minlength=5) / len(expert), rtol=ROUNDING)
    assert_allclose(model.visitation_, state_visitation(mdp, model.policy_, start=model.start_), rtol=1e-12)


@quiet
@pytest.mark.parametrize("solver", ["lbfgs", "paper"])
def test_theta_stays_in_the_box(solver):
    model = MaxEntIRL(theta_max=0.25, solver=solver).fit(*problem("finite")[:2])
    assert np.abs(model.theta_).max() <= 0.25 * (1 + ROUNDING)
    assert model.history_.theta_norm.max() >= 0.25 * (1 - ROUNDING), "the optimum is outside"


# ------------------------------------------------------------ convergence


@methods
def test_a_fit_that_does_not_converge_warns_and_says_why(method):
    with pytest.warns(ConvergenceWarning, match=f"{method.__name__} did not converge: .* projected gradient of"):
        model = method(max_iter=2, **STEPS).fit(*problem("finite"))
    assert not model.converged_
    assert "2" in model.termination_
    assert model.gradient_norm_ > 1e-6
    assert model.n_iter_ == 2


@every
def test_a_fit_that_converges_does_not_warn_and_says_so(kind):
    model = optimum(kind)
    assert model.converged_
    assert model.termination_ == "no weight would move by more than tol"
    assert model.gradient_norm_ <= left_over(model, problem(kind).expert, 0.01)
    assert never_falls(model.history_.objective)


@methods
def test_no_iterations_leave_theta_at_its_start(method):
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        model = method(max_iter=0, theta_init=THETA).fit(*problem("finite"))
    assert_array_equal(model.theta_, THETA)
    assert model.n_iter_ == 0
    assert len(model.history_) == 1


# ------------------------------------------------------------ score


def by_hand(mdp, policy, trajectories):
    """Σ log-probability / Σ steps, one step after the other."""
    moves = mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)
    total, steps = 0.0, 0
    for row in trajectories:
        table = policy if row.goal is None else policy[row.goal]
        for t in range(len(row.states) - 1):
            here = (table[t] if mdp.horizon is not None else table)[row.states[t]]
            if row.actions is None:
                total += np.log(here @ moves[row.states[t], :, row.states[t + 1]])
            else:
                total += np.log(here[row.actions[t]])
            steps += 1
    return total / steps


@every
@pytest.mark.parametrize("actions", [True, False])
def test_score_is_the_mean_log_probability_of_a_step(kind, actions):
    mdp, _, unlabelled = problem(kind)
    some = unlabelled if actions else without_actions(unlabelled)
    model = optimum(kind)
    assert_allclose(model.score(some), by_hand(mdp, model.policy_, some), rtol=1e-12)


def test_score_pools_steps_and_not_trajectories():
    some = problem("episodic").unlabelled
    model = optimum("episodic")
    one_by_one = np.array([model.score(some[[i]]) for i in range(len(some)) if some.lengths[i] > 1])
    steps = some.lengths[some.lengths > 1] - 1
    assert_allclose(model.score(some), np.average(one_by_one, weights=steps), rtol=1e-12)


def test_the_experts_score_is_higher_than_that_of_others():
    model = optimum("finite")
    assert model.score(problem("finite").expert) > model.score(problem("finite").unlabelled)


def test_an_action_that_may_lead_into_a_dead_end_scores_minus_infinity():
    # In state 0 action 1 leads to the end or into dead end 2; actions 0 and 2 lead to the end by different features.
    transitions = np.zeros((3, 3, 3))
    transitions[0, [0, 2], 1] = 1.0
    transitions[0, 1, [1, 2]] = 0.5
    features = np.zeros((3, 3, 1))
    features[0, 2] = 1.0
    mdp = MDP(transitions, features, discount=1.0, terminal=[False, True, False])
    model = MaxEntIRL(ridge=1.0).fit(mdp, Trajectories.from_lists([[0, 1]], actions=[[0]]))
    assert_array_equal(model.policy_[0] > 0, [True, False, True])
    assert model.score(Trajectories.from_lists([[0, 1]], actions=[[1]])) == -np.inf


def test_what_cannot_be_scored_is_refused():
    model, ends = optimum("episodic"), problem("goals").expert
    with pytest.raises(ValueError, match="these trajectories make no step: there is nothing to score"):
        model.score(Trajectories.from_lists([[8], [8]]))
    with pytest.raises(ValueError, match="these trajectories make no step: there is nothing to score"):
        model.score(Trajectories.from_lists([]))
    with pytest.raises(ValueError, match="trajectory 0, step 1: the transition from state 1 to 5 has probability 0"):
        model.score(Trajectories.from_lists([[0, 1, 5, 8]]))
    with pytest.raises(ValueError, match="the trajectories have goals"):
        model.score(ends[ends.goals == 8])
    with pytest.raises(ValueError, match="the fit had goals, and the trajectories have none"):
        optimum("goals").score(problem("episodic").expert)


# ------------------------------------------------------------ predict_proba


def test_probabilities_are_rows_of_the_policy():
    stationary, finite, aimed = optimum("endless"), optimum("finite"), optimum("goals")
    at = [3, 0, 3]
    assert_array_equal(stationary.predict_proba(at), stationary.policy_[at])
    assert_array_equal(finite.predict_proba(at, step=4), finite.policy_[4][at])
    assert_array_equal(aimed.predict_proba(at, goal=2), aimed.policy_[2][at])
    assert_array_equal(aimed.predict_proba(at, goal=np.int64(7)), aimed.policy_[7][at])
    assert stationary.predict_proba(np.zeros(0, dtype=int)).shape == (0, 3)


def test_probabilities_are_the_callers_own():
    model = optimum("endless")
    before = model.policy_.copy()
    model.predict_proba(np.arange(5))[:] = 0.0
    assert_array_equal(model.policy_, before)


@pytest.mark.parametrize(
    ("kind", "arguments", "error", "says"),
    [
        ("finite", {}, ValueError, "this fit has a horizon: pass step=, from 0 to 4"),
        ("finite", {"step": 5}, ValueError, "step 5 is not one of 0 … 4"),
        ("finite", {"step": -1}, ValueError, "step -1 is not one of 0 … 4"),
        ("finite", {"step": 1.5}, TypeError, "step"),
        ("finite", {"step": 0, "goal": 1}, ValueError, "this fit has no goals: leave goal out"),
        ("endless", {"step": 0}, ValueError, "this fit has no horizon"),
        ("endless", {"goal": 0}, ValueError, "this fit has no goals: leave goal out"),
        ("goals", {}, ValueError, "this fit has goals: pass goal="),
        ("goals", {"goal": 99}, ValueError, "goal 99 is not one of the states 0 … 8"),
        ("goals", {"goal": 1.5}, TypeError, "goal must be a state, not 1.5"),
        ("goals", {"goal": "end"}, TypeError, "goal must be a state, not 'end'"),
    ],
    ids=str,
)
def test_a_question_that_does_not_fit_the_model_is_refused(kind, arguments, error, says):
    with pytest.raises(error, match=says):
        optimum(kind).predict_proba([0], **arguments)


def test_states_that_do_not_exist_are_refused():
    model = optimum("endless")
    for states in ([5], [-1]):
        with pytest.raises(ValueError, match="states must be among 0 … 4"):
            model.predict_proba(states)
    for states in ([0.5], 0, [[0]], ["a"]):
        with pytest.raises(TypeError, match="states must be a flat sequence of whole numbers"):
            model.predict_proba(states)


# ------------------------------------------------------------ sample


@pytest.mark.parametrize("kind", ["finite", "endless", "episodic", "goals"])
def test_samples_come_from_the_fitted_policy_and_start(kind):
    model = optimum(kind)
    arguments = {"goals": {"goal": 8}, "endless": {"length": 12}}.get(kind, {})
    some = model.sample(40, random_state=shifted(0), **arguments)
    assert len(some) == 40
    assert some == model.sample(40, random_state=shifted(0), **arguments)
    assert (model.start_[some.first] > 0).all()
    assert np.isfinite(model.score(some)) or kind == "endless"
    assert abs(model.score(some) - model.score(model.sample(40, random_state=shifted(1), **arguments))) < 0.5


def test_samples_follow_the_models_own_seed_and_any_start():
    model = optimum("endless", random_state=5)
    assert model.sample(4, 6) == model.sample(4, 6)
    assert_array_equal(model.sample(4, 6, start=np.eye(5)[3]).first, 3)


def test_a_sample_that_does_not_fit_the_model_is_refused():
    with pytest.raises(ValueError, match="this fit has goals: pass goal="):
        optimum("goals").sample(3)
    with pytest.raises(ValueError, match="this fit has no goals: leave goal out"):
        optimum("episodic").sample(3, goal=2)
    with pytest.raises(ValueError, match="goal 99 is not one of the states 0 … 8"):
        optimum("goals").sample(3, goal=99)
    with pytest.raises(ValueError, match="nothing ends these trajectories: give length="):
        optimum("endless").sample(3)


def test_a_fit_to_its_own_samples_finds_the_policy_again():
    mdp = problem("endless").mdp
    model = MaxEntIRL(max_iter=500).fit(mdp, drawn(mdp, THETA, 3000, 9, length=25))
    assert_allclose(model.policy_, soft_policy(mdp, mdp.reward(THETA)), atol=0.05)


# ------------------------------------------------------------ checked once


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "model", [MaxEntIRL(), MESSI(), EMMaxEnt(max_iter=7, step_size=0.01)], ids=lambda m: type(m).__name__
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_trajectories_are_checked_once_per_fit(model, kind, monkeypatch):
    checked, faults = [], trajectory_faults
    monkeypatch.setattr(
        "messirl.data.validation.trajectory_faults", lambda mdp, some: checked.append(some) or faults(mdp, some)
    )
    mdp, expert, unlabelled = problem(kind)
    clone(model).fit(mdp, expert, unlabelled)
    assert [some is given for some, given in zip(checked, (expert, unlabelled), strict=True)] == [True, True]


@to_rounding
def test_a_penalty_that_rounding_makes_less_than_nothing_is_none():
    """Where no trajectory is similar to another, M may have -1e-19 on its diagonal."""
    mdp, expert, unlabelled = problem("endless")
    n, tiny = len(expert) + len(unlabelled), -1e-19 * np.eye(mdp.n_features)
    objective = Objective.from_trajectories(mdp, expert, quadratic=tiny)
    assert_allclose(objective.scale, objective.unit)

    class Unlike(Precomputed):
        """Each trajectory is similar to itself alone, up to rounding."""

        def penalty(self, trajectories, counts):
            return tiny

    lone, plain = MESSI(Unlike(np.eye(n)), tol=1e-8), MaxEntIRL(tol=1e-8)
    assert_allclose(lone.fit(mdp, expert, unlabelled).theta_, plain.fit(mdp, expert).theta_, rtol=1e-6, atol=1e-6)
    assert lone.converged_
