"""messirl: maximum-entropy inverse reinforcement learning from few expert and many unlabelled trajectories.

    from messirl import MDP, Trajectories, MESSI
    from messirl.similarity import RBF

    mdp = MDP(transitions, features, discount=0.95)
    expert, unlabelled = Trajectories.from_lists(good), Trajectories.from_lists(others)
    model = MESSI(RBF(sigma=5.0), lambda0=0.05).fit(mdp, expert, unlabelled)

Names are imported when first used, so that `import messirl` is fast.
"""

from __future__ import annotations

from messirl._lazy import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_get, __dir__, __all__ = lazy_exports(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name != "__version__":
        return _get(name)
    from importlib import metadata

    try:
        return metadata.version("messirl")
    except metadata.PackageNotFoundError:  # run from a source tree that is not installed
        return "unknown"
