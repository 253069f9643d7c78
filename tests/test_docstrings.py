"""What `help` shows: every parameter, every fitted attribute, an example that runs, a reference."""

from __future__ import annotations

import doctest
import importlib
import inspect
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import messirl
from messirl import MDP, MaxEntIRL, Trajectories, sample, soft_policy
from messirl._docstrings import entries, inherit_documentation, names, sections

HOUSE = Path(messirl.__file__).parent
SECTIONS = ("Parameters", "Attributes", "References", "Examples")
CLASSES = {
    "MDP": "messirl",
    "Trajectories": "messirl",
    "MaxEntIRL": "messirl",
    "MESSI": "messirl",
    "EMMaxEnt": "messirl",
    "MESSICV": "messirl",
    "RBF": "messirl.similarity",
    "Exponential": "messirl.similarity",
    "CompleteGraph": "messirl.similarity",
    "Precomputed": "messirl.similarity",
    "FittedMESSI": "messirl.dynamics",
}
every_class = pytest.mark.parametrize("name", CLASSES)


def listed(name: str, title: str) -> set[str]:
    """What a section of a class's docstring lists."""
    return {word for head in entries(sections(public(name).__doc__).get(title, [])) for word in names(head)}


def public(name: str) -> type:
    return getattr(importlib.import_module(CLASSES[name]), name)


@every_class
def test_a_class_has_all_sections_in_order(name):
    found = [title for title in sections(public(name).__doc__) if title]
    assert found == [title for title in SECTIONS if title in found]
    assert {"References", "Examples"} <= set(found)


@every_class
def test_every_parameter_is_explained_and_no_other(name):
    assert listed(name, "Parameters") == set(inspect.signature(public(name)).parameters)


@every_class
def test_an_example_is_there(name):
    assert any(line.startswith(">>>") for line in sections(public(name).__doc__)["Examples"])


@cache
def row_of_places() -> tuple[MDP, Trajectories, Trajectories]:
    moves = np.stack([np.eye(4)[[0, 0, 1, 2]], np.eye(4)[[1, 2, 3, 3]]], axis=1)
    mdp = MDP(moves, np.linspace(0, 1, 4)[:, None], discount=0.9, horizon=6, start=np.full(4, 0.25))
    policy = soft_policy(mdp, mdp.reward([1.0]))
    return mdp, sample(mdp, policy, 6, random_state=0), sample(mdp, policy, 6, random_state=1)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["MaxEntIRL", "MESSI", "EMMaxEnt", "MESSICV"])
def test_every_fitted_attribute_is_explained_and_no_other(name):
    model = public(name)().fit(*row_of_places())
    found = {word for word in (*vars(model), *dir(type(model))) if word.endswith("_") and not word.startswith("_")}
    if name == "MESSICV":  # also has what the method it chose adds
        found -= set(vars(model.best_estimator_)) - set(vars(MaxEntIRL().fit(*row_of_places())))
    assert listed(name, "Attributes") == found


class Above:
    """What is above.

    Parameters
    ----------
    a, b : int
        Two.
    c : float
        One more.

    Attributes
    ----------
    found_ : int
    lost_ : int
    """

    def __init__(self, a, b, c):
        pass


class Below(Above):
    """What is below.

    Parameters
    ----------
    d : int

    Attributes
    ----------
    lost_ : float

    Examples
    --------
    None.
    """

    def __init__(self, d, a, b):
        pass


def test_a_class_inherits_what_it_does_not_say_itself():
    inherit_documentation(Below)
    found = sections(Below.__doc__)
    assert list(found) == ["", "Parameters", "Attributes", "Examples"]
    assert list(entries(found["Parameters"])) == ["d : int", "a, b : int"]
    assert found["Parameters"] == ["d : int", "a, b : int", "    Two."]
    assert list(entries(found["Attributes"])) == ["lost_ : float", "found_ : int"]


MODULES = [path for path in sorted(HOUSE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_examples_give_what_they_show(path):
    parts = ["messirl", *path.relative_to(HOUSE).with_suffix("").parts]
    module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0
