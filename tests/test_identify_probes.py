"""Probing finds the directions that no gap between actions sees, whatever the kind of problem, at a small price."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from seeds import generator

from messirl import MDP
from messirl.data.feature_scale import feature_spread
from messirl.paper.domains import slippery
from messirl.planning import identifiability, random_probes
from messirl.planning.identifiability import unidentified
from messirl.planning.reachability import arcs_of, reach, structure_of

KINDS = ["finite", "noncausal", "endless", "episodic", "goals"]


def made(rng, kind, *, by_step):
    """Moves to few states, near or far, ends and actions that are missing; features of which some depend on others."""
    n, n_actions = int(rng.integers(6, 40)), int(rng.integers(1, 4))
    certain = rng.random() < 0.4
    moves = np.zeros((n, n_actions, n))
    for s in range(n):
        for a in range(n_actions):
            pool = np.arange(max(0, s - 2), min(n, s + 3)) if rng.random() < 0.5 else np.arange(n)
            to = rng.choice(pool, 1 if certain else int(rng.integers(1, 4)), replace=False)
            moves[s, a, to] = rng.dirichlet(np.ones(to.size))
    moves[rng.integers(n), rng.integers(n_actions)] = 0.0
    terminal = rng.random(n) < (0.2 if kind in ("finite", "noncausal", "endless", "episodic") else 0.0)
    terminal[rng.integers(n)] |= kind == "episodic"
    stuck = (moves.sum(axis=(1, 2)) == 0) & ~terminal
    moves[stuck, 0, 0] = 1.0  # dead ends are another matter
    undiscounted = kind == "goals" or (kind != "endless" and rng.random() < 0.3)
    discount = 1.0 if undiscounted else float(rng.choice([0.5, 0.9, 0.99]))
    shape = (n, n_actions) if by_step else (n,)
    own = [rng.normal(size=(*shape, 3)), np.eye(4)[rng.integers(4, size=shape)]][int(rng.integers(2))]
    features = [own, rng.normal(size=(*shape, 2)) * (rng.random((*shape, 2)) < 0.1)]
    features.append((own @ rng.normal(size=own.shape[-1]))[..., None])  # a sum of others
    if by_step:  # worth the same by every way from here to there
        height = np.where(terminal, 0.0, rng.normal(size=n))
        features.append((height[:, None] - discount * moves @ height)[..., None])
    if rng.random() < 0.5:
        features.append(np.ones((*shape, 1)))
    table = np.concatenate(features, axis=-1)
    table = table * 10.0 ** rng.uniform(-3.0, 3.0, table.shape[-1])
    if rng.random() < 0.3:
        table = sp.csr_array(table.reshape(-1, table.shape[-1]))
    horizon = int(rng.integers(2, 12)) if kind in ("finite", "noncausal") else None
    return MDP(moves, table, discount=discount, horizon=horizon, terminal=terminal)


def all_gaps(mdp, start, goals, *, noncausal):
    """A_f of every reachable move, at every step and towards every goal, by dense linear algebra, (m, d)."""
    arcs, found = arcs_of(mdp), []
    dense = mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, -1)
    rows = np.asarray(mdp.feature_rows.toarray() if sp.issparse(mdp.features) else mdp.feature_rows)
    rows = rows.reshape(mdp.n_states, -1, mdp.n_features)
    worth = np.broadcast_to(rows, (mdp.n_states, mdp.n_actions, mdp.n_features))
    end = np.zeros_like(rows[:, 0]) if mdp.state_action else rows[:, 0]
    for goal in [None] if goals is None else np.unique(goals).tolist():
        if mdp.horizon is None:
            structure = structure_of(mdp, goal)
            live, ends = structure.live, structure.ends
        else:
            live, ends = mdp.allowed, mdp.terminal
        alike = live / np.maximum(live.sum(axis=1, keepdims=True), 1)
        met = [np.ones(mdp.n_states, dtype=bool)] * (mdp.horizon or 1)  # the states to look at, at every step
        if start is not None and mdp.horizon is None:
            used = arcs.where(live[arcs.source, arcs.action])
            met = [reach((used.source, used.target), start > 0)]
        elif start is not None:
            met = [start > 0]
            for _ in range(mdp.horizon - 1):
                met.append((alike * met[-1][:, None]).ravel() @ mdp.transitions > 0)
        chain, mean = np.einsum("sa,sat->st", alike, dense), np.einsum("sa,sad->sd", alike, worth)
        mean[ends] = end[ends]
        ahead = end
        if mdp.horizon is None:
            ahead = np.linalg.solve(np.eye(mdp.n_states) - mdp.discount * chain, mean)
        for step in reversed(range(1 if mdp.horizon is None else mdp.horizon - 1)):
            here, looked_at = mean + mdp.discount * (chain @ ahead), live & met[step][:, None]
            gap = worth + mdp.discount * (dense @ ahead) - here[:, None]
            found.append(gap[looked_at])
            if noncausal:
                s, a, to = (x[looked_at[arcs.source, arcs.action]] for x in (arcs.source, arcs.action, arcs.target))
                found.append(worth[s, a] + mdp.discount * ahead[to] - here[s])
            ahead = here
    return np.concatenate(found)


def same_span(got, wanted):
    """Whether two bases (k, d) span the same directions."""
    if len(got) != len(wanted):
        return False
    one, other = np.linalg.qr(got.T).Q, np.linalg.qr(wanted.T).Q
    return bool(np.linalg.norm(other - one @ (one.T @ other)) < 1e-5)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("by_step", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("small", [0, 10**6])
def test_probes_find_the_directions_that_no_gap_sees(monkeypatch, kind, by_step, seed, small):
    monkeypatch.setattr(identifiability, "SMALL", small)
    rng = generator(seed + 100 * KINDS.index(kind) + 1000 * by_step)
    mdp = made(rng, kind, by_step=by_step)
    start = None if kind == "goals" or rng.random() < 0.3 else np.eye(mdp.n_states)[rng.integers(mdp.n_states)]
    if start is not None and mdp.horizon is None and not structure_of(mdp).alive[np.argmax(start)]:
        start = None
    goals = rng.integers(mdp.n_states, size=3) if kind == "goals" else None
    unit = feature_spread(mdp)
    _, size, wanted = np.linalg.svd(all_gaps(mdp, start, goals, noncausal=kind == "noncausal") / unit)
    got = unidentified(mdp, start, goals, noncausal=kind == "noncausal")
    seen = int((size > 1e-9 * max(1.0, size.max(initial=0.0))).sum())
    assert same_span(got * unit, wanted[seen:])
    assert len(got) >= 1, "one feature is the sum of others"


def grid(side, *, horizon):
    """A slippery grid whose features are its macro-cells."""
    cell = np.arange(side * side) // side * 4 // side * 4 + np.arange(side * side) % side * 4 // side
    return MDP(slippery(side, 0.7), np.eye(16)[cell], discount=0.95, horizon=horizon, start=np.eye(side * side)[0])


@pytest.mark.parametrize("doubled", [False, True])
def test_with_a_horizon_probing_takes_little_more_than_one_backward_pass(monkeypatch, doubled):
    sweeps = 0
    once = random_probes.Probe._sweep

    def counted(*arguments):
        nonlocal sweeps
        sweeps += 1
        return once(*arguments)

    monkeypatch.setattr(random_probes.Probe, "_sweep", counted)
    mdp = grid(16, horizon=60)
    if doubled:
        mdp = mdp.replace(features=np.column_stack([mdp.features, mdp.features[:, :3] @ [1.0, 2.0, 3.0]]))
    assert len(unidentified(mdp, mdp.start, None)) == 1 + doubled  # the cells sum to one everywhere
    assert sweeps <= 2 * 60


def test_without_a_horizon_neighbourhoods_leave_few_systems_to_solve(monkeypatch):
    solved = 0
    once = random_probes.StationaryProbe._values

    def counted(self, directions):
        nonlocal solved
        solved += len(directions)
        return once(self, directions)

    monkeypatch.setattr(random_probes.StationaryProbe, "_values", counted)
    mdp = grid(32, horizon=None)
    assert len(unidentified(mdp, mdp.start, None)) == 1
    assert solved <= 3


def test_features_that_show_only_far_ahead_are_seen():
    # Two corridors from the first state; what differs between them lies at their ends.
    length = 30
    n = 2 * length + 1
    moves = np.zeros((n, 2, n))
    for side in (0, 1):
        cells = 1 + side * length + np.arange(length)
        moves[0, side, cells[0]] = 1.0
        moves[cells[:-1], :, cells[1:]] = 1.0
        moves[cells[-1], :, cells[-1]] = 1.0
    features = np.eye(n)[:, [length - 2, length - 1, length, 2 * length]]
    # The one choice is made at the start: of what a corridor holds it shows the sum.
    for horizon, unseen in ((length - 2, 4), (length - 1, 3), (length, 3), (length + 1, 3)):
        mdp = MDP(moves, features, discount=1.0, horizon=horizon, start=np.eye(n)[0])
        assert len(unidentified(mdp, mdp.start, None)) == unseen


def test_what_hardly_shows_and_shows_as_another_direction_does_is_no_direction_of_its_own():
    rng = generator(7)
    rows = rng.normal(size=(8, 2)) @ [[1.0, 0.0, 2e-6], [0.0, 1.0, -1e-6]]
    (direction,) = identifiability._null(rows, 0.0)
    np.testing.assert_allclose(direction / direction[2], [-2e-6, 1e-6, 1.0], rtol=1e-6)
    assert np.abs(rows @ direction).max() < 1e-14 * np.abs(rows).max() * np.abs(direction[2])
