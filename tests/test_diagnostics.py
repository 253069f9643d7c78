"""Whether unlabelled trajectories help: shares, influence and directions by their definitions, verdicts by hand."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from problems import problem
from seeds import pinned
from sklearn.exceptions import NotFittedError
from worlds import drawn, maze

from messirl import MESSI, feature_counts, plot
from messirl.objective import Objective
from messirl.selection import MESSICV
from messirl.selection.diagnostics import diagnose, leave_one_out, penalty_directions, penalty_shares
from messirl.similarity import RBF, Precomputed

SIMILARITY = RBF("median", standardise=True)
ANYWHERE = {"length": 30, "start": np.full(16, 1 / 16)}
KINDS = ["endless", "finite", "episodic", "goals", "steps"]


def grid_world(unlabelled=20):
    """4 × 4 tiles; experts go right and up, half of the others do."""
    at = plot.grid(4, 4)
    features = np.column_stack([at / 3, (at == [1, 1]).all(axis=1)])
    mdp = maze(4, 4, features, discount=0.9, feature_names=["right", "up", "mud"])
    expert = drawn(mdp, [3.0, 2.0, -2.0], 5, 1, **ANYWHERE)
    half = unlabelled // 2
    return mdp, expert, drawn(mdp, [3.0, 2.0, -2.0], half, 2, **ANYWHERE) + drawn(mdp, [-3, -2, 2], half, 3, **ANYWHERE)


def fitted(kind, lambda0=10.0):
    mdp, expert, unlabelled = problem(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MESSI(SIMILARITY, lambda0=lambda0).fit(mdp, expert, unlabelled), expert


# ------------------------------------------------------------ shares


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
def test_shares_are_the_pairs_parts_of_the_penalty_and_sum_to_one(store):
    mdp, expert, unlabelled = grid_world()
    counts = feature_counts(mdp, expert + unlabelled)
    weights = SIMILARITY(None, counts)
    theta = np.array([1.0, -2.0, 0.5])
    n = len(counts)
    part = np.zeros(n)
    for j in range(n):
        for k in range(n):
            part[j] += weights[j, k] * (theta @ (counts[j] - counts[k])) ** 2
    found = penalty_shares(store(weights), counts, theta)
    assert_allclose(found, part / part.sum(), rtol=1e-9, atol=1e-12)
    assert found.sum() == pytest.approx(1.0, abs=1e-9)


def test_without_any_penalty_nobody_has_a_share():
    assert penalty_shares(np.ones((3, 3)), np.ones((3, 2)), np.ones(2)).tolist() == [0.0, 0.0, 0.0]


# ------------------------------------------------------------ influence


@pytest.mark.parametrize("precomputed", [False, True])
def test_influence_is_the_distance_to_a_plain_refit_without_the_trajectory(precomputed):
    mdp, expert, unlabelled = grid_world()
    counts = feature_counts(mdp, expert + unlabelled)
    similarity = RBF(5.0)
    matrix = similarity(None, counts)
    options = {"lambda0": 20.0, "max_iter": 500, "tol": 1e-7}
    model = MESSI(Precomputed(matrix) if precomputed else similarity, **options).fit(mdp, expert, unlabelled)
    found = leave_one_out(model, mdp, expert, unlabelled, np.arange(20))
    bend = -Objective.from_trajectories(mdp, expert, objective=model.likelihood_).hessian(model.theta_)
    for j in range(20):
        rest = unlabelled[np.delete(np.arange(20), j)]
        moved = MESSI(similarity, **options).fit(mdp, expert, rest).theta_ - model.theta_
        assert found[j] == pytest.approx(np.sqrt(moved @ bend @ moved), abs=1e-5)
    assert found.max() > 1e-3
    assert found.min() < 0.5 * found.max()


def test_the_last_unlabelled_trajectory_can_be_left_out_too():
    mdp, expert, unlabelled = grid_world(2)
    options = {"lambda0": 0.2, "theta_max": 5.0, "tol": 1e-9}  # nobody enters the mud: the box holds its weight
    model = MESSI(RBF(5.0), **options).fit(mdp, expert, unlabelled[:1])
    found = leave_one_out(model, mdp, expert, unlabelled[:1], np.array([0]))
    alone = MESSI(RBF(5.0), **options).fit(mdp, expert)
    moved = alone.theta_ - model.theta_
    bend = -Objective.from_trajectories(mdp, expert, objective=model.likelihood_).hessian(model.theta_)
    assert found[0] == pytest.approx(np.sqrt(moved @ bend @ moved), abs=1e-5)


def test_who_is_left_out_does_not_change_the_model_that_is_diagnosed():
    mdp, expert, unlabelled = grid_world()
    told = []
    model = MESSI(SIMILARITY, lambda0=5.0, callback=told.append).fit(mdp, expert, unlabelled)
    theta, calls = model.theta_.copy(), len(told)
    done = []
    leave_one_out(model, mdp, expert, unlabelled, np.array([3, 1]), progress=lambda *now: done.append(now))
    assert_allclose(model.theta_, theta, atol=0)
    assert len(told) == calls
    assert done == [(1, 2), (2, 2)]


# ------------------------------------------------------------ directions


@pytest.mark.parametrize("kind", KINDS)
def test_directions_solve_the_eigenvalue_problem_of_penalty_against_data(kind):
    model, expert = fitted(kind)
    data = -Objective.from_trajectories(model.mdp_, expert, objective=model.likelihood_).hessian(model.theta_)
    pull = model.quadratic_
    found, _, _ = penalty_directions(model, expert)
    assert found
    for direction in found:
        assert 0.0 <= direction.shrinkage <= 1.0
        v = direction.weights
        assert np.linalg.norm(v) == pytest.approx(1.0)
        size = np.abs((data + pull) @ v).max()
        assert_allclose(pull @ v, direction.shrinkage * (data + pull) @ v, atol=1e-6 * max(size, 1e-3))
    assert [d.shrinkage for d in found] == sorted((d.shrinkage for d in found), reverse=True)


def test_degrees_of_freedom_are_the_trace_of_what_the_data_keep():
    mdp, expert, unlabelled = grid_world()
    for lambda0 in (0.1, 10.0, 100.0):
        model = MESSI(SIMILARITY, lambda0=lambda0).fit(mdp, expert, unlabelled)
        data = -Objective.from_trajectories(mdp, expert, objective=model.likelihood_).hessian(model.theta_)
        dense = np.trace(data @ np.linalg.inv(data + model.quadratic_))
        assert penalty_directions(model, expert)[1] == pytest.approx(dense, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_penalty_the_experts_decide_every_direction_they_can(kind):
    model, expert = fitted(kind, lambda0=0.0)
    directions, freedom, identified = penalty_directions(model, expert)
    assert freedom == pytest.approx(identified, abs=1e-9)
    assert all(d.shrinkage == pytest.approx(0.0, abs=1e-12) for d in directions)


def test_directions_nobody_decides_are_left_out():
    mdp, expert, unlabelled = grid_world()
    twice = mdp.replace(features=np.column_stack([mdp.features, mdp.features[:, 0]]), feature_names=None)
    with pytest.warns(match="determined only up to 1 direction"):
        model = MESSI(SIMILARITY, lambda0=10.0).fit(twice, expert, unlabelled)
    directions, _, identified = penalty_directions(model, expert)
    assert len(directions) == identified == 3


def test_a_direction_names_its_heaviest_features():
    model, expert = fitted("endless")
    direction = penalty_directions(model, expert)[0][0]
    named = direction.largest(["a", "b", "c"], 2)
    order = np.argsort(-np.abs(direction.weights))
    assert [name for name, _ in named] == [["a", "b", "c"][j] for j in order[:2]]
    assert named[0][1] > 0


# ------------------------------------------------------------ verdict


@pytest.mark.slow
@pytest.mark.usefixtures("few_strengths")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # some choices settle no weights
def test_the_diagnosis_recommends_what_selection_chooses_and_says_what_it_gains():
    mdp, expert, unlabelled = grid_world()
    model = MESSI(SIMILARITY, lambda0=5.0).fit(mdp, expert, unlabelled)
    found = diagnose(model, mdp, expert, unlabelled, influential=0, random_state=0)
    chosen = MESSICV([SIMILARITY], lambdas=(0.1, 1.0), random_state=0).fit(mdp, expert, unlabelled)
    assert found.choice == chosen.choice_
    assert found.verdict == chosen.verdict_ == found.use.verdict
    assert found.use == chosen.use_
    assert found.evidence[0] == chosen.use_.sentence
    assert found.evidence[1] == f"recommended: {chosen.candidate_}: {chosen.reason_}"
    assert "held-out expert trajectories" in found.evidence[2]
    assert f"{found.agreement_with_experts.expert:+.3f} nats per step" in found.evidence[2]
    good = int((found.agreement_with_experts.unlabelled > 0).sum())
    assert f"unlabelled trajectories it is {found.agreement_with_experts.mean:+.3f}" in found.evidence[3]
    assert (
        f"; {good} of 20 are above zero; their steps are "
        f"{1 + found.agreement_with_experts.relative_likelihood.mean:.2f} times" in found.evidence[3]
    )


# ------------------------------------------------------------ all of it


@pytest.mark.usefixtures("few_strengths")
def test_a_diagnosis_has_a_row_for_every_unlabelled_trajectory():
    mdp, expert, unlabelled = grid_world()
    model = MESSI(SIMILARITY, lambda0=5.0).fit(mdp, expert, unlabelled)
    found = diagnose(model, mdp, expert, unlabelled, influential=6, random_state=0)
    rows = found.rows()
    assert len(rows) == 20
    assert list(rows[0]) == [
        "similarity", "share", "likeness", "influence", "steps", "agreement", "agreement_low", "agreement_high"
    ]  # fmt: skip
    assert [row["steps"] for row in rows] == (unlabelled.lengths - 1).tolist()
    assert_allclose([row["agreement"] for row in rows], found.agreement_with_experts.agreement.values)
    assert all(row["agreement_low"] < row["agreement"] < row["agreement_high"] for row in rows)
    known = np.flatnonzero(np.isfinite(found.influence))
    assert known.tolist() == sorted(np.argsort(-found.share, kind="stable")[:6].tolist())
    assert found.agreement_with_experts.unlabelled[:10].min() > found.agreement_with_experts.unlabelled[10:].max()
    assert found.verdict in ("help", "hurt", "no effect", "unclear")
    counts = feature_counts(mdp, expert + unlabelled)
    assert_allclose(found.similarity, SIMILARITY(None, counts)[:5, 5:].mean(axis=0))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # short trips miss some tiles
@pytest.mark.filterwarnings("ignore:.*treated as endless")  # and are short
@pytest.mark.filterwarnings("ignore:theta is determined only up to")
@pytest.mark.parametrize(("sign", "verdict"), [(1.0, "help"), (-1.0, "hurt")])
def test_good_trajectories_help_held_out_experts_and_bad_ones_hurt(sign, verdict):
    """A weight for every tile, and experts of three steps: many others of the same reward tell what they leave open."""
    mdp = maze(4, 4, np.eye(16)[:, 1:], discount=0.9)
    theta = 2.0 * (plot.grid(4, 4) @ [1.0, 0.7])[1:]
    short = ANYWHERE | {"length": 4}
    with pinned():  # of some draws the interval reaches zero
        expert, others = drawn(mdp, theta, 30, 11, **short), drawn(mdp, sign * theta, 300, 12 + (sign < 0), **short)
    use = MESSICV([SIMILARITY], lambdas=[0.1], random_state=0).fit(mdp, expert, others).use_
    assert use.verdict == verdict
    assert use.using.unlabelled
    assert not use.alone.unlabelled
    assert np.sign([use.gain.low, use.gain.mean, use.gain.high]).tolist() == [sign] * 3


@pytest.mark.usefixtures("few_strengths")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of some draws nobody enters the mud
def test_trajectories_may_look_like_the_experts_or_not_and_yet_not_matter():
    with pinned():  # of some draws five experts are enough to tell
        mdp, expert, unlabelled = grid_world()
    for some, alike in ((unlabelled[:10], True), (unlabelled[10:], False)):
        model = MESSI(SIMILARITY, lambda0=5.0).fit(mdp, expert, some)
        found = diagnose(model, mdp, expert, some, influential=0, random_state=0)
        assert (found.agreement_with_experts.alike == alike).all()
        assert found.verdict in ("no effect", "unclear")
        assert found.use.gain.low < 0.0 < found.use.gain.high
        assert found.influence is None
        assert np.isnan(found.rows()[0]["influence"])


@pytest.mark.slow
@pytest.mark.usefixtures("few_strengths")
def test_a_sparse_similarity_is_diagnosed_too():
    mdp, expert, unlabelled = grid_world()
    matrix = SIMILARITY(None, feature_counts(mdp, expert + unlabelled))
    models = [MESSI(Precomputed(m), lambda0=5.0).fit(mdp, expert, unlabelled) for m in (matrix, sp.csr_array(matrix))]
    dense, sparse = (diagnose(model, mdp, expert, unlabelled, influential=2, cv=2) for model in models)
    assert_allclose(sparse.similarity, dense.similarity)
    assert_allclose(sparse.share, dense.share, rtol=1e-6)
    assert_allclose(sparse.influence, dense.influence, atol=1e-6)


@pytest.mark.usefixtures("few_strengths")
@pytest.mark.parametrize("kind", ["finite", "episodic", "goals"])
def test_every_kind_of_problem_is_diagnosed(kind):
    mdp, expert, unlabelled = problem(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MESSI(SIMILARITY, lambda0=5.0).fit(mdp, expert, unlabelled)
        found = diagnose(model, mdp, expert, unlabelled, influential=2, cv=2, random_state=0)
    assert np.isfinite(found.agreement_with_experts.unlabelled).all()
    assert 0 < found.degrees_of_freedom <= found.identified


def test_a_model_that_is_not_fitted_is_not_diagnosed():
    with pytest.raises(NotFittedError, match="not fitted yet: call fit first"):
        diagnose(MESSI(), *grid_world())


@pytest.fixture(scope="module")
def diagnosed():
    """A fitted model, and what it was fitted to."""
    mdp, expert, unlabelled = grid_world()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MESSI(SIMILARITY, lambda0=10.0).fit(mdp, expert, unlabelled), mdp, expert, unlabelled


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            lambda m, e, u: (m.replace(discount=0.5), e, u),
            "mdp has discount=0.5, but the model was fitted with discount=0.9",
        ),
        (
            lambda m, e, u: (m.replace(features=2 * m.features), e, u),
            "mdp has other features than the model was fitted",
        ),
        (lambda m, e, u: (m, e[1:], u), "trajectories than the model was fitted to"),
        (
            lambda m, e, u: (m, e, u[1:]),
            "these are not the unlabelled trajectories the model was fitted to: give the same",
        ),
        (lambda m, e, u: (m, e, None), "unlabelled must be Trajectories, not NoneType"),
    ],
)
def test_what_the_model_was_not_fitted_to_is_not_diagnosed(diagnosed, other, message):
    model, *given = diagnosed
    with pytest.raises((ValueError, TypeError), match=message):
        diagnose(model, *other(*given), influential=0)


@pytest.mark.parametrize("influential", [-1, 2.5, "3", True])
def test_how_many_are_left_out_is_a_whole_number(diagnosed, influential):
    with pytest.raises(ValueError, match=f"influential={influential!r}: .*whole number >= 0"):
        diagnose(*diagnosed, influential=influential)


def test_lists_are_diagnosed_as_trajectories_are(diagnosed):
    model, mdp, expert, unlabelled = diagnosed
    lists = [one.states.tolist() for one in expert], [one.states.tolist() for one in unlabelled]
    model = MESSI(SIMILARITY, lambda0=10.0).fit(mdp, *lists)
    found = diagnose(model, mdp, *lists, influential=0, cv=2)
    assert found.share.shape == (len(unlabelled),)
