"""The paper's three problems: highway (section 4), gridworld (App. B.1) and pit (App. B.2), and two random families.

Each is parametrised, and gives for every run its expert, the policies that unlabelled trajectories come from, its
similarity and its measure of performance. `DOMAINS` maps names to functions that make them. `garnet` and `network` make
a new problem for every seed. `slippery` gives the transitions of a grid of any size, up to millions of cells.
"""

from collections.abc import Callable

from messirl.paper.domains.domain import Domain, Scene, SyntheticTask, mixture
from messirl.paper.domains.gridworld import gridworld
from messirl.paper.domains.highway import highway
from messirl.paper.domains.pit import pit
from messirl.paper.domains.random_mdps import garnet, network
from messirl.paper.domains.slippery_grid import slippery

DOMAINS: dict[str, Callable[..., Domain]] = {"highway": highway, "gridworld": gridworld, "pit": pit}

__all__ = [
    "DOMAINS",
    "Domain",
    "Scene",
    "SyntheticTask",
    "garnet",
    "gridworld",
    "highway",
    "mixture",
    "network",
    "pit",
    "slippery",
]
