"""DemoDICE: match the experts' occupancy, regularised towards the occupancy of all trajectories.

    minimise  KL(d ‖ d_E) + α KL(d ‖ d_U)   over occupancies d ≥ 0 that obey the flow of the dynamics,

    Σ_a d(s,a) = (1 − γ) start(s) + γ Σ_{s',a'} p(s|s',a') d(s',a')        for every reachable state s

d_E and d_U are the discounted state-action densities of the experts and of all trajectories. With r = log d_E/d_U the
objective is (1 + α) KL(d ‖ d_U) − E_d[r]. Its dual in ν, one number per state, is convex and smooth,

    minimise  (1 − γ) Σ_s start(s) ν(s) + (1 + α) log Σ_{s,a} d_U exp((r + γ Σ p ν − ν) / (1 + α))

and d = d_U exp(…)/Z at its minimum. Newton's method finds it: with B = γP − E the rows of the exponent and D = diag(d),
its step solves the sparse system (Bᵀ D B) x = −(1 + α) (b + Bᵀ d), whose right side is the residual of the flow.

The paper's ν is a network and uses the transitions in the data; here the dynamics are known, and the optimum is exact.
Terminal states are absorbing: they keep the mass of the trajectories that end there. With a horizon there is a ν for
every step, and the densities are per step.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from messirl._parameters import default
from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.data.trajectories import TrajectoriesLike, as_trajectories
from messirl.estimators._count_cloning import CountedPolicy, start_distribution
from messirl.estimators._occupancy_flow import OccupancyFlow
from messirl.estimators._prior_policy import action_counts, smoothed
from messirl.estimators._streaming import refuse_streamed
from messirl.objective import check_possible

ARMIJO = 1e-4
NEVER = 1e-200  # places with less flow are ignored
ROUNDING = 1e-14  # relative changes of the dual below this are rounding errors


@dataclass(eq=False, repr=False, kw_only=True)
class DemoDICE(CountedPolicy):
    """The policy whose occupancy is closest to the experts', regularised towards that of all trajectories.

    minimise KL(d ‖ d_E) + α KL(d ‖ d_U) over the occupancies d that the dynamics allow, and π(a|s) = d(s,a)/d(s). The
    optimum is exact.

    Needs the dynamics, and a discount below 1 or a horizon; transitions without actions are shared among the actions
    in proportion to their probability under each. Needs unlabelled trajectories. Goals are refused.

    Parameters
    ----------
    alpha : float
        α, the strength of the regularisation towards the occupancy of experts and unlabelled trajectories together.
    smoothing : float
        The share of each density that is uniform over all possible actions; above 0, below 1.
    step_weight : float
        With a horizon, the share of a step's density that comes from its own choices; the rest is pooled over all
        steps.
    max_iter : int
        Maximum number of Newton steps.
    tol : float
        Largest violation of the flow at convergence, relative to the flow through a state.

    Attributes
    ----------
    occupancy_ : array (S, A), or (H − 1, S, A) with a horizon
        d, the occupancy of state-action pairs; together with the mass that has ended it sums to one.
    values_ : array (S,), or (H − 1, S) with a horizon
        ν, the multipliers of the flow; 0 for unreachable states.
    objective_ : float
        KL(d ‖ d_E) + α KL(d ‖ d_U) at the optimum.
    flow_gap_ : float
        The largest violation of the flow, relative to the flow through a state.
    n_iter_ : int
        Number of Newton steps.

    References
    ----------
    Kim, Seo, Lee, Jeon, Hwang, Yang, Kim: DemoDICE: Offline Imitation Learning with Supplementary Imperfect
    Demonstrations, ICLR 2022.

    Examples
    --------
    Six states in a row; the experts go right, the unlabelled trajectories go anywhere.

    >>> import numpy as np
    >>> from messirl import MDP, sample
    >>> from messirl.estimators import DemoDICE
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> mdp = MDP(moves, features=np.linspace(0, 1, 6)[:, None], discount=0.9, start=np.full(6, 1 / 6))
    >>> expert = sample(mdp, np.tile([0.1, 0.9], (6, 1)), 5, length=20, random_state=0)
    >>> others = sample(mdp, np.full((6, 2), 0.5), 20, length=20, random_state=1)
    >>> model = DemoDICE().fit(mdp, expert, others)
    >>> model.predict_proba([0, 3]).round(2), model.converged_
    (array([[0.1 , 0.9 ],
           [0.01, 0.99]]), True)
    """

    _arrays: ClassVar[tuple[str, ...]] = ("occupancy_", "values_")
    _facts: ClassVar[tuple[str, ...]] = ("objective_", "flow_gap_", "n_iter_")

    alpha: float = default("alpha", "DemoDICE")
    smoothing: float = default("smoothing", "DemoDICE")
    step_weight: float = default("step_weight")
    max_iter: int = default("max_iter", "DemoDICE")
    tol: float = default("tol", "DemoDICE")

    def fit(self, mdp: MDP, expert: TrajectoriesLike, unlabelled: Any = None) -> Self:
        """Fit to the experts' occupancy, regularised towards that of all trajectories."""
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        self._check_arguments()
        alpha, tol, most, even, own_step = self.alpha, self.tol, self.max_iter, self.smoothing, self.step_weight
        refuse_streamed(unlabelled, "DemoDICE", "discounts every choice by its step")
        unlabelled = self._read(mdp, expert, unlabelled, needs_unlabelled=True)
        if mdp.must_end:
            raise ValueError(
                "DemoDICE needs a discount below 1 or a horizon, since occupancies may be infinite otherwise: use "
                "MESSI or ISWBC"
            )
        check_possible(mdp, expert + unlabelled, len(expert))
        flow, everyone = OccupancyFlow.of(mdp, start_distribution(mdp, expert)), expert + unlabelled
        own, usual = (flow.density(some, even, own_step) for some in (expert, everyone))
        found = nearest_occupancy(flow, own, usual, alpha, tol, most)
        self.occupancy_, self.values_ = flow.table(found.occupancy), flow.over_states(found.values)
        elsewhere = smoothed(mdp, action_counts(mdp, everyone), 1.0)  # in unreachable states
        self._set_fitted(mdp, expert, smoothed(mdp, self.occupancy_, 0.0, elsewhere), converged=found.gap <= tol)
        self.objective_, self.flow_gap_, self.n_iter_ = found.objective, found.gap, found.steps
        if not self.converged_:
            warnings.warn(
                f"DemoDICE did not converge in {found.steps} steps: the relative violation of the flow is "
                f"{found.gap:.2g}, more than tol={tol:g}. Raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self


@dataclass(frozen=True, eq=False)
class Found:
    """The optimum: d (m,), ν (n,), the objective, the violation of the flow, and the number of Newton steps."""

    occupancy: Floats
    values: Floats
    objective: float
    gap: float
    steps: int


def nearest_occupancy(
    flow: OccupancyFlow, own: Floats, reference_occupancy: Floats, alpha: float, tol: float, most: int
) -> Found:
    """Return the occupancy d that minimises KL(d ‖ own) + α KL(d ‖ usual), by Newton's method on the dual.

    own, reference_occupancy : (m,) densities of all choices, none zero
    """
    b, rows, k = flow.source, flow.rows, 1.0 + alpha
    log_own, log_usual = np.log(own), np.log(reference_occupancy)
    base = (log_own + alpha * log_usual) / k  # log d_U + r / (1 + α)

    def dual(values: Floats) -> tuple[float, Floats]:
        logs = base + rows @ values / k
        top = float(logsumexp(logs))
        return float(b @ values) + k * top, logs - top

    values = np.zeros(b.size)
    here, logs = dual(values)
    for steps in range(most + 1):
        d = np.exp(logs)
        slope, through = b + rows.T @ d, np.bincount(flow.at, d, b.size)
        met = through > NEVER
        gap = float((np.abs(slope[met]) / through[met]).max())
        if gap <= tol or steps == most:
            break
        size = np.where(met, 1.0 / np.sqrt(np.where(met, through, 1.0)), 0.0)  # scales all places alike
        scaled = sp.diags_array(np.sqrt(d)) @ rows @ sp.diags_array(size)
        system = scaled.T @ scaled + sp.diags_array(np.where(met, 0.0, 1.0))
        way = -k * size * splu(sp.csc_array(system)).solve(size * slope)
        promised, length = -float(slope @ way), 1.0
        while length > 1e-8:
            there, ahead = dual(values + length * way)
            if there <= here - ARMIJO * length * promised + ROUNDING * (1.0 + abs(here)):
                break
            length *= 0.5
        else:
            break
        values, here, logs = values + length * way, there, ahead
    objective = float(d @ (logs - log_own) + alpha * (d @ (logs - log_usual)))
    return Found(d, values, objective, gap, steps)
