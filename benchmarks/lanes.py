"""Many problems with the same dynamics: trainings by fixed steps side by side, in lanes, against one at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.table import Row, seconds
from benchmarks.timing import compare
from messirl import MESSI
from messirl.estimators._convergence_report import ignore_convergence_warnings
from messirl.objective import evaluate_batch
from messirl.optim.lockstep import run_searches
from messirl.paper.domains import Scene, gridworld, highway, mixture, pit
from messirl.planning.kernels.batched_bellman import L

STEPS = 10
TARGET = 1.5


def fits(scene: Scene) -> list[tuple[MESSI, tuple[object, ...]]]:
    unlabelled = mixture(scene, "mu1", 20, 0.5)
    common = {"objective": "counts", "solver": "paper", "max_iter": STEPS}
    strengths = np.geomspace(0.005, 0.5, L)
    return [(MESSI(scene.similarity, lambda0=s, **common), (scene.mdp, scene.expert, unlabelled)) for s in strengths]


def rows() -> Iterator[Row]:
    for name, domain in (("gridworld", gridworld()), ("highway", highway()), ("pit", pit())):
        every = fits(domain.scene(0))

        def lanes(every=every):
            with ignore_convergence_warnings():
                searches = (model._prepare(*data).steps() for model, data in every)
                return {n: found[-1] for n, found in run_searches(searches, evaluate_batch)}

        def alone(every=every):
            with ignore_convergence_warnings():
                return [model._prepare(*data).found()[-1] for model, data in every]

        for found, wanted in zip(sorted(lanes().items()), alone(), strict=True):
            np.testing.assert_allclose(found[1].theta, wanted.theta, rtol=0.0, atol=1e-9)
        times = compare(lanes, alone, rounds=5)
        what = f"{L} trainings of {STEPS} fixed steps, {name}, in lanes: one at a time"
        yield Row(what, seconds(times.ours), seconds(times.other), times.ratio, TARGET)
