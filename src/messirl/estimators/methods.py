"""The methods, one entry each: what it is called, what it learns from, and how it is made.

    MESSI      Eq. 6                     Ridge      ½ρ‖θ‖²
    MaxEnt     no penalty                RidgeStd   ½ρ Σ_j (σ_j θ_j)², counts in units of their spread
    EM         η-EM-MaxEnt, Eq. 9        Complete   Eq. 5 with all similarities 1
    Screened   MESSI with those of the   Pooling    all are experts
               unlabelled trajectories   uniform    no learning: every allowed action alike
               that look like experts'

The penalties of Ridge, RidgeStd and Complete have the trace that MESSI's has on the same trajectories, so that one λ0
means one strength. A method is added by a file with its estimator and an entry in `METHODS`. Classes are imported when
they are asked for: the command line reads this table before anything else.
"""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from messirl._types import Floats
    from messirl.problem.mdp import MDP
    from messirl.problem.trajectories import Trajectories

    Task = tuple[Any, tuple[Trajectories, ...]]
    Maker = Callable[["Method", Any, MDP, Trajectories, Trajectories | None], Task]

EXPERT, BOTH, POOLED, NOTHING = "expert", "expert + unlabelled", "all as experts", "-"


@dataclass(frozen=True)
class Method:
    """One entry.

    name : in candidates, tables and files
    label : in words, for pages and figures
    fitted_to : what a table of scores says that it learns from
    estimator : function without arguments that gives its class
    make : function (method, model, mdp, expert, unlabelled) → the estimator, unfitted and as strong as a MESSI `model`,
        and what to fit it to
    option : what the command line calls it; None where it is only compared with
    unlabelled : whether it is there for the unlabelled trajectories, and is nothing without them
    penalised : whether it has a λ0
    shape : function of the counts (n, d) → the matrix (d, d) that its penalty is a multiple of; None: by similarity
    baseline : whether it stands beside MESSI in every comparison
    inference : whether standard errors of its weights mean what they say where nothing is penalised
    rank : the lower, the sooner it is taken of what predicts alike
    """

    name: str
    label: str
    fitted_to: str
    estimator: Callable[[], type[Any]]
    make: Maker
    option: str | None = None
    unlabelled: bool = False
    penalised: bool = False
    shape: Callable[[Floats], Floats] | None = None
    baseline: bool = False
    inference: bool = False
    rank: int = 9

    def build(self, settings: dict[str, Any]) -> Any:
        """The estimator with those of the settings that it has."""
        names = self.estimator()._get_param_names()
        return self.estimator()(**{name: value for name, value in settings.items() if name in names})


def baseline(name: str, model: Any, mdp: MDP, expert: Trajectories, unlabelled: Trajectories | None) -> Task:
    """An unfitted method with the solver, the bound and the strength of a MESSI `model`, and what to fit it to."""
    if name not in METHODS:
        raise ValueError(f"baseline {name!r}: choose from {', '.join(METHODS)}")
    return METHODS[name].make(METHODS[name], model, mdp, expert, unlabelled)


def method_of(model: Any) -> Method:
    """The entry of an estimator, by its class."""
    return next(m for m in METHODS.values() if m.option is not None and m.estimator() is type(model))


def equal_trace(weight: float, strength: float, shape: Floats) -> float:
    """The multiple of a penalty's shape (d, d) that has the trace of weight · M, where M has the trace `strength`."""
    return weight * strength / float(shape.trace())


# ------------------------------------------------------------ how each is made


def _alone(method: Method, model: Any, mdp: MDP, expert: Trajectories, unlabelled: Trajectories | None) -> Task:
    return _maxent()(**_settings(model)), (expert,)


def _chance(method: Method, model: Any, mdp: MDP, expert: Trajectories, unlabelled: Trajectories | None) -> Task:
    return _uniform()(), (expert,)


def _semi(method: Method, model: Any, mdp: MDP, expert: Trajectories, unlabelled: Trajectories | None) -> Task:
    if unlabelled is None or len(unlabelled) == 0:
        return _alone(method, model, mdp, expert, None)
    return method.build(model.get_params(deep=False)), (expert, unlabelled)


def _pooled(method: Method, model: Any, mdp: MDP, expert: Trajectories, unlabelled: Trajectories | None) -> Task:
    return _maxent()(**_settings(model)), (expert if unlabelled is None else expert + unlabelled,)


