"""What `help` shows: every parameter, every fitted attribute, an example that runs, a reference."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import inspect
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import messirl
from messirl import MDP, MESSI, MESSICV, EMMaxEnt, MaxEntIRL, Trajectories, sample, soft_policy
from messirl._docstrings import entries, inherit_documentation, names, sections
from messirl.dynamics import FittedMESSI
from messirl.estimators import (
    DWBC,
    ISWBC,
    LPAL,
    MWAL,
    SSIRL,
    AbbeelNg,
    BayesianIRL,
    BehaviourCloning,
    DemoDICE,
    MixtureMESSI,
    NgRussell,
    OwnPolicyMESSI,
    RelativeEntropyIRL,
    SeveralExperts,
    UniformPolicy,
)
from messirl.io import Recording

HOUSE = Path(messirl.__file__).parent
SECTIONS = ("Parameters", "Attributes", "References", "Examples")
METHODS = {  # what a user chooses among: parameters, a reference, and an example
    "messirl.data": ("MDP", "Trajectories"),
    "messirl.estimators": (
        *("MESSI", "EMMaxEnt", "MaxEntIRL"),
        *("BehaviourCloning", "DWBC", "DemoDICE", "ISWBC", "MixtureMESSI", "OwnPolicyMESSI", "SeveralExperts"),
        *("AbbeelNg", "SSIRL", "MWAL", "LPAL", "NgRussell", "RelativeEntropyIRL", "BayesianIRL"),
    ),
    "messirl.selection": ("MESSICV",),
    "messirl.similarity": (
        *("CompleteGraph", "Exponential", "NearestNeighbours", "Precomputed", "RBF", "Similarity"),
        *("DynamicTimeWarping", "EditDistance", "FisherKernel", "VisitedStates"),
    ),
    "messirl.dynamics": ("FittedMESSI",),
}
MADE = {  # what a user makes, and no paper describes: parameters and an example
    "messirl.estimators": ("UniformPolicy",),
    "messirl.io": ("Grid", "Hexagons", "KMeans", "Problem", "Recording", "StreamedTrajectories"),
    "messirl.selection": ("Adapted", "Candidate"),
    "messirl.selection.candidates": ("CandidateFitter",),
    "messirl.app.workflow.comparison": ("CompareSettings",),
    "messirl.app.workflow.diagnosis": ("DiagnoseSettings",),
    "messirl.app.workflow.fitting": ("FitSettings",),
    "messirl.app.workflow.import_settings": ("ImportSettings",),
    "messirl.app.workflow.model_settings": ("ModelSettings",),
    "messirl.app.workflow.fit_recordings": ("RecordingSettings",),
    "messirl.app.workflow.selecting": ("SelectSettings",),
    "messirl.app.workflow.split": ("Split",),
    "messirl.app.workflow.watcher": ("Watcher",),
}
RECORDS = {  # what functions return: every field
    "messirl.parallel": ("KeptResult",),
    "messirl.data": ("Trajectory",),
    "messirl.paper.domains": ("Domain", "Scene", "SyntheticTask"),
    "messirl.io": ("Estimable",),
    "messirl.dynamics": ("EstimatedMDP", "Evidence", "PosteriorSpread"),
    "messirl.paper.synthetic": ("Example",),
    "messirl.inference": ("EstimationTable", "LikelihoodRatio", "WeightRatio"),
    "messirl.inference.group_breakdown": ("Breakdown", "Group"),
    "messirl.selection": ("NestedScore", "Validation"),
    "messirl.selection.candidates": ("CandidateFit",),
    "messirl.selection.decision_rule": ("Choice", "UnlabelledGain"),
    "messirl.selection.expert_agreement": ("RelativeLikelihood", "ExpertAgreement"),
    "messirl.selection.resampling": ("BootstrapFits",),
    "messirl.selection.diagnostics": ("Diagnosis", "Direction"),
    "messirl.app.workflow.group_by": ("Grouping",),
    "messirl.app.workflow.policy_change": ("PolicyChange",),
    "messirl.app.workflow.comparison": ("FolderCase",),
    "messirl.app.workflow.comparison_record": ("ComparisonRecord",),
    "messirl.app.workflow.evaluation_record": ("EvaluationRecord",),
    "messirl.app.workflow.import_cells": ("ImportedSequences",),
    "messirl.app.workflow.import_trips": ("ImportedTracks",),
    "messirl.app.workflow.importing": ("ImportRecord",),
    "messirl.app.workflow.record": (
        "DiagnosisRecord",
        "FitRecord",
        "Record",
        "Score",
        "SelectionRecord",
    ),
    "messirl.app.workflow.fit_recordings": ("RecordingsRecord",),
    "messirl.app.workflow.split": ("DividedProblem",),
    "messirl.app.workflow.verdict": ("Verdict",),
    "messirl.app.workflow.preferences": ("Preferences", "FeatureSigns"),
}
RAISED = {  # errors and warnings: what they mean, and what they carry
    "messirl.data": ("InputError",),
    "messirl.planning": ("NoFiniteValue",),
    "messirl.estimators": ("IdentifiabilityWarning",),
    "messirl.inference": ("FewClustersWarning",),
    "messirl.similarity": ("ApproximationWarning",),
    "messirl.selection": ("NothingHeldOut",),
}
# Packages that list what they offer in `__init__.py`, and modules all of whose classes are on offer.
LISTS = ("messirl.data", "messirl.selection", "messirl.paper.domains", "messirl.paper.synthetic")
WORKFLOW = [f"messirl.app.workflow.{path.stem}" for path in sorted((HOUSE / "app" / "workflow").glob("[!_]*.py"))]
OPEN = ("messirl.selection.diagnostics", "messirl.parallel", *WORKFLOW)


def those_of(table: dict[str, tuple[str, ...]]) -> list[type]:
    return [getattr(importlib.import_module(home), name) for home, names_there in table.items() for name in names_there]


def every(*tables: dict[str, tuple[str, ...]]) -> pytest.MarkDecorator:
    found = [cls for table in tables for cls in those_of(table)]
    return pytest.mark.parametrize("cls", found, ids=lambda cls: cls.__name__)


def listed(cls: type, title: str) -> set[str]:
    """What a section of a class's docstring lists."""
    return {word for head in entries(sections(cls.__doc__).get(title, [])) for word in names(head)}


