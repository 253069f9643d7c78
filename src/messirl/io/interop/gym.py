"""Gymnasium's toy-text environments: their tables `P[s][a] = [(p, s', r, done), …]` as an MDP, and rollouts.

A `done` transition leads to one added state, the last and the only terminal one. The state in the table cannot be made
terminal: it may also be entered without `done`, and in Taxi and CliffWalking it has transitions of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from messirl._types import Array, Flags, Floats, Ints
from messirl.data.errors import InputError
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories


class Outcomes(NamedTuple):
    """Entries of P, one per row, in the order (state, action, outcome)."""

    n_states: int
    n_actions: int
    state: Ints
    action: Ints
    probability: Floats
    entered: Ints
    reward: Floats
    done: Flags
    start: Floats | None

    @property
    def row(self) -> Ints:
        """Row s·A + a of each outcome in the transition matrix."""
        return self.state * self.n_actions + self.action


def from_gym(
    env: Any,
    *,
    discount: float,
    features: Any = None,
    horizon: int | None = None,
    feature_names: Sequence[str] | None = None,
) -> MDP:
    """Convert an environment with S states to an MDP with S + 1 states, the last one terminal.

    env : the environment, or its id ("FrozenLake-v1"); for options, create it with gymnasium.make
    features : of the original states, (S, d) or (S, A, d), dense or sparse (S, d), zero in the added state;
        None : one indicator per state;
        "entered" : one indicator for each state that a step enters, `done` or not (the expected one, (S, A, S));
        where every entry into a state is `done`, as into FrozenLake's goal, only "entered" has a feature for it
    """
    table = read_outcomes(env)
    n, m, end = table.n_states, table.n_actions, table.n_states
    target = np.where(table.done, end, table.entered)
    transitions = sp.csr_array((table.probability, (table.row, target)), shape=((n + 1) * m, n + 1))
    return MDP(
        transitions,
        _with_added_state(features, table),
        start=None if table.start is None else np.append(table.start, 0.0),
        discount=discount,
        horizon=horizon,
        terminal=np.arange(n + 1) == end,
        feature_names=feature_names,
    )


def gym_reward(env: Any) -> Floats:
    """Return r(s, a) = Σ p r over the entries of P[s][a], (S + 1, A) in the numbering of `from_gym`."""
    table = read_outcomes(env)
    size = (table.n_states + 1) * table.n_actions
    total = np.bincount(table.row, table.probability * table.reward, minlength=size)
    return np.asarray(total.reshape(-1, table.n_actions), dtype=np.float64)


def record(env: Any, policy: npt.ArrayLike | Callable[[int], int], n: int, *, length: int, seed: int) -> Trajectories:
    """Record n rollouts of at most `length` states, with actions; a terminating step leads to the added state.

    policy : π(a|s), (S, A) or (S + 1, A), or a function from a state to an action
    """
    n_states, n_actions = read_outcomes(env)[:2]
    if n < 1 or length < 2:
        raise InputError("record", f"n={n}, length={length}", "give n >= 1 and length >= 2")
    # Two different seeds: with the same one, gymnasium and NumPy would draw the same numbers.
    of_env, of_policy = np.random.SeedSequence(seed).spawn(2)
    act = policy if callable(policy) else _sampler(policy, n_states, n_actions, np.random.default_rng(of_policy))
    made = _environment(env)
    states, actions = [], []
    try:
        reset_seed: int | None = int(of_env.generate_state(1)[0])
        for _ in range(n):
            s = int(made.reset(seed=reset_seed)[0])
            reset_seed, row, moves, over = None, [s], [], False
            while not over and len(row) < length:
                action = int(act(s))
                s, _, terminated, truncated, _ = made.step(action)
                s, over = int(s), terminated or truncated
                moves.append(action)
                row.append(n_states if terminated else s)
            states.append(row)
            actions.append(moves)
    finally:
        if made is not env:
            made.close()
    return Trajectories.from_lists(states, actions)


def read_outcomes(env: Any) -> Outcomes:
    """Read and check the entries of `env.unwrapped.P`."""
    made = _environment(env)
    inner = getattr(made, "unwrapped", made)
    P, start = getattr(inner, "P", None), getattr(inner, "initial_state_distrib", None)
    if made is not env:
        made.close()
    where = env if isinstance(env, str) else type(inner).__name__
    if P is None:
        raise InputError(
            where, "it has no table P", "use an environment that has one, such as FrozenLake, Taxi or CliffWalking"
        )
    try:
        rows = [
            (s, a, p, int(after), r, bool(done))
            for s in range(len(P))
            for a in range(len(P[s]))
            for p, after, r, done in P[s][a]
        ]
    except (KeyError, IndexError, TypeError, ValueError):
        raise InputError(
            where, "P is not a table P[s][a] = [(p, s', r, done), …]", "number states and actions from 0"
        ) from None
    if not rows:
        raise InputError(where, "P is empty", "give at least one transition")
    kinds = (np.int64, np.int64, np.float64, np.int64, np.float64, np.bool_)
    columns: list[Any] = [
        np.array(column, dtype=kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)
    ]
    state, action, _, entered, _, _ = columns
    n = len(P)
    outside = (entered < 0) | (entered >= n)
    if outside.any():
        i = int(np.argmax(outside))
        raise InputError(where, f"P[{state[i]}][{action[i]}] leads to {entered[i]}", f"states must be 0 … {n - 1}")
    return Outcomes._make((n, int(action.max()) + 1, *columns, start))


def _environment(env: Any) -> Any:
    """Return the environment itself, or create it from its id."""
    if not isinstance(env, str):
        return env
    try:
        import gymnasium
    except ImportError:
        raise ImportError("an environment's id needs gymnasium: pip install 'messirl[gym]'") from None
    try:
        return gymnasium.make(env)
    except gymnasium.error.Error as error:
        raise InputError(env, "gymnasium cannot create it", str(error)) from None


def _with_added_state(features: Any, table: Outcomes) -> Any:
    """Extend features of S states by zeros for the added state."""
    n, m = table.n_states, table.n_actions
    if features is None:
        return sp.eye_array(n + 1, n, format="csr")
    if isinstance(features, str):
        if features != "entered":
            raise InputError(
                "features", repr(features), "give an array, 'entered', or None for one indicator per state"
            )
        entered = sp.csr_array((table.probability, (table.row, table.entered)), shape=((n + 1) * m, n))
        # With one action a sparse (S·1, d) would be read as state features.
        return entered if m > 1 else entered.toarray()[:, None, :]
    if sp.issparse(features):
        if features.shape[0] not in (n, n * m):
            raise InputError("features", f"has shape {features.shape}", f"give {n} or {n * m} rows")
        extra = 1 if features.shape[0] == n else m
        return sp.vstack([features, sp.csr_array((extra, features.shape[1]))], format="csr")
    given: Array = np.asarray(features)
    if given.ndim not in (2, 3) or given.shape[:-1] not in ((n,), (n, m)):
        remedy = f"give ({n}, d) or ({n}, {m}, d), without the added state"
        raise InputError("features", f"has shape {given.shape}", remedy)
    return np.concatenate([given, np.zeros((1, *given.shape[1:]))])


def _sampler(policy: Any, n_states: int, n_actions: int, rng: np.random.Generator) -> Callable[[int], int]:
    """Return a function that draws from the rows of a policy."""
    table = np.asarray(policy, dtype=np.float64)
    if table.shape not in ((n_states, n_actions), (n_states + 1, n_actions)):
        raise InputError("policy", f"has shape {table.shape}", f"give ({n_states}, {n_actions}) or a function")

    def draw(state: int) -> int:
        row = table[state]
        if not (row >= 0).all() or abs(row.sum() - 1.0) > 1e-6:
            raise InputError("policy", f"row {state} is {row}", "probabilities must be >= 0 and sum to 1")
        return int(rng.choice(n_actions, p=row / row.sum()))

    return draw
