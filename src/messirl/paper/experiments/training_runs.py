"""Trials of the figures, and their training.

A trial is one training: a method, its unlabelled trajectories and its λ0. The methods are those of the paper (MaxEnt,
MESSIMAX, MESSI on μ1, μ2, μ3, EM with η) and further baselines that a sceptical reader would ask for: ridge,
standardised ridge, complete graph and pooling. Penalties have the same trace as the one of MESSI on the same
trajectories, so that equal λ0 are equally strong. Names ending in "/exact" are the same objectives at their optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from messirl.estimators import MESSI, EMMaxEnt
from messirl.estimators._convergence_report import ignore_convergence_warnings
from messirl.estimators._search import FitSteps
from messirl.estimators.registry import BASELINES, METHODS, baseline
from messirl.objective import evaluate_batch
from messirl.optim.lockstep import run_searches
from messirl.paper.domains import Scene, mixture
from messirl.paper.experiments.paper_settings import EXACT, Setting

FIGURES = ("iterations", "unlabelled", "nu", "lambda", "em")
MESSIS = {"MESSIMAX": "MAX", "MESSI-mu1": "mu1", "MESSI-mu2": "mu2", "MESSI-mu3": "mu3"}
SCEPTICS = tuple(method.name for method in BASELINES if method.penalised or method.unlabelled)
EXACT_ITERATIONS = 400
# Methods that the exact solver also fits, per axis: enough to tell which findings are artefacts of the steps.
EXACTLY = {
    "unlabelled": ("MaxEnt", "MESSIMAX", "MESSI-mu1"),
    "nu": ("MaxEnt", "MESSIMAX", "MESSI-mu1"),
    "lambda": ("MaxEnt", *MESSIS, "Complete"),
}


@dataclass(frozen=True)
class Trial:
    """One training. `x` is its position on the axis of the figure; None: every iteration is a point."""

    method: str
    mixture: str | None = None
    u: int = 0
    nu: float = 0.5
    lambda0: float = 0.0
    eta: int = 0
    x: float | None = None
    exact: bool = False

    @property
    def name(self) -> str:
        """Name of the method in tables, with a suffix if it was optimised exactly."""
        return self.method + (EXACT if self.exact else "")


def trials(figure: str, setting: Setting) -> list[Trial]:
    """Return the trials of a figure for one run."""
    if figure not in FIGURES:
        raise ValueError(f"unknown figure {figure!r}: must be one of {', '.join(FIGURES)}")
    base: dict[str, Any] = {"u": setting.u, "nu": setting.nu, "lambda0": setting.lambda0}
    compared = [
        Trial("MaxEnt"),
        *(Trial(name, mix, **base) for name, mix in MESSIS.items()),
        *(Trial(name, "mu1", **base) for name in SCEPTICS),
    ]
    if not setting.sceptics:
        compared = [trial for trial in compared if trial.method not in SCEPTICS]
    if figure == "iterations":
        exact = [replace(trial, exact=True, x=float(EXACT_ITERATIONS)) for trial in compared]
        return [*compared, *(exact if setting.sceptics else ())]
    if figure == "em":
        shown = [Trial(name, mix, **base) for name, mix in list(MESSIS.items())[:3]]
        for mix, suffix in (("mu1", ""), ("mu2", "-mu2")):
            shown += [
                Trial(f"EM-{int(eta)}{suffix}", mix, **base, eta=int(eta)) for eta in setting.sweeps.get("em", ())
            ]
        return shown
    key = {"unlabelled": "u", "nu": "nu", "lambda": "lambda0"}[figure]
    out: list[Trial] = []
    for exactly in (False, True):
        for value in setting.sweeps.get(figure, ()):
            change: dict[str, Any] = {key: int(value) if key == "u" else value, "x": float(value), "exact": exactly}
            out += [replace(trial, **change) for trial in compared if not exactly or trial.method in EXACTLY[figure]]
    return out


def canonical(trial: Trial) -> Trial:
    """Return the simplest trial with the same training, for example MaxEnt if there is no penalty."""
    penalised = trial.method in MESSIS or (trial.method in SCEPTICS and METHODS[trial.method].penalised)
    if trial.method == "MaxEnt" or (trial.u == 0 and not trial.eta) or (penalised and trial.lambda0 == 0):
        return Trial("MaxEnt", exact=trial.exact)
    if trial.method == "MESSIMAX":
        trial = replace(trial, nu=1.0)
    if trial.method == "Pooling":
        trial = replace(trial, lambda0=0.0)
    return replace(trial, x=None)


def estimator(trial: Trial, setting: Setting, scene: Scene, callback: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the estimator of a trial and its training data."""
    unlabelled = None if trial.mixture is None else mixture(scene, trial.mixture, trial.u, trial.nu)
    common: dict[str, Any] = {"theta_max": setting.theta_max, "objective": "counts", "callback": callback}
    if trial.exact:
        common |= {"solver": "lbfgs", "max_iter": EXACT_ITERATIONS}
    else:
        common |= {"solver": "paper", "step_size": setting.step_size, "max_iter": setting.iterations}
    if trial.method.startswith("EM-"):
        return EMMaxEnt(steps_per_round=trial.eta, **common), (scene.expert, unlabelled)
    model = MESSI(scene.similarity, lambda0=trial.lambda0, **common)
    if trial.method in MESSIS and unlabelled is not None:
        return model, (scene.expert, unlabelled)
    name = trial.method if trial.method in SCEPTICS else "MaxEnt"
    made, data = baseline(name, model, scene.mdp, scene.expert, unlabelled)
    if name in ("MaxEnt", "Pooling"):  # without a penalty in the paper, whatever the default
        made.set_params(ridge=0.0)
    return made, data


