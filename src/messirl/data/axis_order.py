"""Axis orders of transition tensors in other packages: s state, a action, s' next state.

    ssa   p[s, s', a]   irl-maxent
    ass   p[a, s, s']   mdptoolbox (also a list of A sparse matrices), econirl
    sas   p[s, a, s']   imitation, messirl

Each converter checks that the probabilities sum to one over s' in the stated order, except for all-zero rows (an action
that is not allowed). It never guesses: if another order would fit, the error names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from messirl._types import Floats
from messirl.data.errors import InputError
from messirl.data.mdp_validation import SUM_TOLERANCE

AXES = {"sas": (0, 1, 2), "ssa": (0, 2, 1), "ass": (1, 0, 2)}  # positions of the axes s, a, s'


def read_axes(transitions: Any, axes: str) -> Floats | sp.csr_array:
    """Return transitions in the order s, a, s' of the MDP from another order of their axes.

    axes : "sas", "ssa" or "ass"; with "ass" also a list of A sparse matrices (S, S), which become one (S·A, S)
    """
    if axes not in AXES:
        raise ValueError(f"axes={axes!r}: must be one of {', '.join(AXES)}")
    if axes == "ass" and isinstance(transitions, Sequence) and len(transitions) and all(map(sp.issparse, transitions)):
        return _interleaved(transitions)
    return _read(transitions, axes)


def dense_axes(transitions: Any, axes: str) -> Floats:
    """Return dense transitions in this order of axes, from an array (S, A, S) or a sparse matrix (S·A, S)."""
    if axes not in AXES:
        raise ValueError(f"axes={axes!r}: must be one of {', '.join(AXES)}")
    return np.ascontiguousarray(_dense(transitions).transpose(np.argsort(AXES[axes])))


def _read(transitions: Any, order: str) -> Floats:
    given = np.asarray(transitions)
    if given.dtype.kind not in "fiub":
        raise TypeError(f"transitions must be numbers, not {given.dtype}")
    what = f"has shape {given.shape}"
    if given.ndim == 3 and given.size:
        converted = np.ascontiguousarray(given.transpose(AXES[order]), dtype=np.float64)
        fault = _fault(converted)
        if fault is None:
            return converted
        what += f"; in the order {order}, {fault}"
    others = [] if given.ndim != 3 else [o for o in AXES if o != order and _fault(given.transpose(AXES[o])) is None]
    hint = f"the order {' or '.join(others)} would fit; use axes={' or '.join(map(repr, others))}"
    raise InputError("transitions", what, hint if others else "give three axes that sum to one over the next state")


def _fault(p: Any) -> str | None:
    """Describe the fault of p[s, a, s'], or return None."""
    if p.shape[0] != p.shape[2]:
        return f"there are {p.shape[0]} states but {p.shape[2]} next states"
    if not np.isfinite(p).all() or (p < 0).any():
        return "some probability is negative or not finite"
    sums = p.sum(axis=2)
    off = (np.abs(sums - 1.0) > SUM_TOLERANCE) & (sums != 0)
    if off.any():
        s, a = np.argwhere(off)[0]
        return f"state {s}, action {a} sums to {sums[s, a]:.4f}"
    return "every row is zero" if not sums.any() else None


def _interleaved(matrices: Sequence[Any]) -> sp.csr_array:
    """Interleave matrices: row s·A + a of the result is row s of matrix a."""
    n_states, checked = matrices[0].shape[0], []
    for a, matrix in enumerate(matrices):
        if matrix.shape != (n_states, n_states):
            raise InputError("transitions", f"matrix {a} has shape {matrix.shape}", f"give ({n_states}, {n_states})")
        one = sp.coo_array(matrix, dtype=np.float64)
        if not np.isfinite(one.data).all() or (one.data < 0).any():
            raise InputError("transitions", f"matrix {a} has negative or non-finite entries", "give probabilities")
        sums = np.asarray(one.sum(axis=1)).ravel()
        off = (np.abs(sums - 1.0) > SUM_TOLERANCE) & (sums != 0)
        if off.any():
            s = int(np.argmax(off))
            raise InputError(
                "transitions", f"matrix {a}, row {s} sums to {sums[s]:.4f}, not 1", "check whether it is transposed"
            )
        checked.append(one)
    order = np.arange(len(checked) * n_states).reshape(-1, n_states).T.ravel()
    return sp.csr_array(sp.vstack(checked, format="csr")[order])


def _dense(transitions: Any) -> Floats:
    if sp.issparse(transitions):
        rows, n_states = transitions.shape
        if not n_states or rows % n_states:
            raise InputError("transitions", f"has shape {transitions.shape}", "give S*A rows and S columns")
        transitions = transitions.toarray().reshape(n_states, rows // n_states, n_states)
    return _read(transitions, "sas")
