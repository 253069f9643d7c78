"""Settings of the reproduction, with reasons for those that the paper does not give.

The paper gives θ_max = 500, T = 100 iterations, l = 1, u = 20, ν = 0.5, λ0 = 0.05 and 50 runs. It does not give the
step size, the discount, the density of traffic, the length of trajectories or the scale of θ*. These were chosen on
the pilot seeds 0 … 49; reported results use the seeds FRESH, FRESH + 1, …, which no choice used.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any

FRESH = 2000
FRESH_LEARNERS = 6000  # first seed of the comparison of learners, which was developed on lower ones

# Points of the sweeps, per figure.
EXACT = "/exact"  # suffix of a method that was optimised exactly
AGAINST = " against "  # separates two domains that a claim compares
UNLABELLED = (0, 1, 2, 5, 10, 20, 50, 100)
NU = (0.0, 0.05, 0.1, 0.15, 0.25, 0.5, 0.75, 1.0)
LAMBDA0 = (0.0, 0.005, 0.02, 0.05, 0.2, 0.5, 2.0, 5.0, 20.0, 50.0)
ETA = (1, 5, 10, 20, 50)


@dataclass(frozen=True)
class Setting:
    """Experiment in one domain: arguments of the domain and of the learners."""

    domain: str
    lambda0: float
    step_size: float = 1.0
    theta_max: float = 500.0
    iterations: int = 100
    u: int = 20
    nu: float = 0.5
    figures: tuple[str, ...] = ("iterations", "unlabelled", "nu", "lambda", "em")
    sceptics: bool = True  # also baselines that the paper does not have, and the exact solver
    arguments: dict[str, Any] = field(default_factory=dict)
    sweeps: dict[str, tuple[float, ...]] = field(
        default_factory=lambda: {"unlabelled": UNLABELLED, "nu": NU, "lambda": LAMBDA0, "em": ETA}
    )

    def main_only(self) -> Setting:
        """Return the setting of the main comparison only: the methods of the paper at the defaults."""
        return replace(self, figures=("iterations",), sceptics=False, sweeps={})

    @property
    def config_hash(self) -> str:
        """Hash of these numbers, with twelve digits."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]


SETTINGS: dict[str, Setting] = {
    # λ0: the point of the λ sweep with the largest gain of MESSI(μ1) over MaxEnt on the pilot seeds, among those at
    # which the fixed step is stable there (step · λ · ‖M‖ < 2: up to 20 on the highway, 5 on the gridworld, 0.5 in the
    # pit); beyond, the iteration oscillates and its numbers are an artefact.
    "highway": Setting(
        "highway", lambda0=5.0, arguments={"density": 0.3, "discount": 0.95, "length": 100, "heavy": 10.0}
    ),
    "gridworld": Setting("gridworld", lambda0=5.0, arguments={"discount": 0.8, "length": 40, "scale": 10.0}),
    "pit": Setting("pit", lambda0=0.5, arguments={"discount": 0.95, "scale": 1.0}),
    # The highway with one more visible row (7,986 states).
    "highway-far": Setting(
        "highway",
        lambda0=5.0,
        arguments={"density": 0.3, "discount": 0.95, "length": 100, "heavy": 10.0, "rows_ahead": 2},
    ).main_only(),
}

# Fewer points, for a first look.
QUICK: dict[str, Setting] = {
    name: replace(
        setting,
        sweeps={
            "unlabelled": (1, 5, 20, 100),
            "nu": (0.0, 0.15, 0.5, 1.0),
            "lambda": (0.0, 0.05, 0.5, 5.0, 50.0),
            "em": (1, 10, 50),
        },
    )
    for name, setting in SETTINGS.items()
    if name != "highway-far"
}

CHOICES = {
    "step size 1 on unscaled counts": "with the paper's scaled features steps of 1 barely move θ in 100 iterations; "
    "1 on unscaled counts (1/(1−γ)² on scaled ones) puts it in the regime the paper describes",
    "γ = 0.95 (highway, pit)": "an effective horizon of 20 steps: the size of the problems",
    "γ = 0.8 (gridworld)": "on the pilot seeds MESSI(μ1) gained 0.029 ± 0.010 at 0.8, 0.040 ± 0.015 at 0.85, 0.01 to "
    "0.02 ± 0.02 at 0.9: a far-sighted imitator does well with the one good place the expert showed it. 0.85 was tried "
    "first, on 22 runs from seed 1000; so reported results start at seed 2000, which no choice has used",
    "traffic: each lane of a row occupied with 0.3": "dense traffic, in which a free lane nearly always exists",
    "100 states per trajectory on the highway, 40 on the gridworld": "the discounted tail is then below 1 %",
    "θ* = −10 on collision and off-road, θ1 a fifth of it": "the expert hardly ever collides, θ1 visibly does",
    "gridworld: θ* from −U(0.1, 1), three features of the other sign; trajectories from the soft policy of 10 θ": "an "
    "expert that is clearly but not perfectly directed",
    "θ starts at zero": "the paper starts at random; zero makes runs comparable; the optimum does not depend on it",
    "performance times (1 − γ)": "so that it is a share of time (highway, pit) or a mean reward (gridworld)",
}


def sensitivity(setting: Setting) -> dict[str, Setting]:
    """Return the experiment with each setting halved and doubled, by name."""
    out: dict[str, Setting] = {}

    def put(name: str, **changes: Any) -> None:
        out[name] = replace(setting.main_only(), **changes)

    for word, factor in (("halved", 0.5), ("doubled", 2.0)):
        put(f"step size {word}", step_size=setting.step_size * factor)
        put(f"lambda0 {word}", lambda0=setting.lambda0 * factor)
        put(f"iterations {word}", iterations=int(setting.iterations * factor))
        for key, value in setting.arguments.items():
            if key == "discount":  # the effective horizon 1/(1−γ), halved and doubled
                changed: Any = round(1.0 - (1.0 - value) / factor, 6)
            elif key == "rows_ahead":
                continue
            else:
                changed = type(value)(value * factor)
            put(f"{key} {word}", arguments={**setting.arguments, key: changed})
    return out
