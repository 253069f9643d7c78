"""Checks of the arguments of an MDP: each returns the value in the form that the MDP stores, or raises an error."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from messirl._checks import check_numeric_array, is_number, is_whole
from messirl._memory_guard import check_memory
from messirl._types import Flags, Floats

if TYPE_CHECKING:
    from messirl.data.mdp import MDP

SUM_TOLERANCE = 1e-6  # probabilities that come from float32 tables sum to one this closely
MOVE, ROW = 28, 60  # bytes per transition and per row of transitions, to make an MDP and to plan with it
LARGEST_VALUE = 1e100  # of a feature: its square, summed over many steps, must not overflow
LONGEST = 1_000_000  # states of a trajectory: planning takes one step per state
NEAREST = 0.99999999  # γ < 1 closest to 1 without a horizon: values are 1 / (1 − γ) times rewards, and lose digits


def as_rows(transitions: Any) -> tuple[sp.csr_array, int, int]:
    """Return transitions as a sparse matrix (S·A, S) with row s·A + a, and the numbers of states and actions."""
    if sp.issparse(transitions):
        rows, n_states = transitions.shape
        if n_states == 0 or rows == 0 or rows % n_states:
            raise ValueError(
                f"sparse transitions have shape {transitions.shape}: they need S*A rows (row s*A + a) and S columns"
            )
        size = MOVE * transitions.nnz + ROW * rows
        what = f"an MDP of {n_states} states and {transitions.nnz} transitions"
        check_memory(what, size, "{share:.0%} of its states would fit")
        matrix = sp.csr_array(transitions, dtype=np.float64, copy=True)
        matrix.sum_duplicates()
        return matrix, int(n_states), int(rows // n_states)
    shape = getattr(transitions, "shape", ())
    check_memory(
        f"a copy of transitions {shape}", 8.0 * np.prod(shape, dtype=float), "give a scipy.sparse matrix (S*A, S)"
    )
    dense = check_numeric_array("transitions", transitions)
    if dense.ndim != 3 or dense.shape[0] != dense.shape[2] or 0 in dense.shape:
        raise ValueError(
            f"transitions have shape {dense.shape}: give an array (S, A, S) in the order state, action, next state, "
            "or a scipy.sparse matrix (S*A, S)"
        )
    n_states, n_actions, _ = dense.shape
    return sp.csr_array(dense.reshape(n_states * n_actions, n_states)), n_states, n_actions


def checked_flags(what: str, value: npt.ArrayLike | None, shape: tuple[int, ...], *, default: bool) -> Flags:
    """Return an array of bool of the given shape; None gives `default` everywhere."""
    if value is None:
        return np.full(shape, default)
    flags = np.array(value)
    if flags.dtype != np.bool_:
        raise TypeError(f"{what} must be an array of bool of shape {shape}, not of {flags.dtype}")
    if flags.shape != shape:
        raise ValueError(f"{what} has shape {flags.shape}, not {shape}")
    return flags


def checked_dynamics(
    matrix: sp.csr_array, terminal: Flags, allowed: Flags, *, explicit: bool
) -> tuple[sp.csr_array, Flags]:
    """Return the transitions without those of terminal states, and the actions that have some, (S, A)."""
    n_states, n_actions = allowed.shape

    def place(entry: int) -> str:
        row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
        return f"transitions[{row // n_actions}, {row % n_actions}, {int(matrix.indices[entry])}]"

    for wrong, what in ((~np.isfinite(matrix.data), "is not finite"), (matrix.data < 0, "is negative")):
        if wrong.any():
            entry = int(np.argmax(wrong))
            raise ValueError(f"{place(entry)} = {matrix.data[entry]} {what}: probabilities lie in [0, 1]")

    usable = allowed & ~terminal[:, None]
    sums = np.asarray(matrix.sum(axis=1)).reshape(n_states, n_actions)
    if explicit:
        empty = usable & (sums == 0)
        if empty.any():
            s, a = np.argwhere(empty)[0]
            raise ValueError(
                f"allowed[{s}, {a}] is True but transitions[{s}, {a}] is all zero: fill the row, or set it to False"
            )
    usable &= sums > 0
    off = usable & (np.abs(sums - 1.0) > SUM_TOLERANCE)
    if off.any():
        s, a = np.argwhere(off)[0]
        raise ValueError(
            f"transitions[{s}, {a}] sums to {sums[s, a]:.4f}, not 1: renormalise the row, or make state {s} terminal"
        )
    # Only sums that are off by more than rounding are corrected, so that a saved MDP reads back equal.
    uneven = usable & (np.abs(sums - 1.0) > 1e-12)
    factor = np.where(uneven, 1.0 / np.where(uneven, sums, 1.0), usable).ravel()
    changed = np.flatnonzero(np.abs(factor - 1.0) > 0)
    for some in np.array_split(changed, changed.size // 2**20 + 1):
        width = np.diff(matrix.indptr)[some]
        first = np.repeat(matrix.indptr[some] - np.cumsum(width) + width, width)
        matrix.data[first + np.arange(first.size)] *= np.repeat(factor[some], width)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    width = np.diff(matrix.indptr)
    matrix.data[np.repeat(width == 1, width)] = 1.0  # a single next state is certain, whatever the rounding
    return matrix, usable


def checked_features(features: Any, n_states: int, n_actions: int) -> tuple[Any, bool]:
    """Return features as an array or sparse matrix of finite numbers, and whether they are of states and actions."""
    if sp.issparse(features):
        table = sp.csr_array(features, dtype=np.float64, copy=True)
        table.sum_duplicates()
        rows, d = table.shape
        if rows not in (n_states, n_states * n_actions) or d == 0:
            raise ValueError(
                f"sparse features have shape {table.shape}: they need {n_states} rows, one per state, or "
                f"{n_states * n_actions}, row s*A + a, and at least one column"
            )
        if not np.all(np.isfinite(table.data)):
            coo = table.tocoo()
            at = int(np.argmax(~np.isfinite(coo.data)))
            raise ValueError(f"features[{coo.row[at]}, {coo.col[at]}] is not finite: fill it in or drop the feature")
        return table, rows != n_states
    array = check_numeric_array("features", features)
    if array.shape[:-1] not in ((n_states,), (n_states, n_actions)) or array.shape[-1] == 0:
        raise ValueError(
            f"features have shape {array.shape}: give ({n_states}, d), or ({n_states}, {n_actions}, d) "
            "for state-action features"
        )
    if not np.all(np.isfinite(array)):
        where = ", ".join(str(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"features[{where}] is not finite: fill it in or drop the feature")
    return np.ascontiguousarray(array), array.ndim == 3


def check_sizes(mdp: MDP) -> None:
    """Refuse features whose squares would overflow: they are a mistake, or need another unit."""
    largest = abs(mdp.feature_rows).max(axis=0)
    size = np.asarray(largest.todense() if sp.issparse(largest) else largest).ravel()
    for wrong, what, remedy in (
        (size > LARGEST_VALUE, "reaches", "divide"),
        ((size > 0) & (size < 1.0 / LARGEST_VALUE), "reaches only", "multiply"),
    ):
        if wrong.any():
            j = int(np.argmax(wrong))
            power = int(np.floor(np.log10(size[j])))
            said = f"feature {mdp.feature_label(j)} {what} {size[j]:.2g}, outside the supported range"
            raise ValueError(f"{said}: {remedy} it by 1e{abs(power)}")


def checked_discount(discount: float, horizon: int | None) -> float:
    """Return the discount, in (0, 1]."""
    if not is_number(discount):
        raise TypeError(f"discount must be a number in (0, 1], not {discount!r}")
    if not 0.0 < float(discount) <= 1.0:
        raise ValueError(f"discount is {discount}, but must lie in (0, 1]")
    if horizon is None and NEAREST < float(discount) < 1.0:
        remedy = f"give one up to {NEAREST}, a horizon, or 1 where trajectories end"
        raise ValueError(f"discount is {discount}, so close to 1 that values lose too many digits: {remedy}")
    return float(discount)


def checked_horizon(horizon: int | None) -> int | None:
    """Return the number of states of a trajectory, or None."""
    if horizon is None:
        return None
    if not is_whole(horizon):
        raise TypeError(f"horizon must be a whole number of states or None, not {horizon!r}")
    if not 1 <= horizon <= LONGEST:
        raise ValueError(f"horizon is {horizon}: a trajectory has at least one state, and at most {LONGEST:,}")
    return int(horizon)


def checked_start(start: npt.ArrayLike, n_states: int) -> Floats:
    """Return the start distribution (S,), which sums to one."""
    array = check_numeric_array("start", start)
    if array.shape != (n_states,):
        raise ValueError(f"start has shape {array.shape}: give the probability of each of the {n_states} states")
    bad = ~np.isfinite(array) | (array < 0)
    if bad.any():
        s = int(np.argmax(bad))
        raise ValueError(f"start[{s}] = {array[s]}: probabilities are finite and not negative")
    total = float(array.sum())
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise ValueError(f"start sums to {total:.4f}, not 1: divide it by its sum")
    return array / total if abs(total - 1.0) > 1e-12 else array


def checked_prior_policy(mdp: MDP, policy: npt.ArrayLike) -> Floats:
    """Return a policy (S, A) that is positive on all allowed actions, with rows that sum to one."""
    table = check_numeric_array("reference", policy)
    if table.shape != mdp.allowed.shape:
        raise ValueError(f"reference has shape {table.shape}, not {mdp.allowed.shape} (states, actions)")
    moving = mdp.allowed.any(axis=1)
    table[~moving] = 0.0
    sums = table.sum(axis=1)
    for wrong, why in (
        (~np.isfinite(table) | (table < 0), "probabilities are finite and not negative"),
        ((table != 0) & ~mdp.allowed, "an action that is not allowed there must have probability 0"),
        ((table == 0) & mdp.allowed, "an allowed action needs a probability above 0, or it could never be taken"),
        ((np.abs(sums - 1.0) > SUM_TOLERANCE)[:, None] & mdp.allowed, "it must sum to 1"),
    ):
        if wrong.any():
            s = int(np.argmax(wrong.any(axis=1)))
            raise ValueError(f"reference of state {mdp.state_label(s)} is {table[s]}: {why}")
    uneven = moving & (np.abs(sums - 1.0) > 1e-12)  # within rounding it is unchanged, so that it reads back equal
    return np.asarray(table / np.where(uneven, sums, 1.0)[:, None])


def checked_names(what: str, names: Sequence[str] | None, n: int) -> tuple[str, ...] | None:
    """Return n distinct names, or None."""
    if names is None:
        return None
    if isinstance(names, str | Set) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{what} must be a sequence of strings, in order of their numbers")
    if len(names) != n:
        raise ValueError(f"{what} has length {len(names)}, but {n} names are needed")
    if len(set(names)) != n:
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"{what} contains {twice!r} twice: names must be unique")
    return tuple(map(str, names))  # plain strings: np.str_ is displayed as np.str_('a')
