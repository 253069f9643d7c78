"""An MDP estimated from moves: counts, smoothing, what was not seen, and draws of the posterior."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from problems import problem
from seeds import generator, shifted
from worlds import ROUNDING, drawn, maze, ring, to_rounding, without_actions

from messirl import MDP, MESSI, MaxEntIRL, Trajectories
from messirl.dynamics import estimate_mdp, posterior_spread
from messirl.similarity import RBF

THETA = np.array([2.0, -1.0])


def in_twentieths(seed: int = 0, n_states: int = 4, n_actions: int = 2) -> tuple[MDP, np.ndarray]:
    """An MDP whose probabilities are multiples of 1/20, and those multiples."""
    rng = generator(seed)
    times = rng.multinomial(20, rng.dirichlet(np.ones(n_states)), size=(n_states, n_actions))
    return MDP(times / 20, rng.random((n_states, 2)), discount=0.8, start=np.full(n_states, 1 / n_states)), times


def one_step_each(times: np.ndarray) -> Trajectories:
    """Every move as often as `times` (S, A, S) says, in random order, each a trajectory of its own."""
    s, a, x = np.repeat(np.argwhere(times), times[times > 0], axis=0).T
    order = generator(0).permutation(s.size)
    pairs = np.column_stack([s, x])[order]
    return Trajectories(pairs.ravel(), np.arange(s.size + 1) * 2, a[order])


def walk(*lists: list[int], actions: list[list[int]] | None = None) -> Trajectories:
    return Trajectories.from_lists(lists, actions=actions)


def table(mdp: MDP) -> np.ndarray:
    return mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)


# ------------------------------------------------------------ the truth, where the data has it


def test_counts_in_the_right_proportions_give_the_true_mdp():
    true, times = in_twentieths()
    found = estimate_mdp(one_step_each(times), true.features, discount=0.8, start=true.start)
    np.testing.assert_array_equal(found.counts.toarray().reshape(times.shape), times)
    np.testing.assert_allclose(table(found.mdp), table(true), rtol=0, atol=1e-12)
    assert found.report.n_transitions == 4 * 2 * 20
    assert (found.mdp.discount, found.mdp.horizon, found.mdp.terminal.any()) == (0.8, None, False)
    np.testing.assert_array_equal(found.mdp.start, true.start)


@to_rounding
def test_fits_on_it_agree_with_fits_on_the_true_mdp():
    true, times = in_twentieths()
    found = estimate_mdp(one_step_each(times), true.features, discount=0.8, start=true.start).mdp
    expert, others = drawn(true, THETA, 20, 1, length=15), drawn(true, -THETA, 10, 2, length=15)
    for model in (MaxEntIRL(ridge=0.01, tol=1e-10), MESSI(RBF(5.0), lambda0=5.0, tol=1e-10)):
        theta = model.fit(true, expert, others).theta_.copy()
        assert np.abs(theta).max() > 1e-5  # four digits at least to agree in, however little this draw says
        np.testing.assert_allclose(model.fit(found, expert, others).theta_, theta, rtol=0, atol=1e-9)


def test_sets_are_joined_and_their_moves_added():
    one, two = walk([0, 1, 0], actions=[[0, 1]]), walk([0, 2], [0, 1], actions=[[0], [0]])
    found = estimate_mdp(one + two, np.eye(3), discount=0.95)
    np.testing.assert_array_equal(found.counts.toarray()[0], [0, 2, 1])
    np.testing.assert_allclose(table(found.mdp)[0, 0], [0, 2 / 3, 1 / 3])


# ------------------------------------------------------------ actions that were not recorded


def test_without_actions_each_move_is_an_action_of_its_own():
    found = estimate_mdp(walk([0, 3, 0, 1, 0, 3], [3, 2, 3]), np.eye(4), discount=0.95)
    p = table(found.mdp)
    assert found.mdp.n_actions == 2
    assert found.mdp.deterministic
    assert found.report.actions_inferred
    assert "each transition from a state is an action" in str(found.report)
    assert [np.argmax(p[s, a]) for s, a in ((0, 0), (0, 1), (1, 0), (2, 0), (3, 0), (3, 1))] == [1, 3, 0, 3, 0, 2]
    assert not found.mdp.allowed[1:3, 1].any()
    assert found.report.never_seen.size == 0


@to_rounding
def test_without_actions_the_moves_of_a_maze_are_found_again():
    true = maze(2, 3, discount=1.0, terminal=np.arange(6) == 5)
    seen = drawn(true, [-0.8, -0.3], 60, 3, start=np.full(6, 1 / 6))
    found = estimate_mdp(without_actions(seen), true.features, discount=1.0, terminal=true.terminal).mdp
    reachable = table(true).any(axis=1)
    np.testing.assert_array_equal(table(found).any(axis=1), reachable)
    expert = without_actions(seen[:10])
    fits = [MaxEntIRL(tol=1e-9, ridge=0.01).fit(mdp, expert) for mdp in (true, found)]
    np.testing.assert_allclose(fits[1].theta_, fits[0].theta_, atol=1e-7)
    assert fits[1].score(expert) == pytest.approx(fits[0].score(expert), abs=1e-9)


def test_without_actions_a_graph_gives_the_actions_that_nobody_took():
    graph = sp.csr_array(np.array([[0, 1, 1], [1, 0, 1], [0, 0, 1]], dtype=bool))
    path = walk([0, 2, 2])
    kept, bare = (estimate_mdp(path, np.eye(3), graph=graph, prior=prior, discount=0.95) for prior in (1.0, 0.0))
    np.testing.assert_array_equal(kept.mdp.allowed, [[True, True], [True, True], [True, False]])
    assert kept.mdp.deterministic
    assert np.argmax(table(kept.mdp)[0, 1]) == 2
    np.testing.assert_array_equal(bare.mdp.allowed, [[False, True], [False, False], [True, False]])
    np.testing.assert_array_equal(bare.report.never_seen, [[0, 0], [1, 0], [1, 1]])


def test_without_actions_a_graph_by_action_says_which_it_was():
    true = ring(3, discount=0.9)
    found = estimate_mdp(walk([0, 1, 1, 2, 0]), true.features, graph=true.transitions, prior=1.0, discount=0.9)
    np.testing.assert_array_equal(table(found.mdp), table(true))
    np.testing.assert_array_equal(found.counts.toarray().sum(axis=1), [0, 1, 1, 1, 0, 1])


def test_moves_that_are_not_deterministic_need_actions():
    with pytest.raises(ValueError, match="cannot be inferred: record the actions"):
        estimate_mdp(walk([0, 1, 0]), np.eye(2), deterministic=False, discount=0.95)
    with pytest.raises(ValueError, match="in the graph action 1 of state 0 may lead to several states"):
        estimate_mdp(walk([0, 1, 0]), np.eye(2), graph=[[0, 1], [1, 1], [1, 0], [0, 1]], discount=0.95)
    with pytest.raises(ValueError, match="state 0 has 2 next states, each an action of its own, but there are only 1"):
        estimate_mdp(walk([0, 1, 0, 0]), np.eye(2), n_actions=1, discount=0.95)


# ------------------------------------------------------------ smoothing


def test_the_prior_is_spread_over_next_states_seen_under_any_action():
    found = estimate_mdp(walk([0, 1, 0, 2, 0], actions=[[0, 0, 1, 0]]), np.eye(4), prior=3.0, discount=0.95)
    p = table(found.mdp)
    np.testing.assert_allclose(p[0, 0], [0, 2.5 / 4, 1.5 / 4, 0])
    np.testing.assert_allclose(p[0, 1], [0, 1.5 / 4, 2.5 / 4, 0])
    np.testing.assert_allclose(p[1, 0], [1, 0, 0, 0])
    assert not found.mdp.allowed[1, 1]  # never seen, and no graph says that it exists
    assert not found.report.kept


@pytest.mark.parametrize("by_action", [False, True])
def test_with_a_graph_the_prior_covers_it_and_pairs_never_seen_get_its_mean(by_action):
    graph = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0]], dtype=bool)
    if by_action:
        graph = np.repeat(graph, 2, axis=0)
        graph[3] = False  # state 1, action 1
    n = None if by_action else 2  # the graph's rows say it, or nothing does
    found = estimate_mdp(
        walk([0, 1, 0, 0], actions=[[0, 0, 0]]), np.eye(4), prior=3.0, graph=graph, n_actions=n, discount=0.95
    )
    p = table(found.mdp)
    np.testing.assert_allclose(p[0, 0], [2 / 5, 2 / 5, 1 / 5, 0])
    np.testing.assert_allclose(p[0, 1], [1 / 3, 1 / 3, 1 / 3, 0])
    np.testing.assert_allclose(p[1, 0], [2.5 / 4, 1.5 / 4, 0, 0])
    np.testing.assert_allclose(p[1, 1], [0, 0, 0, 0] if by_action else [0.5, 0.5, 0, 0])
    np.testing.assert_allclose(p[2], [[0, 0, 0.5, 0.5]] * 2)
    assert found.report.kept
    expected = [[0, 1], [2, 0], [2, 1]] if by_action else [[0, 1], [1, 1], [2, 0], [2, 1]]
    np.testing.assert_array_equal(found.report.never_seen, expected)
    assert found.mdp.terminal.tolist() == [False, False, False, True]  # the graph has no way out of it


def test_a_terminal_state_is_not_left_whatever_the_graph_says():
    path, end = walk([0, 1, 2], actions=[[0, 0]]), np.arange(3) == 2
    found = estimate_mdp(path, np.eye(3), graph=np.ones((3, 3)), prior=1.0, terminal=end, discount=0.95)
    assert found.posterior[[2]].nnz == 0
    assert found.report.never_seen.size == 0
    assert not found.mdp.allowed[2].any()


def test_without_a_prior_the_graph_only_forbids():
    path = walk([0, 1, 0, 0], actions=[[0, 0, 0]])
    bare, checked = (
        estimate_mdp(path, np.eye(2), discount=0.95),
        estimate_mdp(path, np.eye(2), graph=np.ones((2, 2)), discount=0.95),
    )
    np.testing.assert_array_equal(table(bare.mdp), table(checked.mdp))


def test_a_move_that_the_graph_forbids_is_named():
    graph = np.array([[0, 1], [0, 1]])
    wrong = [[0, 1, 1], [0, 1, 0]]
    with pytest.raises(ValueError, match="trajectory 1, step 1: the transition from state 1 to 0 is not in the graph"):
        estimate_mdp(walk(*wrong), np.eye(2), graph=graph, discount=0.95)
    with pytest.raises(ValueError, match="trajectory 1, step 1: the transition from state 1 to 0 by action 1 is not"):
        estimate_mdp(walk(*wrong, actions=[[0, 0], [0, 1]]), np.eye(2), graph=graph, discount=0.95)


# ------------------------------------------------------------ what was not seen


def test_states_never_left_are_reported_and_become_what_the_user_says():
    path = walk([0, 1, 2], [1, 0, 2], actions=[[0, 1], [0, 0]])
    ended, stays = (estimate_mdp(path, np.eye(4), unseen=unseen, discount=0.95) for unseen in ("terminal", "self"))
    assert ended.report.never_left.tolist() == [2]
    assert ended.report.never_visited.tolist() == [3]
    assert ended.mdp.terminal.tolist() == [False, False, True, True]
    assert not stays.mdp.terminal.any()
    np.testing.assert_array_equal(table(stays.mdp)[2:], [[[0, 0, 1, 0], [0] * 4], [[0, 0, 0, 1], [0] * 4]])
    assert stays.counts.sum() == 4
    with pytest.raises(ValueError, match="state 2 is never left and is not terminal: mark it terminal"):
        estimate_mdp(path, np.eye(4), unseen="error", discount=0.95)
    marked = estimate_mdp(path, np.eye(4), unseen="error", terminal=np.arange(4) == 2, discount=0.95)
    assert marked.report.never_left.size == 0
    assert marked.mdp.terminal.tolist() == [False, False, True, False]


def test_a_state_that_only_the_graph_enters_is_an_error_too_where_asked_for():
    graph = [[0, 1, 1], [1, 0, 0], [0, 0, 0]]
    with pytest.raises(ValueError, match="state 2 is never left"):
        estimate_mdp(walk([0, 1, 0]), np.eye(3), graph=graph, prior=1.0, unseen="error", discount=0.95)


def test_the_report_reads_well():
    found = estimate_mdp(walk([0, 1, 0, 1, 2], actions=[[0, 1, 0, 0]]), np.eye(4), thin=2, discount=0.95)
    assert str(found.report) == "\n".join(
        [
            "4 transitions of 3 state-action pairs",
            "1 state entered but never left: 2",
            "1 state never visited: 3",
            "2 states without any transition (made terminal): 2, 3",
            "1 state-action pair never seen (not allowed): (0, 1)",
            "2 state-action pairs seen fewer than 2 times: (1, 0), (1, 1)",
        ]
    )
    many = estimate_mdp(walk(list(range(15)), actions=[[0] * 14]), np.eye(15), discount=0.95)
    assert "14 state-action pairs seen fewer than 5 times: (0, 0), (1, 0)" in str(many.report)
    assert str(many.report).endswith("(9, 0) and 4 more")


# ------------------------------------------------------------ shapes of features


def test_features_of_steps_say_how_many_actions_there_are():
    path, rng = walk([0, 1, 0], actions=[[0, 0]]), generator(0)
    dense = rng.random((2, 3, 2))
    assert estimate_mdp(path, dense, discount=0.95).mdp.n_actions == 3
    sparse = estimate_mdp(path, sp.csr_array(dense.reshape(6, 2)), n_states=2, discount=0.95)
    assert sparse.mdp.n_actions == 3
    assert sparse.mdp.state_action
    assert estimate_mdp(path, np.eye(2), discount=0.95).mdp.n_actions == 1
    assert estimate_mdp(path, np.eye(2), action_names=["go"], discount=0.95).mdp.action_names == ("go",)


# ------------------------------------------------------------ the posterior


def test_draws_have_the_support_of_the_estimate_and_its_mean():
    true, times = in_twentieths(1)
    found = estimate_mdp(one_step_each(times), true.features, discount=0.8)
    draws = found.draws(400, random_state=shifted(0))
    tables = np.stack([table(mdp) for mdp in draws])
    assert ((tables > 0) == (table(found.mdp) > 0)).all()
    assert draws[0].discount == 0.8
    p = table(found.mdp)
    sd = np.sqrt(p * (1 - p) / 21)  # of a Dirichlet with weight 20
    np.testing.assert_allclose(tables.mean(axis=0), p, atol=5 * sd.max() / np.sqrt(400))
    np.testing.assert_allclose(tables.std(axis=0), sd, atol=0.02)
    again = found.draws(2, random_state=shifted(0))
    np.testing.assert_array_equal(table(again[1]), tables[1])


def test_a_weak_prior_does_not_make_draws_lose_moves():
    graph = np.ones((3, 3))
    found = estimate_mdp(walk([0, 1, 0, 1], actions=[[0] * 3]), np.eye(3), prior=1e-4, graph=graph, discount=0.95)
    for mdp in found.draws(20, random_state=shifted(1)):
        assert mdp.transitions.nnz == 9
        np.testing.assert_allclose(mdp.transitions.sum(axis=1), 1.0)


def test_draws_of_deterministic_moves_are_the_estimate():
    found = estimate_mdp(walk([0, 1, 0, 0]), np.eye(2), unseen="error", prior=2.0, discount=0.95)
    for mdp in found.draws(3, random_state=shifted(0)):
        assert mdp.deterministic
        np.testing.assert_array_equal(table(mdp), table(found.mdp))


@pytest.mark.parametrize("kind", ["endless", "finite"])
def test_the_spread_shrinks_as_moves_are_added(kind):
    true, times = in_twentieths(2)
    true = true.replace(horizon=6 if kind == "finite" else None)
    expert, others = drawn(true, THETA, 10, 1, length=15), drawn(true, -THETA, 5, 2, length=15)
    model = MESSI(RBF(5.0), lambda0=5.0, max_iter=200)
    few, many = (
        posterior_spread(
            estimate_mdp(
                one_step_each(times * more), true.features, discount=0.8, horizon=true.horizon, start=true.start
            ),
            model,
            expert,
            others,
            n=6,
            random_state=0,
        )
        for more in (1, 50)
    )
    assert not hasattr(model, "theta_")
    assert few.theta.shape == (6, 2)
    assert few.policy is not None
    assert few.policy.shape == (6, *((5, 4, 2) if kind == "finite" else (4, 2)))
    assert (many.theta_sd < 0.5 * few.theta_sd).all()
    assert many.policy_sd.max() < 0.5 * few.policy_sd.max()
    lower, upper = few.theta_interval(0.5)
    np.testing.assert_allclose([lower, upper], np.quantile(few.theta, [0.25, 0.75], axis=0))
    assert (lower < upper).all()
    low, high = few.policy_interval()
    assert ((low <= few.policy_mean + ROUNDING) & (few.policy_mean <= high + ROUNDING)).all()
    truth = MESSI(RBF(5.0), lambda0=5.0, max_iter=200).fit(true, expert, others).theta_
    np.testing.assert_allclose(many.theta_mean, truth, atol=4 * many.theta_sd.max())


def test_with_goals_only_theta_has_a_spread():
    mdp, expert, others = problem("goals")
    found = estimate_mdp(
        without_actions(expert + others), mdp.features, discount=1.0, graph=table(mdp).any(axis=1), prior=1.0
    )
    model = MaxEntIRL(ridge=0.1)  # of some draws nothing else keeps theta from running on
    result = posterior_spread(found, model, without_actions(expert), n=2, random_state=0)
    np.testing.assert_allclose(result.theta[0], model.fit(mdp, expert).theta_, atol=1e-5)
    np.testing.assert_allclose(result.theta_sd, 0.0, atol=1e-6)  # as near as a fit is to its optimum
    with pytest.raises(ValueError, match="one policy per goal: only theta is kept"):
        result.policy_interval()


# ------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("trajectories", "arguments", "message"),
    [
        (walk([0], [1]), {}, "there are no transitions"),
        (walk(), {}, "there are no transitions"),
        (walk([0, 1], [1, 0, 5]), {}, r"trajectory 1, step 2: state 5 is not one of 0 … 1: features need one row"),
        (walk([0, -1]), {}, "trajectory 0, step 1: state -1 is not one of"),
        (walk([0, 1, 0], actions=[[0, 2]]), {"n_actions": 2}, "trajectory 0, step 1: action 2 is not one of 0 … 1"),
        (walk([0, 1]), {"n_states": 3}, r"features have shape \(2, 2\): give \(3, d\)"),
        (walk([0, 1]), {"n_states": 0}, "n_states=0: it must be a whole number"),
        (walk([0, 1]), {"n_actions": 1.5}, "n_actions=1.5: it must be a whole number"),
        (walk([0, 1]), {"thin": 0}, "thin=0: it must be a whole number"),
        (walk([0, 1]), {"prior": -1.0}, "prior=-1.0: it must be finite and >= 0"),
        (walk([0, 1]), {"prior": np.inf}, "prior=inf: it must be finite and >= 0"),
        (walk([0, 1]), {"unseen": "guess"}, "unseen='guess': choose 'terminal', 'self' or 'error'"),
        (walk([0, 1]), {"graph": np.ones((3, 2))}, r"graph has shape \(3, 2\): give \(2, 2\)"),
        (walk([0, 1]), {"graph": np.zeros((2, 2))}, "the transition from state 0 to 1 is not in the graph"),
        (
            walk([0, 1], actions=[[0]]),
            {"graph": np.ones((6, 2)), "n_actions": 2},
            "graph has 6 rows, but there are 2 states and 2 actions: give 2 or 4",
        ),
        (
            walk([0, 1]),
            {"graph": np.tile(np.eye(2), (3, 1)), "n_actions": 2},
            "graph has 6 rows, but there are 2 states and 2 actions: give 2 or 4",
        ),
        (
            walk([0, 1, 0]),
            {"terminal": np.array([False, True])},
            "trajectory 0, step 1: it goes on after terminal state 1: cut it there",
        ),
        (walk([0, 1]), {"terminal": [0, 1]}, r"terminal must be an array of bool of shape \(2,\)"),
    ],
)
def test_bad_input_is_named(trajectories, arguments, message):
    with pytest.raises(ValueError, match=message):
        estimate_mdp(trajectories, np.eye(2), **{"discount": 0.95, **arguments})


def test_other_bad_arguments_are_named():
    with pytest.raises(TypeError, match="trajectories must be Trajectories, not list"):
        estimate_mdp([[0, 1]], np.eye(2), discount=0.95)
    with pytest.raises(ValueError, match=r"features have shape \(2,\): give \(S, d\)"):
        estimate_mdp(walk([0, 1]), np.ones(2), discount=0.95)
    found = estimate_mdp(walk([0, 1, 0]), np.eye(2), discount=0.95)
    with pytest.raises(ValueError, match="n=0: it must be a whole number"):
        found.draws(0)
    with pytest.raises(ValueError, match="a spread needs at least 2 draws"):
        posterior_spread(found, MaxEntIRL(), walk([0, 1]), n=1)


# ------------------------------------------------------------ MDP.from_transitions


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prior": 2.0, "n_actions": 3},
        {"graph": np.ones((4, 4)), "prior": 0.5},
        {"n_states": 5, "unseen": "self", "terminal": np.arange(5) == 3, "horizon": 6},
        {"thin": 2, "start": np.full(4, 0.25), "state_names": list("abcd")},
    ],
)
@pytest.mark.parametrize("actions", [None, [[0, 1, 0], [1, 1]]])
def test_from_transitions_is_the_mdp_of_estimate_mdp(actions, options):
    tracks = walk([0, 1, 2, 3], [0, 2, 3], actions=actions)
    features = np.eye(options.get("n_states", 4))
    mdp, found = (make(tracks, features, discount=0.9, **options) for make in (MDP.from_transitions, estimate_mdp))
    np.testing.assert_array_equal(table(mdp), table(found.mdp))
    for name in ("terminal", "allowed", "start", "horizon", "discount", "state_names"):
        np.testing.assert_array_equal(getattr(mdp, name), getattr(found.mdp, name))


def test_from_transitions_refuses_what_estimate_mdp_refuses():
    for options, error in (({"thin": 0}, ValueError), ({"allowed": None}, TypeError), ({"unseen": "no"}, ValueError)):
        for make in (MDP.from_transitions, estimate_mdp):
            with pytest.raises(error, match=next(iter(options))):
                make(walk([0, 1]), np.eye(2), discount=0.9, **options)


def test_from_transitions_needs_nothing_of_the_rooms_below():
    code = (
        "import sys; from messirl import MDP, Trajectories; "
        "MDP.from_transitions(Trajectories.from_lists([[0, 1, 0]]), [[0.0], [1.0]], discount=0.9); "
        "print(sorted({name.split('.')[1] for name in sys.modules if name.startswith('messirl.')}))"
    )
    rooms = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "data" in rooms
    assert not any(room in rooms for room in ("planning", "estimators", "dynamics", "io"))
