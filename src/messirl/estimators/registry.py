"""Registry of methods: the name, the training data and the construction of each.

    MESSI         Eq. 6                  Ridge            ½ρ‖θ‖²
    MaxEnt        no penalty             RidgeStd         ½ρ Σ_j (σ_j θ_j)², counts in units of their spread
    EM            η-EM-MaxEnt, Eq. 9     Complete         Eq. 5 with all similarities 1
    Reference     MaxEnt with a prior policy from the unlabelled trajectories
    ReferenceStd  RidgeStd with it       LightPooling     MaxEnt, weighted pooling with the weight LIGHT
    uniform       no learning: all       LightPoolingStd  RidgeStd with weighted pooling
                  actions equally likely Pooling          MaxEnt, as if all trajectories were experts'
    Cloning       state-action counts    DWBC, ISWBC      cloning weighted by a discriminator
                  of the experts         DemoDICE         matches the experts' occupancy, regularised
    Several       MESSI with a θ for     Mixture          MESSI with estimated groups
                  each expert            OwnPolicy        MESSI with the learnt policy's trajectories in its penalty
    AbbeelNg      mixtures that match    MWAL, LPAL       no worse than the experts under any possible reward
    MaxMargin     the experts' counts    NgRussell        linear programmes; assumes optimal experts
    SSIRL         MaxMargin with an SVM  RelativeEntropy  without the dynamics, relative to a prior policy
                  on unlabelled ones     Bayesian         draws from the posterior of θ

Penalties with a shape are scaled to the trace of MESSI's penalty on the same trajectories, so that equal λ0 are equally
strong. An entry differs from its class by data only: a shape, or parameters that it sets. To add a method, write a file
with its estimator and an entry in `METHODS`. Classes are imported on demand: the command line reads this table before
anything else, and must start quickly.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from messirl import estimators
from messirl._parameters import default
from messirl._text import did_you_mean, join_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from messirl._types import Floats
    from messirl.data.mdp import MDP
    from messirl.data.streamed_trajectories import StreamedTrajectories
    from messirl.data.trajectories import Trajectories
    from messirl.estimators._training_data import TrainingData

    Task = tuple[Any, tuple[Any, ...]]

EXPERT, BOTH, POOLED, NOTHING = "expert", "expert + unlabelled", "all as experts", "-"

DEFAULT_POOLING_WEIGHT = 0.01  # weight of an unlabelled trajectory in weighted pooling
DEFAULT_POOLING_RIDGE = 0.01  # λ0 of the ridge used with it if hyperparameters cannot be selected
WEIGHTED_POOLING = {"unlabelled_weight": DEFAULT_POOLING_WEIGHT}
MAX_MARGIN = {"version": "max-margin"}
FROM_UNLABELLED = {"reference": "unlabelled", "entropy": "causal", "solver": "lbfgs"}  # a prior policy needs these


@dataclass(frozen=True)
class Method:
    """A method of the registry.

    name : its name in candidates, tables and files
    label : its name on pages and in figures
    fitted_to : its training data, as shown in tables of scores
    kind : the name of its class, or a user-defined class
    shape : function from counts (n, d) to the matrix (d, d) that its penalty is a multiple of; None: by similarity
    sets : parameters that define it, which override those of the model it is compared with
    baseline : whether it belongs to every comparison and to the reproduction of the paper
    inference : whether standard errors of its weights are valid if there is no penalty
    on_request : whether it is fitted on request only, not next to every model
    """

    name: str
    label: str
    fitted_to: str
    kind: str | type[Any]
    shape: Callable[[Floats], Floats] | None = None
    sets: dict[str, Any] = field(default_factory=dict, hash=False)
    baseline: bool = False
    inference: bool = False
    on_request: bool = False

    @property
    def option(self) -> str:
        """Its name on the command line, where case does not matter."""
        return self.name.lower()

    @property
    def unlabelled(self) -> bool:
        """True if it requires unlabelled trajectories."""
        return self.fitted_to in (BOTH, POOLED)

    @property
    def penalised(self) -> bool:
        """True if it has a λ0."""
        return self.kind == "MESSI" or self.shape is not None

    def estimator(self) -> type[Any]:
        """Import and return its class."""
        kind: type[Any] = getattr(estimators, self.kind) if isinstance(self.kind, str) else self.kind
        return kind

    @property
    def maximum_entropy(self) -> bool:
        """True if it maximises the entropy of the policy: its fits have a reward, its expected visits and a search."""
        return self.kind in ("MESSI", "MaxEntIRL", "EMMaxEnt", "OwnPolicyMESSI", "SeveralExperts", "MixtureMESSI")

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters that it leaves to the user."""
        of_shape = ("ridge", "standardise", "similarity") if self.shape is not None else ()
        names = [name for name in self.estimator()._get_param_names() if name not in (*self.sets, *of_shape)]
        return [*names, "lambda0"] if of_shape and "lambda0" not in names else names

    def build(self, settings: dict[str, Any]) -> Any:
        """Make the estimator from the settings that are its parameters and from the parameters in `sets`."""
        names = self.estimator()._get_param_names()
        return self.estimator()(**{name: value for name, value in settings.items() if name in names} | self.sets)

    def make(
        self, model: Any, mdp: MDP, expert: Trajectories, unlabelled: Trajectories | StreamedTrajectories | None
    ) -> Task:
        """Return the unfitted estimator, with a penalty as strong as that of a MESSI `model`, and its training sets."""
        from messirl.estimators._training_data import TrainingData

        settings = model.get_params(deep=False)
        sets: tuple[Any, ...] = (expert, unlabelled) if unlabelled is not None and len(unlabelled) > 0 else (expert,)
        alone = METHODS["MaxEnt"].build(settings), (expert,)
        if self.fitted_to == BOTH and len(sets) == 1:
            return alone
        data = TrainingData(expert, unlabelled)
        if self.shape is not None:
            strength = _as_strong(self.shape, model, mdp, data)
            return alone if strength is None else (self.build(settings | strength), sets)
        if self.fitted_to == POOLED and data.trajectories is None:  # the sets cannot be merged
            return self.build(settings | {"unlabelled_weight": 1.0}), sets
        if self.fitted_to == POOLED:
            return self.build(settings), (data.trajectories,)
        return self.build(settings), sets if self.fitted_to == BOTH else (expert,)


