"""Type, range, default, help and option of a parameter stand in one table, from which everything else follows."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import messirl
from messirl._parameters import SETTINGS, parameter
from messirl.app.cli import fit
from messirl.app.cli._parser import Parser, flag_of, with_flags
from messirl.app.workflow.model_settings import ModelSettings
from messirl.estimators.registry import METHODS

ESTIMATORS = sorted({method.estimator() for method in METHODS.values()}, key=lambda kind: kind.__name__)
OBJECTS = {"similarity", "random_state", "callback", "theta_init", "signs"}  # values that are no number, word or flag
NO_OPTIONS = {"warm_start", "version"}


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_parameter_of_an_estimator_is_in_the_table_with_its_default(kind):
    owners = [one.__name__ for one in kind.__mro__]
    for name, one in inspect.signature(kind).parameters.items():
        entry = parameter(name, owners)
        assert (entry is None) == (name in OBJECTS), name
        if entry is not None:
            assert one.default == entry.default, name
            assert name in NO_OPTIONS or name in {setting.name for setting in SETTINGS.values()}


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_number_beyond_its_range_is_refused_by_every_estimator_that_has_it(kind):
    owners = [one.__name__ for one in kind.__mro__]
    for name in inspect.signature(kind).parameters:
        entry = parameter(name, owners)
        if entry is None or entry.kind in ("flag", "choice"):
            continue
        low = entry.least if entry.least is not None else entry.above
        beyond = low - 1 if entry.kind == "whole" or entry.least is not None else low
        with pytest.raises(ValueError, match=rf"{name}={beyond}: it must be "):
            kind(**{name: beyond})._check_arguments()


def test_every_parameter_in_the_table_is_a_setting_and_an_option_of_fit():
    made = Parser(prog="messirl fit")
    fit.add(made)
    options = {action.dest: action for action in made._actions}
    for name, entry in SETTINGS.items():
        assert name in ModelSettings.__dataclass_fields__
        assert options[name].option_strings == [flag_of(name)]
        assert options[name].help.startswith(with_flags(entry.help)[:20])
        assert f"\n{name} : " in ModelSettings.__doc__


def test_messages_of_the_library_name_parameters_and_the_command_line_names_flags():
    assert with_flags("`theta_prior` and `standardise_counts`") == "--theta-prior and --no-standardise"
    assert with_flags("lambda0=-1.0: it must be >= 0") == "--lambda0 -1.0: it must be >= 0"
    assert with_flags("steps_per_round=3 or solver='paper'.") == "--eta 3 or --solver paper."
    assert with_flags("x=1 is no parameter") == "x=1 is no parameter"
    library = [path for path in Path(messirl.__file__).parent.rglob("*.py") if "app/cli/" not in path.as_posix()]
    named = {path.name for path in library if re.search(r"(?<![\w-])--[a-z]{2}", path.read_text(encoding="utf-8"))}
    of_css = {"colours.py", "css.py", "svg_tooltips.py"}
    commands = {"provenance.py", "maze.py", "museum.py", "roads.py"}  # write whole command lines
    assert named - of_css - commands <= {"_parameters.py", "cluster.py", "result_store.py"}  # one flag, Dask's, git's
