"""The Markov decision process ⟨S, A, p⟩ with features (paper, section 2).

    r_θ(s) = θᵀ f(s)        or, with state-action features,        r_θ(s, a) = θᵀ f(s, a)

Dynamics are stored as one sparse matrix with row s·A + a; nothing here is ever a dense S×A×S array unless the
caller gives one. An MDP is checked when it is made, and is immutable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from messirl._checks import check_integer
from messirl._types import Flags, Floats
from messirl.data import axis_order
from messirl.data.mdp_validation import (
    as_rows,
    check_sizes,
    checked_discount,
    checked_dynamics,
    checked_features,
    checked_flags,
    checked_horizon,
    checked_names,
    checked_prior_policy,
    checked_start,
)
from messirl.data.repr_html import mdp_html

T = TypeVar("T")

NAMES = ("state_names", "action_names", "feature_names")


class MDP:
    """A finite Markov decision process: sparse dynamics, features, and how a trajectory starts and ends.

    It is checked when it is made, and is immutable; `replace` makes a changed copy.

    Parameters
    ----------
    transitions : array (S, A, S), or scipy.sparse (S·A, S) with row s·A + a
        The probability of each next state. An all-zero row is an action that is not allowed there; rows of terminal
        states are ignored.
    features : array (S, d) or (S, A, d), or scipy.sparse (S, d) or (S·A, d)
        Features of states, or of states and actions.
    start : array (S,), optional
        Distribution of the first state. None: at fit, the expert's own first states.
    discount : float
        γ, above 0 and at most 1.
    horizon : int, optional
        Number of states of a trajectory. None: endless (γ < 1), or until an end is reached.
    terminal : array of bool (S,), optional
        Entering such a state ends the episode; its features count once.
    allowed : array of bool (S, A), optional
        Actions that may be taken. None: those whose row of `transitions` is not zero.
    state_names, action_names, feature_names : sequences of str, optional
        Names in messages, files and pages. None: numbers.

    Attributes
    ----------
    transitions : scipy.sparse.csr_array (S·A, S)
        The probability of each next state; row s·A + a.
    features : array or scipy.sparse.csr_array
        As given, as floats.
    start, discount, horizon, terminal, allowed, state_names, action_names, feature_names
        As given; `terminal` and `allowed` are always arrays.
    n_states, n_actions, n_features : int
        S, A and d.
    state_action : bool
        Whether features depend on the action.
    deterministic : bool
        Whether every action leads to one state.

    References
    ----------
    Audiffren, Valko, Lazaric, Ghavamzadeh: Maximum Entropy Semi-Supervised Inverse Reinforcement Learning, IJCAI 2015,
    section 2.

    Examples
    --------
    Two states, of which the second is rewarded; the first action stays, the second goes to the other state.

    >>> import numpy as np
    >>> from messirl import MDP, soft_policy
    >>> stay, leave = np.eye(2), np.eye(2)[::-1]
    >>> mdp = MDP(np.stack([stay, leave], axis=1), features=[[0.0], [1.0]], discount=0.9)
    >>> mdp
    MDP(2 states, 2 actions, 1 state features, discount 0.9, no horizon, 0 terminal)
    >>> soft_policy(mdp, mdp.reward([2.0])).round(2)
    array([[0.14, 0.86],
           [0.86, 0.14]])
    """

    transitions: sp.csr_array
    features: Any
    start: Floats | None
    discount: float
    horizon: int | None
    terminal: Flags
    allowed: Flags
    state_names: tuple[str, ...] | None
    action_names: tuple[str, ...] | None
    feature_names: tuple[str, ...] | None
    n_states: int
    n_actions: int
    n_features: int
    state_action: bool
    deterministic: bool
    reference: Floats | None
    log_reference: Floats | None
    _given_allowed: Flags | None
    _memo: dict[str, Any]

    def __init__(
        self,
        transitions: Any,
        features: Any,
        *,
        start: npt.ArrayLike | None = None,
        discount: float,
        horizon: int | None = None,
        terminal: npt.ArrayLike | None = None,
        allowed: npt.ArrayLike | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        matrix, n_states, n_actions = as_rows(transitions)
        ends = checked_flags("terminal", terminal, (n_states,), default=False)
        permitted = checked_flags("allowed", allowed, (n_states, n_actions), default=True)
        matrix, permitted = checked_dynamics(matrix, ends, permitted, explicit=allowed is not None)
        table, state_action = checked_features(features, n_states, n_actions)
        n_features = int(table.shape[-1])

        put = object.__setattr__
        put(self, "transitions", matrix)
        put(self, "features", table)
        put(self, "horizon", checked_horizon(horizon))
        put(self, "discount", checked_discount(discount, self.horizon))
        put(self, "start", None if start is None else checked_start(start, n_states))
        put(self, "terminal", ends)
        put(self, "allowed", permitted)
        put(self, "state_names", checked_names("state_names", state_names, n_states))
        put(self, "action_names", checked_names("action_names", action_names, n_actions))
        put(self, "feature_names", checked_names("feature_names", feature_names, n_features))
        put(self, "n_states", n_states)
        put(self, "n_actions", n_actions)
        put(self, "n_features", n_features)
        put(self, "state_action", state_action)
        put(self, "deterministic", bool(np.all(matrix.data == 1.0)))
        put(self, "reference", None)
        put(self, "log_reference", None)
        put(self, "_given_allowed", None if allowed is None else np.array(allowed))
        put(self, "_memo", {})
        check_sizes(self)
        for value in self.__dict__.values():
            _freeze(value)

    @classmethod
    def from_array(cls, transitions: Any, features: Any, *, axes: str, **options: Any) -> MDP:
        """Return an MDP from transitions with their axes in another order, which is never guessed.

        axes : "sas" (as here and in imitation), "ssa" p[s, s', a] (as in irl-maxent) or "ass" p[a, s, s'] (as in
            mdptoolbox and econirl), also a list of A sparse matrices (S, S)
        """
        return cls(axis_order.read_axes(transitions, axes), features, **options)

    def to_array(self, axes: str) -> Floats:
        """Return the dense transition probabilities with their axes in the order "sas", "ssa" or "ass"."""
        return axis_order.dense_axes(self.transitions, axes)

    @classmethod
    def from_transitions(cls, trajectories: Any, features: Any, **options: Any) -> MDP:
        """Return an MDP with dynamics estimated from the transitions of trajectories.

        options : those of `messirl.dynamics.estimate_mdp`, which also reports gaps in the data
        """
        from messirl.data.counted_mdp import counted_mdp  # it imports this file

        check_integer("thin", options.pop("thin", 1))  # affects only the report, which is not made here
        return counted_mdp(trajectories, features, **options).mdp

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an MDP is immutable: make a changed copy with mdp.replace({name}=...)")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_memo": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for value in state.values():
            _freeze(value)

    def __repr__(self) -> str:
        kind = "state-action" if self.state_action else "state"
        end = f"horizon {self.horizon}" if self.horizon is not None else "no horizon"
        return (
            f"MDP({self.n_states} states, {self.n_actions} actions, {self.n_features} {kind} features, "
            f"discount {self.discount:.12g}, {end}, {int(self.terminal.sum())} terminal)"
        )

    _repr_html_ = mdp_html

    # -- how trajectories end -----------------------------------------------------------------------------------

    @property
    def must_end(self) -> bool:
        """True if only trajectories that end have a finite value: no horizon, and γ = 1."""
        return self.horizon is None and self.discount == 1.0

    @property
    def endless(self) -> bool:
        """True if trajectories may go on for ever: no horizon, and γ < 1."""
        return self.horizon is None and self.discount < 1.0

    @property
    def policy_shape(self) -> tuple[int, ...]:
        """(S, A), or (H − 1, S, A) with a horizon: one policy per step."""
        one = (self.n_states, self.n_actions)
        return one if self.horizon is None else (self.horizon - 1, *one)

    @property
    def first_step(self) -> int | None:
        """Number of the first step as `predict_proba` expects it: 0 with a horizon, else None."""
        return None if self.horizon is None else 0

    def at(self, step: Any, states: Any) -> tuple[Any, ...]:
        """Return the index of the rows of a policy for `states` at `step`, which matters only with a horizon."""
        return (states,) if self.horizon is None else (step, states)

    def first(self, values: Floats) -> Floats:
        """Return the values (S,) of the first step, from values (S,), or (H, S) with a horizon."""
        return values if self.horizon is None else values[0]

    def replace(self, **changes: Any) -> MDP:
        """Return a copy with some of the arguments changed."""
        keep = {name: getattr(self, name) for name in ("start", "discount", "horizon", "terminal", *NAMES)}
        keep["allowed"] = self._given_allowed
        known = {"transitions", "features", *keep}
        for name in changes:
            if name not in known:
                raise TypeError(f"an MDP has no argument {name!r}: choose from {', '.join(sorted(known))}")
        if "features" in changes and "feature_names" not in changes:
            keep["feature_names"] = None
        transitions = changes.pop("transitions", self.transitions)
        features = changes.pop("features", self.features)
        changed = MDP(transitions, features, **{**keep, **changes})
        return changed if self.reference is None else changed.with_prior_policy(self.reference)

    def with_prior_policy(self, policy: npt.ArrayLike | None) -> MDP:
        """Return the same MDP with a prior policy π₀, (S, A); None: without one.

        The model then maximises entropy relative to π₀: V(s) = log Σ_a π₀(a|s) exp(r + γ E V), so that a reward of zero
        gives π₀ itself. π₀ must be positive for every allowed action; rows of terminal states are ignored.
        """
        table = None if policy is None else checked_prior_policy(self, policy)
        logs = None if table is None else np.log(table, out=np.zeros_like(table), where=table > 0)
        other = object.__new__(MDP)  # shares the memo: nothing in it depends on π₀
        other.__dict__.update(self.__dict__, reference=table, log_reference=logs)
        _freeze(table)
        _freeze(logs)
        return other

    def scaled(self) -> MDP:
        """Scale as in the paper: divide each feature by its maximum, times (1 − γ), so that counts lie in [0, 1]."""
        if self.discount == 1.0:
            raise ValueError("scaled() multiplies by 1 - discount, which is 0 here: scale the features yourself")
        flat = self.feature_rows
        low = np.asarray(flat.min(axis=0).todense() if sp.issparse(flat) else flat.min(axis=0)).ravel()
        top = np.asarray(flat.max(axis=0).todense() if sp.issparse(flat) else flat.max(axis=0)).ravel()
        if np.any(low < 0):
            worst = int(np.argmin(low))
            raise ValueError(
                f"feature {self.feature_label(worst)} has the minimum {low[worst]:g}: scaled() needs features >= 0; "
                "shift it, or split it into two features of one sign"
            )
        factor = (1.0 - self.discount) / np.where(top > 0, top, 1.0)
        scaled = flat @ sp.diags_array(factor) if sp.issparse(flat) else self.features * factor
        return self.replace(features=scaled, feature_names=self.feature_names)

    @property
    def feature_rows(self) -> Any:
        """Features as a matrix: (S, d), or (S·A, d) with row s·A + a."""
        if self.state_action and not sp.issparse(self.features):
            return self.features.reshape(self.n_states * self.n_actions, self.n_features)
        return self.features

    def reward(self, theta: npt.ArrayLike) -> Floats:
        """Return r_θ = f θ, shape (S,), or (S, A) with state-action features."""
        flat = np.asarray(self.features @ np.asarray(theta, dtype=np.float64))
        return flat.reshape(self.n_states, self.n_actions) if self.state_action else flat

    def counts(self, visitation: Floats) -> Floats:
        """Return Σ_s ρ(s) f(s) (Eq. 8) for a visitation of the reward's shape."""
        return np.asarray(self.feature_rows.T @ visitation.reshape(-1))

    @property
    def feature_ids(self) -> tuple[str, ...]:
        """Names of the features, or their numbers where they have none, for tables and files."""
        return self.feature_names or tuple(map(str, range(self.n_features)))

    def feature_label(self, index: int) -> str:
        """Return the name of a feature, or its number where it has none."""
        return repr(self.feature_names[index]) if self.feature_names else str(index)

    def state_label(self, index: int) -> str:
        """Return the name of a state, or its number where it has none."""
        return repr(self.state_names[index]) if self.state_names else str(index)

    def memo(self, key: str, build: Callable[[], T]) -> T:
        """Return `build()`, computed once per MDP and key."""
        if key not in self._memo:
            self._memo[key] = build()
        return cast(T, self._memo[key])


def _freeze(value: Any) -> None:
    """Make an array, or the parts of a sparse one, read-only; leave anything else unchanged."""
    if sp.issparse(value):
        for part in (value.data, value.indices, value.indptr):
            part.flags.writeable = False
    elif isinstance(value, np.ndarray):
        value.flags.writeable = False