def test_every_public_class_is_looked_at():
    stubs = (path.parent.relative_to(HOUSE.parent).parts for path in HOUSE.rglob("__init__.pyi"))
    offered = [importlib.import_module(home) for home in (*map(".".join, stubs), *LISTS)]
    found = [getattr(module, name) for module in offered for name in module.__all__]
    for home in OPEN:
        there = vars(importlib.import_module(home)).items()
        found += [value for name, value in there if name[0] != "_" and getattr(value, "__module__", "") == home]
    classes = {value for value in found if inspect.isclass(value)}
    assert classes <= {cls for table in (METHODS, MADE, RECORDS, RAISED) for cls in those_of(table)}


@every(METHODS, MADE, RECORDS, RAISED)
def test_a_class_has_its_sections_in_order(cls):
    found = [title for title in sections(cls.__doc__) if title]
    assert found == [title for title in SECTIONS if title in found]
    assert sections(cls.__doc__)[""][0].endswith(".")


@every(METHODS, MADE)
def test_every_parameter_is_explained_and_no_other(cls):
    assert listed(cls, "Parameters") == set(inspect.signature(cls).parameters)


@every(METHODS, MADE)
def test_an_example_is_there(cls):
    assert any(line.startswith(">>>") for line in sections(cls.__doc__)["Examples"])


@every(METHODS)
def test_a_reference_is_there(cls):
    assert sections(cls.__doc__)["References"]


@every(RECORDS)
def test_every_field_of_a_record_is_explained_and_no_other(cls):
    fields = {field.name for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set(cls._fields)
    assert listed(cls, "Attributes") == fields


@every(METHODS, MADE, RECORDS)
def test_what_is_listed_is_explained(cls):
    for title in ("Parameters", "Attributes"):
        for head, lines in entries(sections(cls.__doc__).get(title, [])).items():
            assert len(lines) > 1, head


@every(RAISED)
def test_an_error_says_what_it_means_and_what_it_carries(cls):
    own = set(inspect.signature(cls.__init__).parameters) if "__init__" in vars(cls) else set()
    assert listed(cls, "Parameters") == own - {"self"} - ({"message"} & own)


@cache
def row_of_places() -> tuple[MDP, Trajectories, Trajectories]:
    moves = np.stack([np.eye(4)[[0, 0, 1, 2]], np.eye(4)[[1, 2, 3, 3]]], axis=1)
    mdp = MDP(moves, np.linspace(0, 1, 4)[:, None], discount=0.9, horizon=6, start=np.full(4, 0.25))
    policy = soft_policy(mdp, mdp.reward([1.0]))
    return mdp, sample(mdp, policy, 6, random_state=0), sample(mdp, policy, 6, random_state=1)


def fitted_attributes(model: object) -> set[str]:
    return {word for word in (*vars(model), *dir(type(model))) if word.endswith("_") and not word.startswith("_")}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "cls",
    [
        *(MaxEntIRL, MESSI, EMMaxEnt, MESSICV, UniformPolicy),
        *(BehaviourCloning, DWBC, ISWBC, DemoDICE, OwnPolicyMESSI, SeveralExperts, MixtureMESSI),
        *(AbbeelNg, SSIRL, MWAL, LPAL, NgRussell, RelativeEntropyIRL, BayesianIRL),
    ],
)
def test_every_fitted_attribute_is_explained_and_no_other(cls):
    data = row_of_places()
    few = {"n_warm_up": 50, "n_samples": 50} if cls is BayesianIRL else {}
    model = cls(**few).fit(*(data[:2] if cls is UniformPolicy else data))
    found = fitted_attributes(model)
    if cls is MESSICV:  # also has what the method it chose adds
        found -= set(vars(model.best_estimator_)) - set(vars(MaxEntIRL().fit(*data)))
    assert listed(cls, "Attributes") == found


def test_every_fitted_attribute_of_a_fit_to_recordings_is_explained_and_no_other():
    steps = np.linspace(0.0, 1.0, 6)[:, None]
    right = Recording(steps, np.ones(5, dtype=int), terminated=True)
    left = Recording(steps[::-1], np.zeros(5, dtype=int), terminated=True)
    found: set[str] = set()
    for counts in ("model", "importance"):
        model = FittedMESSI(lambda s: np.column_stack([s, np.ones(len(s))]), discount=0.9, lambda0=1.0, counts=counts)
        found |= fitted_attributes(model.fit([right, left], [left, right]))
    assert listed(FittedMESSI, "Attributes") == found


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
