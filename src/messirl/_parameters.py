"""Table of the parameters of estimators: type, range, default, help and name as an option, each stated once.

Constructors take their defaults from here (`default`), `fit` its checks (`messirl._checks.check_parameters`),
settings of workflows their fields, and the command line its options. Defaults are chosen for users' own data; the
paper's values, where they differ, are in `paper/experiments/paper_settings.py`. In help and in messages, a name in
backquotes is that of a parameter or setting: the command line shows it as its flag.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

WEAK_PRIOR: float | None = 10.0  # theta_prior of every candidate in a selection
CV = 5  # folds of the experts
SEED = 0  # seed of selection, evaluation and resampling: the same data give the same result
INFLUENTIAL = 50  # number of unlabelled trajectories that a diagnosis leaves out one by one


@dataclass(frozen=True)
class Parameter:
    """A parameter of one or several estimators.

    name : its name in constructors
    kind : "number", "whole", "flag" or "choice"
    default : its default
    help : its meaning, in the words of a help page
    least, above, most, below : its range
    choices : the allowed words; for a number, a word that is allowed in its place
    optional : whether None is allowed
    objects : whether other values than words are allowed, such as an array
    owners : the classes with this range, default and meaning; empty: all others that have the parameter
    option : its name as a setting, and with dashes as an option; empty: its name
    flag : its flag on the command line if that is not made of its option; "-": it is no option
    shown : its default in help pages if that takes words
    """

    name: str
    kind: str
    default: Any
    help: str = ""
    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()
    optional: bool = False
    objects: bool = False
    owners: tuple[str, ...] = ()
    option: str = ""
    flag: str = ""
    shown: str = ""

    @property
    def setting(self) -> str:
        """Its name in settings of workflows."""
        return self.option or self.name

    @property
    def type_text(self) -> str:
        """Its type in words, as in a docstring."""
        words = ", ".join(f'"{word}"' for word in self.choices if word != "none")
        plain = {"number": "float", "whole": "int", "flag": "bool", "choice": f"{{{words}}}"}[self.kind]
        plain += f" or {words}" if words and self.kind != "choice" else ""
        return f"{plain}, optional" if self.optional else plain

    @property
    def help_text(self) -> str:
        """Its meaning, as a sentence without the full stop."""
        return f"False: {self.help}" if self.default is True else f"{self.help[:1].upper()}{self.help[1:]}"

    @property
    def range(self) -> str:
        """Its range in words: `>= 0`, `> 0 and <= 1`."""
        limits = ((">=", self.least), (">", self.above), ("<=", self.most), ("<", self.below))
        return " and ".join(f"{sign} {limit:g}" for sign, limit in limits if limit is not None)

    def includes(self, value: float) -> bool:
        """Return whether a number is in its range."""
        low = (self.least is None or value >= self.least) and (self.above is None or value > self.above)
        return low and (self.most is None or value <= self.most) and (self.below is None or value < self.below)

    @property
    def default_text(self) -> str:
        """Its default, as a help page shows it."""
        if self.shown or isinstance(self.default, str):
            return self.shown or str(self.default)
        return "none" if self.default is None else f"{self.default:g}"


SHARED = (
    "theta_max",
    "theta_prior",
    "objective",
    "reference",
    "reference_strength",
)  # by all candidates
NONE = ("none",)  # what stands for None on the command line
CLASSIFIERS = ("DWBC", "ISWBC")
# The search, the objective and the data of maximum-entropy methods, in the order of their help page.
MODEL = (
    Parameter("lambda0", "number", 0.05, "strength of the penalty of messi", least=0),
    Parameter("sigma", "number", "median", "width of the rbf similarity", above=0, choices=("median",)),
    Parameter(
        "scale",
        "number",
        None,
        "distance at which exponential, edit and dtw are 1/e",
        above=0,
        optional=True,
        shown="1, 0.5 and 1",
    ),
    Parameter(
        "standardise_counts",
        "flag",
        True,
        "similarities use raw feature counts, not counts in units of their spread",
        flag="--no-standardise",
    ),
    Parameter(
        "ridge",
        "number",
        0.0,
        "with maxent: ρ of the ridge penalty ½ρ‖θ‖²; with DWBC, ISWBC and SSIRL: ridge of their classifier",
        least=0,
        shown="0; DWBC and ISWBC: 0.1; SSIRL: 0.01",
    ),
    Parameter("standardise", "flag", False, "with maxent: the ridge uses θ in units of the spread of the counts"),
    Parameter(
        "theta_prior",
        "number",
        None,
        "with messi and maxent: standard deviation of a normal prior on θ times the spread of its feature",
        above=0,
        choices=NONE,
        optional=True,
    ),
    Parameter("steps_per_round", "whole", 1, "with em: search steps per E-step", least=1, option="eta"),
    Parameter(
        "theta_max",
        "number",
        500.0,
        "bound on every weight",
        above=0,
        choices=NONE,
        optional=True,
        shown="500; NgRussell: 1",
    ),
    Parameter(
        "objective",
        "choice",
        None,
        "maximise the likelihood of the choices of the experts, or match their feature counts",
        choices=("choices", "counts"),
        optional=True,
        shown="choices; with `entropy` noncausal or `solver` paper: counts",
    ),
    Parameter(
        "reference",
        "choice",
        None,
        "prior policy, estimated from the unlabelled trajectories",
        choices=("unlabelled",),
        optional=True,
        objects=True,
    ),
    Parameter(
        "reference_strength",
        "number",
        10.0,
        "strength of the smoothing of `reference`, in choices per state",
        above=0,
    ),
    Parameter(
        "unlabelled_weight",
        "number",
        0.0,
        "weighted pooling: weight of an unlabelled trajectory in the likelihood; an expert one has weight 1",
        least=0,
    ),
    Parameter(
        "entropy",
        "choice",
        "causal",
        "noncausal is the model of the paper and needs a horizon",
        choices=("causal", "noncausal"),
    ),
    Parameter(
        "solver",
        "choice",
        "lbfgs",
        "lbfgs finds the optimum, paper takes steps of fixed size",
        choices=("lbfgs", "paper"),
        shown="lbfgs; em: paper",
    ),
    Parameter("step_size", "number", 1.0, "step size of the solver paper", above=0),
    Parameter("max_iter", "whole", 500, "maximum number of iterations", least=0, shown="500; DemoDICE: 200"),
    Parameter(
        "tol",
        "number",
        1e-6,
        "largest distance of a weight θ from its optimum, relative to max(|θ|, 1 / the spread of its feature)",
        least=0,
        shown="1e-06; DemoDICE: 1e-08",
    ),
)
# Parameters of single methods, and those of `MODEL` where a method has another range or default.
OWN = (
    Parameter("solver", "choice", "paper", choices=("lbfgs", "paper"), owners=("EMMaxEnt",)),
    Parameter("theta_max", "number", 500.0, above=0, owners=("MESSI", "MESSICV", "FittedMESSI")),
    Parameter(
        "theta_prior",
        "number",
        WEAK_PRIOR,
        "standard deviation of a normal prior on θ times the spread of its feature",
        above=0,
        choices=NONE,
        optional=True,
        owners=("MESSICV",),
    ),
    Parameter("warm_start", "flag", False, flag="-"),
    Parameter("theta_max", "number", 1.0, above=0, owners=("NgRussell",)),
    Parameter("max_iter", "whole", 500, least=1, owners=("DWBC", "FittedMESSI")),
    Parameter("tol", "number", 1e-6, above=0, owners=("DWBC",)),
    Parameter("max_iter", "whole", 200, least=1, owners=("DemoDICE",)),
    Parameter("tol", "number", 1e-8, above=0, owners=("DemoDICE",)),
    Parameter("ridge", "number", 0.1, above=0, owners=CLASSIFIERS),
    Parameter("ridge", "number", 0.01, above=0, owners=("SSIRL",)),
    Parameter(
        "smoothing",
        "number",
        1.0,
        "with Cloning, DWBC and ISWBC: strength of a uniform prior over actions, in choices per state; with DemoDICE: "
        "uniform share of each density",
        least=0,
        shown="1; DemoDICE: 0.01",
    ),
    Parameter("smoothing", "number", 0.01, above=0, below=1, owners=("DemoDICE",)),
    Parameter("by_step", "flag", False, "with Cloning: each step of a horizon has its own policy"),
    Parameter(
        "discriminator",
        "choice",
        "features",
        "with DWBC and ISWBC: what the discriminator is a function of, features or a table of state-action pairs",
        choices=("features", "table"),
    ),
    Parameter(
        "eta",
        "number",
        0.5,
        "with DWBC: share of experts' choices among the unlabelled ones",
        above=0,
        option="expert_share",
    ),
    Parameter(
        "alpha",
        "number",
        7.5,
        "with DWBC: weight of an expert's choice before the correction; with DemoDICE: strength of the regularisation "
        "towards the occupancy of all trajectories",
        least=0,
        shown="7.5; DemoDICE: 0.05",
    ),
    Parameter("alpha", "number", 7.5, above=0, owners=("DWBC",)),
    Parameter("alpha", "number", 0.05, least=0, owners=("DemoDICE",)),
    Parameter(
        "threshold", "number", 0.0, "with DWBC: least discriminator value at which unlabelled choices count", least=0
    ),
    Parameter("delta", "number", 0.0, "with ISWBC: smaller weights of choices are set to 0", least=0),
    Parameter(
        "step_weight",
        "number",
        0.5,
        "with DemoDICE and a horizon: share of a step's density that comes from its own choices",
        least=0,
        most=1,
    ),
    Parameter("n_draws", "whole", 100, "with OwnPolicy: trajectories sampled per round", least=1),
    Parameter(
        "max_rounds",
        "whole",
        20,
        "with OwnPolicy and Mixture: maximum number of rounds",
        least=1,
        shown="20; Mixture: 300",
    ),
    Parameter("max_rounds", "whole", 300, least=1, owners=("MixtureMESSI",)),
    Parameter(
        "spread",
        "number",
        1.0,
        "with Several: standard deviation of the deviation of one expert, times the spread of its feature",
        above=0,
    ),
    Parameter("n_groups", "whole", 2, "with Mixture: number of groups", least=1),
    Parameter("n_starts", "whole", 5, "with Mixture: number of random starts", least=1),
    Parameter("version", "choice", "projection", choices=("projection", "max-margin"), flag="-"),
    Parameter(
        "epsilon",
        "number",
        None,
        "largest deviation from the experts' counts: with AbbeelNg and MaxMargin the distance at which the search "
        "ends, with RelativeEntropy in units of the spread of each feature",
        least=0,
        optional=True,
        shown="a hundredth of the first distance; RelativeEntropy: 0.1",
    ),
    Parameter("epsilon", "number", 0.1, above=0, owners=("RelativeEntropyIRL",)),
    Parameter(
        "max_policies",
        "whole",
        200,
        "with AbbeelNg, MaxMargin, NgRussell and SSIRL: maximum number of policies",
        least=1,
        shown="200; SSIRL: 20",
    ),
    Parameter("max_policies", "whole", 20, least=1, owners=("SSIRL",)),
    Parameter(
        "lapse",
        "number",
        0.01,
        "with methods whose policies are deterministic: probability of a random action in scores",
        least=0,
        most=1,
    ),
    Parameter(
        "unlabelled_cost", "number", 0.1, "with SSIRL: cost of an unlabelled trajectory inside the margin", least=0
    ),
    Parameter("offset", "flag", True, "with SSIRL: the separating hyperplane goes through the origin"),
    Parameter("rounds", "whole", 200, "with MWAL: number of rounds", least=1),
    Parameter(
        "base",
        "choice",
        "unlabelled",
        "with RelativeEntropy: the policy that entropy is relative to",
        choices=("unlabelled", "uniform"),
        objects=True,
    ),
    Parameter(
        "n_samples",
        "whole",
        500,
        "with Bayesian: draws of each chain; with RelativeEntropy: trajectories sampled without unlabelled ones",
        least=1,
        shown="500; RelativeEntropy: 1000",
    ),
    Parameter("n_samples", "whole", 500, least=4, owners=("BayesianIRL",)),
    Parameter("n_samples", "whole", 1000, least=1, owners=("RelativeEntropyIRL",)),
    Parameter("beta", "number", 1.0, "with Bayesian: inverse temperature of the experts' policy", above=0),
    Parameter(
        "prior",
        "choice",
        "normal",
        "with Bayesian: prior of every weight",
        choices=("normal", "uniform"),
        option="weight_prior",
    ),
    Parameter(
        "prior_scale",
        "number",
        10.0,
        "with Bayesian: standard deviation or half-width of the prior, times the spread of its feature",
        above=0,
    ),
    Parameter("n_chains", "whole", 4, "with Bayesian: number of chains", least=2),
    Parameter("n_warm_up", "whole", 500, "with Bayesian: warm-up draws of each chain", least=0),
)


def parameter(name: str, owners: Iterable[str] = ()) -> Parameter | None:
    """Return the entry of a parameter for the first of the classes that has its own, else the general one, if any."""
    return _parameter(name, tuple(owners))


@cache
def _parameter(name: str, owners: tuple[str, ...]) -> Parameter | None:
    entries = [one for one in (*MODEL, *OWN) if one.name == name]
    own = (one for owner in owners for one in entries if owner in one.owners)
    return next(own, next((one for one in entries if not one.owners), None))


def default(name: str, owner: str = "") -> Any:
    """Return the default of a parameter, of one class if that has its own."""
    found = parameter(name, (owner,))
    assert found is not None, name
    return found.default


def options(entries: Iterable[Parameter]) -> list[Parameter]:
    """Return the entries that are settings of workflows and options of the command line."""
    return [one for one in entries if one.flag != "-" and not one.owners]


SETTINGS = {one.setting: one for one in options((*MODEL, *OWN))}
