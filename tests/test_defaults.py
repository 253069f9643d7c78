"""Python, the commands and the README have one set of defaults."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from messirl import MDP, MESSI, EMMaxEnt, MaxEntIRL
from messirl._parameters import CV, MODEL, default
from messirl.app.cli import diagnose, fit, select
from messirl.app.cli._parser import Parser, settings_from_options
from messirl.app.workflow.model_settings import ModelSettings, make_model
from messirl.dynamics import FittedMESSI, estimate_mdp
from messirl.selection import MESSICV
from messirl.selection.candidates import CandidateFitter
from messirl.selection.diagnostics import diagnose as diagnose_function
from messirl.selection.expert_agreement import measure_agreement
from messirl.similarity import RBF
from messirl.similarity.kernels import DEFAULT

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
OF_COMMANDS = {"random_state": 0}  # the commands always have a seed


def parsed(command: Any, *words: str) -> Any:
    parser = Parser(prog="messirl")
    command.add(parser)
    return parser.parse_args(["folder", *words])


def of(function: Any) -> dict[str, Any]:
    found = inspect.signature(function).parameters
    return {name: one.default for name, one in found.items() if one.default is not inspect.Parameter.empty}


@pytest.mark.parametrize(("method", "kind"), [("messi", MESSI), ("maxent", MaxEntIRL), ("em", EMMaxEnt)])
@pytest.mark.parametrize("command", [fit, diagnose])
def test_a_command_without_options_means_the_estimator_without_arguments(method, kind, command):
    model = make_model(settings_from_options(ModelSettings, vars(parsed(command, "--method", method))), unlabelled=True)
    assert type(model) is kind
    assert model.get_params(deep=False) == {**kind().get_params(deep=False), **OF_COMMANDS}


def test_select_means_messicv_without_arguments():
    options, own = parsed(select), of(MESSICV)
    names = ("cv", "theta_max", "objective", "reference", "reference_strength")
    assert {name: getattr(options, name) for name in names} == {name: own[name] for name in names}
    assert options.lambdas is None, "those of MESSICV"


def test_diagnose_means_the_function_without_arguments():
    options, own = parsed(diagnose), of(diagnose_function)
    for name in ("influential", "cv"):
        assert getattr(options, name) == own[name], name


@pytest.mark.parametrize("function", [MESSI, MaxEntIRL, MESSICV, FittedMESSI, CandidateFitter, measure_agreement])
def test_what_has_one_name_has_one_default(function):
    known = {"similarity": DEFAULT, "cv": CV} | {one.name: one.default for one in MODEL if one.name != "theta_prior"}
    own = {name: value for name, value in of(function).items() if name in known}
    if function is measure_agreement:
        own.pop("tol")  # the fits of a validation need not be as exact
    assert own == {name: known[name] for name in own}


def test_the_default_similarity_is_an_rbf_of_the_median_width_on_standardised_counts():
    assert RBF("median", standardise=True) == DEFAULT
    assert RBF() == RBF("median")


@pytest.mark.parametrize("function", [MDP, estimate_mdp, FittedMESSI])
def test_a_discount_is_never_taken_in_silence(function):
    assert "discount" not in of(function)
    if function is MDP:
        with pytest.raises(TypeError, match="discount"):
            MDP(np.eye(2)[:, None], np.eye(2))


def test_the_readme_names_the_defaults_there_are():
    said = re.search(r"λ0 = (\S+), θ_max = (\S+), at most (\d+) iterations, a tolerance of (\S+)", README)
    assert said is not None
    values = [float(x.rstrip(",.;")) for x in said.groups()]
    assert values == [default(name) for name in ("lambda0", "theta_max", "max_iter", "tol")]
    assert "an RBF of the median width on standardised counts" in README


def test_the_readme_fits_without_arguments():
    assert "MESSI().fit(mdp, expert, others)" in README
