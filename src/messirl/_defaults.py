"""Defaults of estimators and commands, chosen for users' own data.

The paper's values, where they differ, are in `paper/experiments/paper_settings.py`.
"""

LAMBDA0 = 0.05  # strength of MESSI's penalty
THETA_MAX = 500.0  # bound on every weight
ENTROPY = "causal"
OBJECTIVE: str | None = None  # None: "choices", or "counts" with the paper's model or its solver
REFERENCE_STRENGTH = 10.0  # pseudo-counts per state of a prior policy estimated from unlabelled trajectories
UNLABELLED_WEIGHT = 0.0  # weight of an unlabelled trajectory relative to an expert's
SOLVER = "lbfgs"
EM_SOLVER = "paper"  # the steps η of EM-MaxEnt are gradient steps
STEP_SIZE = 1.0  # of the solver "paper"
MAX_ITER = 500
TOL = 1e-6  # largest distance of a weight from its optimum, relative to its size or its unit
RIDGE = 0.0
THETA_PRIOR: float | None = None  # standard deviation of a normal prior of the weights, in their own units
WEAK_PRIOR: float | None = 10.0  # the prior of every candidate in a selection
STEPS_PER_ROUND = 1  # η of EM-MaxEnt
SIGMA = "median"  # width of the RBF similarity, for counts in units of their spread
SIMILARITIES: dict[str, tuple[str, dict[str, object]]] = {  # by name, in Python and in commands: class and arguments
    "rbf": ("RBF", {"sigma": SIGMA, "standardise": True}),
    "exponential": ("Exponential", {"standardise": True}),
    "complete": ("CompleteGraph", {}),
    "neighbours": ("NearestNeighbours", {}),
    "edit": ("EditDistance", {}),
    "visited": ("VisitedStates", {}),
}
CV = 5  # folds of the experts
SEED = 0  # seed of selection, evaluation and resampling: the same data give the same result
INFLUENTIAL = 50  # number of unlabelled trajectories that a diagnosis leaves out one by one
