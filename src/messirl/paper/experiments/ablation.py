"""Comparison of learners: effects of objective, start and ridge, and of uses of unlabelled trajectories.

All learners are at their exact optimum, with one expert trajectory. First come learners from experts only, with either
objective (counts, choices), with the start of the domain or of the expert, with a ridge or without. Then, with the
expert's own start, come uses of unlabelled trajectories: a penalty (MESSI, complete graph, standardised L2, all of the
same trace), a prior policy estimated from them (reference), or pooling with a weight. Policies are always evaluated
from the start of the domain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from messirl.estimators import MESSI, MaxEntIRL
from messirl.estimators._convergence_report import ignore_convergence_warnings
from messirl.estimators.registry import METHODS, baseline
from messirl.objective import OBJECTIVES
from messirl.paper.domains import Scene, mixture
from messirl.paper.experiments.paper_settings import Setting
from messirl.paper.experiments.training_runs import EXACT_ITERATIONS
from messirl.planning import state_visitation

FIGURE = "learners"  # name in the table of results
EXPERT_ONLY = "experts alone"
PENALTIES = {METHODS[name].label: name for name in ("MESSI", "Complete", "RidgeStd")}
REFERENCE = "reference"
POOLING = {"pooling at 0.03": 0.03, "pooling at 1": 1.0}
WAYS = (*PENALTIES, REFERENCE, *POOLING)
MIXTURES = ("mu1", "mu3", "MAX")
RIDGE = 1e-3
STRENGTH = 10.0  # smoothing of the prior policy, in choices per state
STARTS = ("given", "own")


@dataclass(frozen=True)
class Learner:
    """One training: the use of unlabelled trajectories, their mixture, and the settings of the learner.

    way : ALONE, or one of WAYS
    mixture : source of the unlabelled trajectories
    start : "given" by the domain, or the trajectories' "own"
    """

    way: str
    mixture: str | None = None
    objective: str = "counts"
    start: str = "own"
    ridge: float = 0.0

    @property
    def name(self) -> str:
        """Name in the table of results."""
        words = (self.way, *(() if self.mixture is None else (self.mixture,)), self.objective, f"{self.start} start")
        return ", ".join(words) + (f", ridge {self.ridge:g}" if self.ridge else "")


def expert_only_learner(objective: str) -> Learner:
    """Return the baseline of an objective: experts only, own start, with a ridge."""
    return Learner(EXPERT_ONLY, None, objective, "own", RIDGE)


def with_unlabelled(way: str, mixture: str, objective: str) -> Learner:
    """Return a learner that uses unlabelled trajectories, with its own start; penalties have no additional ridge."""
    return Learner(way, mixture, objective, "own", 0.0 if way in PENALTIES else RIDGE)


LEARNERS = (
    *(Learner(EXPERT_ONLY, None, o, start, ridge) for o in OBJECTIVES for start in STARTS for ridge in (0.0, RIDGE)),
    *(Learner("MESSI", source, "counts", "given") for source in MIXTURES),
    *(with_unlabelled(way, source, o) for o in OBJECTIVES for way in WAYS for source in MIXTURES),
)


def learners(setting: Setting) -> list[Learner]:
    """Return the learners of a domain, on the gridworld without the complete graph, which nearly equals MESSI there."""
    return [one for one in LEARNERS if setting.domain != "gridworld" or one.way != METHODS["Complete"].label]


def run_learners(setting: Setting, scene: Scene) -> Iterator[dict[str, Any]]:
    """Yield the rows of one run, one per learner; equal trainings are done once."""
    known: dict[Learner, dict[str, Any]] = {}
    for learner in learners(setting):
        same = canonical(learner)
        if same not in known:
            known[same] = learn(same, setting, scene)
        yield {"method": learner.name, "x": 0.0, **known[same]}


def canonical(learner: Learner) -> Learner:
    """Return the learner of the same training: the likelihood of choices does not depend on the start."""
    return replace(learner, start="own") if learner.objective == "choices" else learner


def learn(learner: Learner, setting: Setting, scene: Scene) -> dict[str, Any]:
    """Train one learner; return its result and the performance of its policy from the start of the domain."""
    model, data = estimator(learner, setting, scene)
    mdp = scene.mdp
    if learner.start == "own":
        mdp = mdp.memo("own start", lambda: scene.mdp.replace(start=None))
    with ignore_convergence_warnings():  # the features of the gridworld are not identified
        model.fit(mdp, *data)
    return {
        "iteration": model.n_iter_,
        "performance": scene.performance(state_visitation(scene.mdp, model.policy_)),
        "theta_norm": float(model.history_.theta_norm[-1]),
        "objective": model.objective_,
        "converged": bool(model.converged_),
    }


def estimator(learner: Learner, setting: Setting, scene: Scene) -> tuple[Any, tuple[Any, ...]]:
    """Return the estimator of a learner and its training data."""
    common: dict[str, Any] = {
        "objective": learner.objective,
        "theta_max": setting.theta_max,
        "solver": "lbfgs",
        "max_iter": EXACT_ITERATIONS,
    }
    if learner.mixture is None:
        return MaxEntIRL(ridge=learner.ridge, **common), (scene.expert,)
    unlabelled = mixture(scene, learner.mixture, setting.u, setting.nu)
    if learner.way in PENALTIES:
        model = MESSI(scene.similarity, lambda0=setting.lambda0, **common)
        return baseline(PENALTIES[learner.way], model, scene.mdp, scene.expert, unlabelled)
    if learner.way == REFERENCE:
        common |= {"reference": "unlabelled", "reference_strength": STRENGTH}
    else:
        common["unlabelled_weight"] = POOLING[learner.way]
    return MaxEntIRL(ridge=learner.ridge, **common), (scene.expert, unlabelled)
