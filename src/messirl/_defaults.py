"""The defaults of estimators and commands: one set, chosen for the data of users.

The numbers of the paper, where they differ, are in `paper/experiments/paper_settings.py`.
"""

LAMBDA0 = 0.05  # strength of MESSI's penalty
THETA_MAX = 500.0  # bound on every weight
ENTROPY = "causal"
OBJECTIVE: str | None = None  # what is made likely: "choices", or "counts" with the paper's model or its solver
REFERENCE_STRENGTH = 10.0  # of the prior of a base policy from unlabelled trajectories, in choices per state
UNLABELLED_WEIGHT = 0.0  # of an unlabelled trajectory where an expert's is 1
SOLVER = "lbfgs"
EM_SOLVER = "paper"  # the steps η of EM-MaxEnt are gradient steps
STEP_SIZE = 1.0  # of the solver "paper"
MAX_ITER = 500
TOL = 1e-6  # how far a weight may still be from its optimum, relative to its size or its unit
RIDGE = 0.0
THETA_PRIOR: float | None = None  # standard deviation of a normal prior of the weights, in their own units
WEAK_PRIOR: float | None = 10.0  # that of every candidate of a selection
STEPS_PER_ROUND = 1  # η of EM-MaxEnt
SIGMA = "median"  # width of the RBF similarity; the similarity sees counts in units of their spread
SIMILARITIES: dict[str, tuple[str, dict[str, object]]] = {  # by name, in Python and in commands: class and arguments
    "rbf": ("RBF", {"sigma": SIGMA, "standardise": True}),
    "exponential": ("Exponential", {"standardise": True}),
    "complete": ("CompleteGraph", {}),
    "neighbours": ("NearestNeighbours", {}),
    "edit": ("EditDistance", {}),
    "visited": ("VisitedStates", {}),
}
CV = 5  # folds of the experts
SEED = 0  # of what chooses, judges or resamples: the same data give the same answer
INFLUENTIAL = 50  # unlabelled trajectories that a diagnosis leaves out one by one
