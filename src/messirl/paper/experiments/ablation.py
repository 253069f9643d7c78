"""A second table: what objective, start and ridge are worth to a learner, and what unlabelled trajectories then add.

All at the exact optimum, with one expert trajectory. First the expert alone, with either objective (counts, choices),
from the domain's start or the expert's own, with a ridge or without. Then, from the expert's own start, what one may do
with unlabelled trajectories: penalise by them (MESSI, complete graph, standardised L2, all of the same trace), measure
entropy against what is usual among them (reference), or pool them with the expert at a weight. Whatever a learner
takes for the start, its policy is measured from the domain's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from messirl.estimators import MESSI, MaxEntIRL
from messirl.estimators._convergence_report import quietly
from messirl.estimators.registry import METHODS, baseline
from messirl.objective import OBJECTIVES
from messirl.paper.domains import Scene, mixture
from messirl.paper.experiments.paper_settings import Setting
from messirl.paper.experiments.training_runs import EXACT_ITERATIONS
from messirl.planning import state_visitation

FIGURE = "learners"  # what the results table calls it
ALONE = "experts alone"
PENALTIES = {METHODS[name].label: name for name in ("MESSI", "Complete", "RidgeStd")}
REFERENCE = "reference"
POOLING = {"pooling at 0.03": 0.03, "pooling at 1": 1.0}
WAYS = (*PENALTIES, REFERENCE, *POOLING)
MIXTURES = ("mu1", "mu3", "MAX")
RIDGE = 1e-3
STRENGTH = 10.0  # of the reference's prior, in choices per state
STARTS = ("given", "own")


@dataclass(frozen=True)
class Learner:
    """One training: what is done with which unlabelled trajectories, and the learner it is done in.

    way : ALONE, or one of WAYS
    mixture : where the unlabelled trajectories come from
    start : "given" by the domain, or the trajectories' "own"
    """

    way: str
    mixture: str | None = None
    objective: str = "counts"
    start: str = "own"
    ridge: float = 0.0

    @property
    def name(self) -> str:
        """What the results table calls it."""
        words = (self.way, *(() if self.mixture is None else (self.mixture,)), self.objective, f"{self.start} start")
        return ", ".join(words) + (f", ridge {self.ridge:g}" if self.ridge else "")


def alone(objective: str) -> Learner:
    """The learner that all others of this objective are compared with: the expert alone, own start, a ridge."""
    return Learner(ALONE, None, objective, "own", RIDGE)


def with_unlabelled(way: str, mixture: str, objective: str) -> Learner:
    """What is done with unlabelled trajectories, from the own start; penalties get no ridge on top."""
    return Learner(way, mixture, objective, "own", 0.0 if way in PENALTIES else RIDGE)


LEARNERS = (
    *(Learner(ALONE, None, o, start, ridge) for o in OBJECTIVES for start in STARTS for ridge in (0.0, RIDGE)),
    *(Learner("MESSI", source, "counts", "given") for source in MIXTURES),
    *(with_unlabelled(way, source, o) for o in OBJECTIVES for way in WAYS for source in MIXTURES),
)


def learners(setting: Setting) -> list[Learner]:
    """Those of a domain. On the gridworld trajectories are alike enough for the complete graph to be MESSI."""
    return [one for one in LEARNERS if setting.domain != "gridworld" or one.way != METHODS["Complete"].label]


def run_learners(setting: Setting, scene: Scene) -> Iterator[dict[str, Any]]:
    """The rows of one run, one per learner, each training done once."""
    known: dict[Learner, dict[str, Any]] = {}
    for learner in learners(setting):
        same = canonical(learner)
        if same not in known:
            known[same] = learn(same, setting, scene)
        yield {"method": learner.name, "x": 0.0, **known[same]}


def canonical(learner: Learner) -> Learner:
    """The learner that is the same training: the likelihood of choices does not look at the start."""
    return replace(learner, start="own") if learner.objective == "choices" else learner


def learn(learner: Learner, setting: Setting, scene: Scene) -> dict[str, Any]:
    """One training: how it ended, and how its policy performs from the domain's start."""
    model, data = estimator(learner, setting, scene)
    mdp = scene.mdp
    if learner.start == "own":
        mdp = mdp.memo("own start", lambda: scene.mdp.replace(start=None))
    with quietly():  # the features of the gridworld are not identified
        model.fit(mdp, *data)
    return {
        "iteration": model.n_iter_,
        "performance": scene.performance(state_visitation(scene.mdp, model.policy_)),
        "theta_norm": float(model.history_.theta_norm[-1]),
        "objective": model.objective_,
        "converged": bool(model.converged_),
    }


def estimator(learner: Learner, setting: Setting, scene: Scene) -> tuple[Any, tuple[Any, ...]]:
    """The estimator of a learner and what it is fitted to."""
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