def _ridge(method: Method, model: Any, mdp: MDP, expert: Trajectories, unlabelled: Trajectories | None) -> Task:
    ridge = _as_strong(method, model.lambda0 / model.theta_max, model, mdp, expert, unlabelled)
    if ridge is None:
        return _alone(method, model, mdp, expert, unlabelled)
    standardise = method.shape is _spread
    both = (expert,) if unlabelled is None else (expert, unlabelled)
    return _maxent()(ridge=ridge, standardise=standardise, **_settings(model)), both


def _graph(method: Method, model: Any, mdp: MDP, expert: Trajectories, unlabelled: Trajectories | None) -> Task:
    from messirl.similarity import CompleteGraph

    lambda0 = None if unlabelled is None else _as_strong(method, model.lambda0, model, mdp, expert, unlabelled)
    if unlabelled is None or lambda0 is None:
        return _alone(method, model, mdp, expert, unlabelled)
    return _messi()(CompleteGraph(), lambda0=lambda0, **_settings(model)), (expert, unlabelled)


def _as_strong(
    method: Method, weight: float, model: Any, mdp: MDP, expert: Trajectories, unlabelled: Trajectories | None
) -> float | None:
    """The multiple of the method's shape that is as strong as the model's penalty; None where no counts differ."""
    from messirl.problem.counts import feature_counts
    from messirl.similarity.kernels import deviations

    everyone = expert if unlabelled is None else expert + unlabelled
    counts = feature_counts(mdp, everyone)
    if method.shape is None or not deviations(counts).any():
        return None
    strength = float(model.measure.penalty(everyone, counts).trace())
    return equal_trace(weight, strength, method.shape(counts))


def _settings(model: Any) -> dict[str, Any]:
    """Solver, bound and the like of a MESSI."""
    return {k: v for k, v in model.get_params(deep=False).items() if k not in ("similarity", "lambda0")}


def _flat(counts: Floats) -> Floats:
    import numpy as np

    return np.eye(counts.shape[1])


def _spread(counts: Floats) -> Floats:
    import numpy as np

    return np.diag(counts.var(axis=0))


def _complete(counts: Floats) -> Floats:
    from messirl.similarity import CompleteGraph, penalty_matrix

    return penalty_matrix(counts, CompleteGraph())


def _messi() -> type[Any]:
    from messirl.estimators.messi import MESSI

    return MESSI


def _maxent() -> type[Any]:
    from messirl.estimators.maxent import MaxEntIRL

    return MaxEntIRL


def _uniform() -> type[Any]:
    from messirl.estimators.uniform import UniformPolicy

    return UniformPolicy


def _em() -> type[Any]:
    from messirl.estimators.em import EMMaxEnt

    return EMMaxEnt


# ------------------------------------------------------------ the table

METHODS = {
    method.name: method
    for method in (
        Method("MESSI", "MESSI", BOTH, _messi, _semi, option="messi", unlabelled=True, penalised=True, rank=0),
        Method("Screened", "MESSI, screened", BOTH, _messi, _semi, unlabelled=True, penalised=True, rank=1),
        Method("MaxEnt", "MaxEnt-IRL", EXPERT, _maxent, _alone, option="maxent", baseline=True, inference=True, rank=6),
        Method("EM", "EM-MaxEnt", BOTH, _em, _semi, option="em", unlabelled=True),
        Method("Ridge", "L2", EXPERT, _maxent, _ridge, shape=_flat, penalised=True, baseline=True, rank=4),
        Method(
            "RidgeStd",
            "L2, standardised",
            EXPERT,
            _maxent,
            _ridge,
            shape=_spread,
            penalised=True,
            baseline=True,
            rank=3,
        ),
        Method(
            "Complete",
            "complete graph",
            BOTH,
            _messi,
            _graph,
            shape=_complete,
            unlabelled=True,
            penalised=True,
            baseline=True,
            rank=2,
        ),
        Method("Pooling", "pooling", POOLED, _maxent, _pooled, unlabelled=True, baseline=True, rank=5),
        Method("uniform", "uniform policy", NOTHING, _uniform, _chance, baseline=True),
    )
}
BASELINES = [method for method in METHODS.values() if method.baseline]
OPTIONS = {method.option: method for method in METHODS.values() if method.option is not None}