def baseline(name: str, model: Any, mdp: MDP, expert: Trajectories, unlabelled: Any) -> Task:
    """Return an unfitted method with the solver, bound and strength of a MESSI `model`, and its training sets."""
    if name not in METHODS:
        raise ValueError(f"baseline {name!r}: choose from {', '.join(METHODS)}")
    return METHODS[name].make(model, mdp, expert, unlabelled)


def method_named(name: str) -> Method:
    """Return the method of a name, in any case."""
    known = {method.option: method for method in METHODS.values()}
    if name.lower() not in known:
        raise ValueError(f"`method` {name}: choose from {', '.join(known)}{did_you_mean(name, known)}")
    return known[name.lower()]


def method_of(model: Any) -> Method:
    """Return the entry of an estimator, by its class and, unless it is a maximum-entropy method, its parameters."""
    kinds = [m for m in METHODS.values() if m.estimator() is type(model) and m.shape is None]
    if kinds[0].maximum_entropy:
        return kinds[0]
    return next(m for m in reversed(kinds) if m.sets.items() <= model.get_params(deep=False).items())


def compared_method_of(model: Any) -> Method | None:
    """Return the method in `COMPARED` that has the class and parameters of an estimator; None if there is none."""
    usual = {"reference": None, "unlabelled_weight": 0.0, "theta_prior": default("theta_prior")}
    usual |= {"ridge": default("ridge"), "standardise": False}
    own = model.get_params(deep=False)
    if own["reference"] is not None and not isinstance(own["reference"], str):  # a policy given by the user
        return None
    for method in COMPARED:
        is_kind = method.shape is None and method.estimator() is type(model)
        if is_kind and all(own[name] == value for name, value in (usual | method.sets).items() if name in own):
            return method
    return None


def describe_model(model: Any) -> tuple[str, str]:
    """Return the label of an estimator on pages, and its training data, by its entry and its parameters."""
    method, weight = method_of(model), getattr(model, "unlabelled_weight", 0.0)
    if not method.maximum_entropy:
        return method.label, method.fitted_to
    words, fitted_to = [], method.fitted_to
    if model.reference is not None:
        words.append("base policy")
    if getattr(model, "ridge", 0.0) != default("ridge"):
        words.append(f"ridge {model.ridge:g}")
    if getattr(model, "theta_prior", None) is not None:
        words.append(f"prior {model.theta_prior:g}")
    if weight > 0:
        words.append(f"pooling at {weight:g}")
    if weight > 0 or isinstance(model.reference, str):
        fitted_to = BOTH
    return f"{method.label} with {join_names(words)}" if words else method.label, fitted_to