def run_trials(every: Iterable[Trial], setting: Setting, scene: Scene) -> Iterator[dict[str, Any]]:
    """Yield the rows of all trials, each training done once: every iteration, or the last if the trial has an x."""
    wanted = list(every)
    return rows_of(wanted, train_all(wanted, setting, scene))


def rows_of(every: Iterable[Trial], known: dict[Trial, list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of all trials from the rows of their trainings."""
    for trial in every:
        found = known[canonical(trial)]
        for row in found if trial.x is None else found[-1:]:
            yield {"method": trial.name, "x": float(row["iteration"]) if trial.x is None else trial.x, **row}


def train(trial: Trial, setting: Setting, scene: Scene) -> list[dict[str, Any]]:
    """Train one trial; return one row per iteration."""
    return train_all([trial], setting, scene)[canonical(trial)]


def train_all(every: Iterable[Trial], setting: Setting, scene: Scene) -> dict[Trial, list[dict[str, Any]]]:
    """Run the distinct trainings of these trials as one batch; return one row per iteration for each."""
    different = list(dict.fromkeys(canonical(trial) for trial in every))
    different.sort(key=lambda trial: not trial.exact)  # the longest start first, so that all end at about the same time
    rows: list[list[dict[str, Any]]] = [[] for _ in different]

    def recorder(of_this: list[dict[str, Any]]) -> Callable[[dict[str, Any]], None]:
        def record(state: dict[str, Any]) -> None:
            of_this.append(
                {
                    "iteration": state["iteration"],
                    "performance": scene.performance(state["point"].visitation),
                    "theta_norm": state["theta_norm"],
                    "objective": state["objective"],
                }
            )

        return record

    def searches() -> Iterator[FitSteps]:
        for trial, of_this in zip(different, rows, strict=True):
            model, data = estimator(trial, setting, scene, recorder(of_this))
            yield model._prepare(scene.mdp, *data).steps()

    with ignore_convergence_warnings():  # similarities may be approximate
        for number, (*_, result) in run_searches(searches(), evaluate_batch):
            for row in rows[number]:
                row["converged"] = bool(result.converged)
    return dict(zip(different, rows, strict=True))
