"""Available problems: domains of the paper, examples, tables of gymnasium, and folders of the command line.

A scene has a problem, a layout of its states, a function from requests to trajectories, and Python code that creates
the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from messirl._types import Floats
from messirl.app.lab.requests import FitRequest, RequestError
from messirl.app.lab.state_layout import MOST, Layout, make_layout
from messirl.data.mdp import MDP
from messirl.data.problem import Problem
from messirl.data.trajectories import Trajectories
from messirl.paper import domains
from messirl.paper.domains.domain import mixture
from messirl.paper.experiments.paper_settings import SETTINGS

STATES, FEATURES, WALKS = 4000, 600, 100_000  # maximum sizes for interactive fits
TEST = 100  # maximum number of scored held-out expert trajectories
MIXTURES = {"mu1": "μ1: near-expert and P₁", "mu2": "μ2: near-expert and P₂"}
MIXTURES |= {"mu3": "μ3: P₁ and P₂", "MAX": "all near-expert (MESSIMAX)"}
WORDS = {
    "highway": (
        "Highway",
        "Keep to the left, avoid cars and the verge. A tile is a lane (horizontal) and the cars beside it (vertical), "
        "averaged over the traffic ahead.",
    ),
    "gridworld": ("Gridworld", "16 × 16 slippery cells, 64 blocks of 2 × 2 as features; three of them are good."),
    "pit": (
        "Pit",
        "From the lower left to the upper right corner, around the pit. The expert passes on the right.",
    ),
    "museum": (
        "Museum",
        "Guides know what is worth seeing; tourists have read the same book, school classes have not.",
    ),
    "roads": ("Roads", "Trips through a town, each to its own goal: minutes, tolls and left turns."),
    "maze": ("Maze", "A labyrinth with water in one place; some animals are thirsty, some are not."),
}
TABLES = {"FrozenLake-v1": "Frozen lake", "FrozenLake8x8-v1": "Frozen lake, 8 × 8", "CliffWalking-v1": "Cliff walking"}


class RequestedSets(NamedTuple):
    """Trajectories of a request; kinds: 0 expert, 1 drawn, 2 near-expert, 3 other, 4 unknown.

    test : remaining expert trajectories, for a held-out score
    """

    expert: Trajectories
    unlabelled: Trajectories | None
    kinds: list[int]
    test: Trajectories | None = None


@dataclass(frozen=True, eq=False)
class LabScene:
    """One available problem.

    key : identifier in requests; title, story : texts for the page
    pick : function from a request to its trajectories, without drawn ones
    lines : function from a request to Python code that creates `mdp`, `expert` and `others`
    defaults : initial values of the controls; mixtures, filters : available choices
    performance : function from expected visits to performance, or None; truth : the true reward, or None
    by_feature : whether feature i indicates that state i is entered, so that the map shows θ
    """

    key: str
    title: str
    story: str
    mdp: MDP
    layout: Layout
    pick: Callable[[FitRequest], RequestedSets]
    lines: Callable[[FitRequest], list[str]]
    defaults: dict[str, Any]
    mixtures: dict[str, str] = field(default_factory=dict)
    filters: list[str] = field(default_factory=list)
    performance: Callable[[Floats], float] | None = None
    truth: Floats | None = None
    by_feature: bool = False


def catalogue(folders: dict[str, str]) -> list[dict[str, str]]:
    """Return key, title and group of every available problem. folders : from key to title."""
    out = [{"key": key, "title": WORDS[key][0], "group": "The paper's domains"} for key in domains.DOMAINS]
    out += [{"key": key, "title": WORDS[key][0], "group": "Examples"} for key in ("museum", "roads", "maze")]
    if find_spec("gymnasium") is not None:
        out += [{"key": key, "title": title, "group": "gymnasium"} for key, title in TABLES.items()]
    return out + [{"key": key, "title": title, "group": "Your folders"} for key, title in folders.items()]


def make_scene(key: str, seed: int = 0) -> LabScene:
    """Create a scene without a folder from a seed."""
    if key in domains.DOMAINS:
        return _domain(key, seed)
    if key in TABLES:
        from messirl.app.lab.gym_scenes import scene_of_table

        return scene_of_table(key, TABLES[key], seed)
    if key in ("museum", "roads", "maze"):
        from messirl.paper.synthetic.example_folder import EXAMPLES

        made = [f"from messirl.paper.synthetic import {key}", "", f"problem = {key}().problem"]
        return problem_scene(key, *WORDS[key], EXAMPLES[key]().problem, made)
    raise RequestError(f"unknown scene {key[:60]!r}: pick one of the list")


def _domain(key: str, seed: int) -> LabScene:
    setting = SETTINGS[key]
    domain = domains.DOMAINS[key](**setting.arguments)
    scene = domain.scene(seed)
    similarity, sigma = {"highway": ("rbf", 5.0), "gridworld": ("exponential", 10.0), "pit": ("turns", 1.0)}[key]
    own = {"similarity": similarity, "sigma": sigma, "lambda0": setting.lambda0, "objective": "counts"}
    if key == "gridworld":  # its expert follows 10 θ*: the same λ0/θ_max, and bounds that keep the rewards graded
        own |= {"theta_max": 10.0, "lambda0": 0.1}
    star = scene.thetas.get("star")
    made = ", ".join(f"{name}={value!r}" for name, value in setting.arguments.items())
    called = f'DOMAINS["{key}"]({made})'
    return drawn_scene(
        key,
        *WORDS[key],
        scene,
        _lanes(scene.mdp) if key == "highway" else make_layout(scene.mdp, _square(scene.mdp)),
        ["from messirl.paper.domains import DOMAINS, mixture", "", f"scene = {called}.scene({{seed}})"],
        own,
        truth=None if star is None else scene.mdp.reward(star),
    )


def drawn_scene(
    key: str,
    title: str,
    story: str,
    scene: domains.Scene,
    layout: Layout,
    made: list[str],
    own: dict[str, Any],
    **rest: Any,
) -> LabScene:
    """Create a scene with unlabelled trajectories from three sources."""

    def pick(ask: FitRequest) -> RequestedSets:
        if ask.mixture not in MIXTURES:
            raise RequestError(f"mixture must be one of {', '.join(MIXTURES)}")
        experts = scene.expert[: ask.experts]
        sources = domains.domain.MIXTURES[ask.mixture]
        near = [sources[0 if coin < ask.nu else 1] == "star" for coin in scene.coins[: ask.u]]
        kinds = [0] * len(experts) + [2 if good else 3 for good in near]
        return RequestedSets(experts, mixture(scene, ask.mixture, ask.u, ask.nu), kinds)

    def lines(ask: FitRequest) -> list[str]:
        return [
            *(line.format(seed=ask.seed) for line in made),
            f"mdp, expert = scene.mdp, scene.expert[:{ask.experts}]",
            f'others = mixture(scene, "{ask.mixture}", u={ask.u}, nu={ask.nu!r})',
        ]

    defaults = {"mixture": "mu1", "u": 20, "nu": 0.5, "experts": len(scene.expert), "theta_max": 500.0} | own
    measure = scene.performance if key in domains.DOMAINS else None
    return LabScene(
        key, title, story, scene.mdp, layout, pick, lines, defaults, mixtures=MIXTURES, performance=measure, **rest
    )


def problem_scene(key: str, title: str, story: str, problem: Problem, made: list[str]) -> LabScene:
    """Create a scene from a problem with recorded trajectories; filters select expert and unlabelled ones."""
    check_scene_size(problem.mdp, len(problem.trajectories))
    filters = _filters(problem)

    def chosen(text: str, n: int, what: str) -> Trajectories:
        try:
            return (problem.select(text).trajectories if text.strip() else problem.trajectories)[:n]
        except ValueError as error:
            raise RequestError(f"{what}: {error}") from None

    def pick(ask: FitRequest) -> RequestedSets:
        every = chosen(ask.expert, ask.experts + TEST, "the expert trajectories")
        expert, test = every[: ask.experts], every[ask.experts :]
        others = chosen(ask.mixture, ask.u, "the unlabelled trajectories") if ask.u else None
        n = 0 if others is None else len(others)
        return RequestedSets(expert, others if n else None, [0] * len(expert) + [4] * n, test if len(test) else None)

    def lines(ask: FitRequest) -> list[str]:
        def of(text: str, n: int) -> str:
            return f"problem.select({text!r}).trajectories[:{n}]" if text.strip() else f"problem.trajectories[:{n}]"

        others = of(ask.mixture, ask.u) if ask.u else None
        return [*made, f"mdp, expert = problem.mdp, {of(ask.expert, ask.experts)}", f"others = {others}"]

    defaults = {
        "expert": filters[0][0] if filters else "",  # few experts, many unlabelled trajectories
        "mixture": filters[0][-1] if filters else "",
        "u": 50 if filters else 0,
        "experts": min(10, len(problem.trajectories)),
        "similarity": "rbf-std",
        "sigma": 10.0,
        "lambda0": 0.05,
        "theta_max": 500.0,
        "objective": "choices",
    }
    layout = make_layout(problem.mdp, problem.xy, y_down=problem.y_down)
    return LabScene(
        key,
        title,
        story,
        problem.mdp,
        layout,
        pick,
        lines,
        defaults,
        filters=[text for column in filters for text in column],
    )


def check_scene_size(mdp: MDP, walks: int) -> None:
    """Refuse a problem that is too large for interactive fits."""
    sizes = (("states", mdp.n_states, min(STATES, MOST)), ("features", mdp.n_features, FEATURES))
    for what, n, most in (*sizes, ("trajectories", walks, WALKS)):
        if n > most:
            raise RequestError(
                f"the problem has {n:,} {what}: this page takes at most {most:,}; use messirl fit instead"
            )


def _filters(problem: Problem) -> list[list[str]]:
    """Return suggested filters by column: the values of columns with few values, rarest first."""
    found: list[list[str]] = []
    for name, column in problem.meta.items():
        values, often = np.unique(np.asarray(column).astype(str), return_counts=True)
        if 2 <= values.size <= 8 and all(text.isprintable() and len(text) < 60 for text in (name, *values)):
            found.append([f"{_word(name)} = {_word(values[i])}" for i in np.argsort(often, kind="stable")])
    return sorted(found, key=len)


def _word(text: str) -> str:
    plain = text.isidentifier() or text.replace(".", "", 1).isdigit()
    return text if plain and text not in ("and", "or") else "'" + text.replace("'", "''") + "'"


def _square(mdp: MDP) -> Floats:
    from messirl.paper.domains.slippery_grid import coordinates

    return coordinates(round(mdp.n_states**0.5)).astype(np.float64)


def _lanes(mdp: MDP) -> Layout:
    """Return a layout with a column per position across the road and a row per set of cars beside it."""
    from messirl.paper.domains.highway import LANES, PLACES, ROWS

    across = mdp.n_states // PLACES
    place, view = np.divmod(np.arange(mdp.n_states), across)
    beside = view // (across // len(ROWS))
    columns = ("verge", *(f"lane {i + 1}" for i in range(LANES)), "verge")
    said = ["no car" if not cars else "car in lane " + " and ".join(str(c + 1) for c in cars) for cars in ROWS]
    labels = [f"{columns[p]}, {said[row]}" for p in range(PLACES) for row in range(len(ROWS))]
    at = np.array([(p, row) for p in range(PLACES) for row in range(len(ROWS))], dtype=np.float64)
    road = {"place": place.tolist(), "beside": beside.tolist(), "cars": [list(cars) for cars in ROWS]}
    return Layout("lanes", place * len(ROWS) + beside, at, labels, columns, road)