def equal_trace(weight: float, strength: float, shape: Floats) -> float:
    """Return the multiple of a shape (d, d) that has the trace of weight · M, where M has the trace `strength`."""
    return weight * strength / float(shape.trace())


def _as_strong(shape_of: Callable[[Floats], Floats], model: Any, mdp: MDP, data: TrainingData) -> dict[str, Any] | None:
    """Return parameters for a ridge or complete graph as strong as the model's penalty; None if no counts differ."""
    from messirl.similarity import CompleteGraph
    from messirl.similarity.standardize import deviations

    data.check_against(mdp)
    counts = data.counts(mdp)
    if not deviations(counts).any():
        return None
    strength, shape = float(data.penalty(model.measure, mdp, counts).trace()), shape_of(counts)
    return {
        "ridge": equal_trace(model.lambda0 / model.theta_max, strength, shape),
        "standardise": shape_of is _spread,
        "similarity": CompleteGraph(),
        "lambda0": equal_trace(model.lambda0, strength, shape),
    }


def _flat(counts: Floats) -> Floats:
    import numpy as np

    return np.eye(counts.shape[1])


def _spread(counts: Floats) -> Floats:
    import numpy as np

    from messirl.similarity.standardize import deviations

    return np.diag(deviations(counts) ** 2)


def _complete(counts: Floats) -> Floats:
    from messirl.similarity import CompleteGraph

    return CompleteGraph().penalty(None, counts)


METHODS = {
    method.name: method
    for method in (
        Method("MESSI", "MESSI", BOTH, "MESSI"),
        Method("MaxEnt", "MaxEnt-IRL", EXPERT, "MaxEntIRL", baseline=True, inference=True),
        Method("EM", "EM-MaxEnt", BOTH, "EMMaxEnt"),
        Method("Ridge", "L2", EXPERT, "MaxEntIRL", shape=_flat, baseline=True),
        Method("RidgeStd", "L2, standardised", EXPERT, "MaxEntIRL", shape=_spread, baseline=True),
        Method("Complete", "complete graph", BOTH, "MESSI", shape=_complete, baseline=True),
        Method("Reference", "base policy", BOTH, "MaxEntIRL", sets=FROM_UNLABELLED),
        Method("ReferenceStd", "base policy with L2", BOTH, "MaxEntIRL", shape=_spread, sets=FROM_UNLABELLED),
        Method("LightPooling", "light pooling", BOTH, "MaxEntIRL", sets=WEIGHTED_POOLING),
        Method("LightPoolingStd", "light pooling with L2", BOTH, "MaxEntIRL", shape=_spread, sets=WEIGHTED_POOLING),
        Method("Pooling", "pooling", POOLED, "MaxEntIRL", baseline=True),
        Method("uniform", "uniform policy", NOTHING, "UniformPolicy", baseline=True),
        Method("Cloning", "behaviour cloning", EXPERT, "BehaviourCloning"),
        Method("DWBC", "DWBC", BOTH, "DWBC"),
        Method("ISWBC", "ISW-BC", BOTH, "ISWBC"),
        Method("DemoDICE", "DemoDICE", BOTH, "DemoDICE"),
        Method("OwnPolicy", "MESSI with own trajectories", BOTH, "OwnPolicyMESSI"),
        Method("Several", "several experts", BOTH, "SeveralExperts"),
        Method("Mixture", "mixture", BOTH, "MixtureMESSI"),
        Method("AbbeelNg", "Abbeel-Ng, projection", EXPERT, "AbbeelNg"),
        Method("MaxMargin", "Abbeel-Ng, max-margin", EXPERT, "AbbeelNg", sets=MAX_MARGIN, on_request=True),
        Method("SSIRL", "SSIRL", BOTH, "SSIRL"),
        Method("MWAL", "MWAL", EXPERT, "MWAL"),
        Method("LPAL", "LPAL", EXPERT, "LPAL"),
        Method("NgRussell", "Ng-Russell", EXPERT, "NgRussell"),
        Method("RelativeEntropy", "relative entropy IRL", BOTH, "RelativeEntropyIRL"),
        Method("Bayesian", "Bayesian IRL", EXPERT, "BayesianIRL"),
    )
}
BASELINES = [method for method in METHODS.values() if method.baseline]
# Methods that are fitted next to every model.
COMPARED = [method for method in METHODS.values() if method.baseline or (method.sets and not method.on_request)]
EXPERT_ONLY = "MaxEnt"  # experts only, with which every other method is compared
