"""Workflows: plain settings in, a record out, whoever asks; commands turn options into settings and do no more."""

from __future__ import annotations

import ast
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from folders import grid, read_json
from worlds import drawn, ring

from messirl.app import cli
from messirl.app.workflow.diagnosis import DiagnoseSettings, diagnose
from messirl.app.workflow.fitting import FitSettings, fit
from messirl.app.workflow.model_evaluation import evaluate
from messirl.app.workflow.model_settings import ModelSettings, make_model, make_similarity
from messirl.app.workflow.selecting import SelectSettings, select
from messirl.app.workflow.split import Split, divide
from messirl.app.workflow.watcher import Watcher
from messirl.estimators.registry import METHODS
from messirl.io import Problem, read_problem
from messirl.similarity import EditDistance, VisitedStates

SPLIT = Split("role = expert", "role = unlabelled", "role = test", 5, 8)
WORDS = ["--expert", SPLIT.expert, "--unlabelled", SPLIT.unlabelled, "--test", SPLIT.test]
WORDS += ["--n-expert", "5", "--n-unlabelled", "8"]
BASED = ["--objective", "choices", "--reference", "unlabelled", "--reference-strength", "2"]
OF_COMMANDS = ("folder", "command", "files", "next")  # what only a command can know
OF_ONE_RUN = ("seconds",)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return grid(tmp_path_factory.mktemp("folders") / "grid")


@pytest.fixture(scope="module")
def problem(folder):
    return read_problem(folder)


def listening():
    """A watcher, and what it hears, in order."""
    heard = []

    @contextmanager
    def progress(title, unit, *, at_most=False):
        heard.append(f"{title} begins")
        yield lambda done, total: None
        heard.append(f"{title} ends")

    watcher = Watcher(
        say=lambda text: heard.append(f"said: {text}"),
        note=lambda text: heard.append("noted"),
        progress=progress,
        begin=lambda: heard.append("begin"),
        keep=lambda model: heard.append(f"keep {type(model).__name__}"),
    )
    return watcher, heard


def as_written(record):
    """The summary of a record as it is in a file."""
    from messirl.app.cli._parser import as_json

    return of_all_runs(read_json(as_json(record.summary())))


def of_all_runs(summary):
    """A summary without what only a command can know, and without what differs from run to run."""
    return {name: value for name, value in summary.items() if name not in (*OF_COMMANDS, *OF_ONE_RUN)}


DIAGNOSED = DiagnoseSettings(influential=2, cv=2)


@pytest.fixture(scope="module")
def diagnosed(problem):
    return diagnose(problem, SPLIT, DIAGNOSED)


# ------------------------------------------------------------ records


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "work", "settings", "more"),
    [
        ("fit", fit, FitSettings(lambda0=2.0), ["--lambda0", "2"]),
        ("fit", fit, FitSettings("maxent", baselines=False), ["--method", "maxent", "--no-baselines"]),
        (
            "fit",
            fit,
            FitSettings(objective="choices", reference="unlabelled", reference_strength=2.0, unlabelled_weight=0.1),
            [*BASED, "--unlabelled-weight", "0.1"],
        ),
        ("select", select, SelectSettings(lambdas=(0.1,), cv=3), ["--lambdas", "0.1", "--cv", "3"]),
        (
            "select",
            select,
            SelectSettings(lambdas=(0.1,), cv=3, objective="choices", reference="unlabelled", reference_strength=2.0),
            ["--lambdas", "0.1", "--cv", "3", *BASED],
        ),
    ],
)
def test_a_command_writes_the_summary_of_the_record(folder, problem, run, tmp_path, command, work, settings, more):
    found = read_json(run(command, folder, *WORDS, *more, "--json", "--out", tmp_path))
    assert of_all_runs(found) == as_written(work(problem, SPLIT, settings))


@pytest.mark.slow
def test_diagnose_writes_the_summary_of_the_record(folder, diagnosed, run, tmp_path):
    asked = ["--influential", DIAGNOSED.influential, "--cv", DIAGNOSED.cv]
    found = read_json(run("diagnose", folder, *WORDS, *asked, "--json", "--out", tmp_path))
    assert of_all_runs(found) == as_written(diagnosed)


def test_a_record_holds_all_that_a_page_shows(problem, diagnosed, tmp_path):
    from messirl.app.report.fit.diagnosis_page import write_diagnosis_report
    from messirl.app.report.fit.fit_page import write_fit_report

    record = replace(fit(problem, SPLIT, FitSettings()), title="a maze")
    text = write_fit_report(record, tmp_path).read_text(encoding="utf-8")
    assert "a maze" in text
    assert all(score.name in text for score in record.scores)
    assert diagnosed.ids[0] in write_diagnosis_report(diagnosed, tmp_path).read_text(encoding="utf-8")


def test_an_evaluation_is_that_of_the_fit(problem):
    record = fit(problem, SPLIT, FitSettings(baselines=False))
    found = evaluate(record.model, problem, SPLIT.test)
    assert found.score == pytest.approx(record.scores[0].held_out)
    assert found.next_state_accuracy == pytest.approx(record.statistics["next-state accuracy, held out"])
    assert found.differences == []
    assert found.summary()["log_likelihood"] == pytest.approx(found.score * found.steps)


# ------------------------------------------------------------ who is told what


def test_nothing_begins_before_all_is_checked_and_a_model_is_kept_at_once(problem):
    watcher, heard = listening()
    fit(problem, SPLIT, FitSettings(), watcher)
    assert heard == ["begin", "fit begins", "fit ends", "keep MESSI", "noted", "said: fitting the baselines"]
    watcher, heard = listening()
    with pytest.raises(ValueError, match="has no effect"):
        fit(problem, SPLIT, FitSettings(ridge=1.0), watcher)
    with pytest.raises(ValueError, match="matches no trajectory"):
        fit(problem, replace(SPLIT, expert="role = nobody"), FitSettings(), watcher)
    assert heard == []


def test_the_parts_of_a_choice_and_of_a_diagnosis_are_told_in_order(problem):
    watcher, heard = listening()
    select(problem, SPLIT, SelectSettings(lambdas=(0.1,), cv=3, bootstrap=2), watcher)
    parts = [what for what in heard if what != "noted"]  # that of some draws a weight runs on
    assert parts == ["begin", "select begins", "select ends", "keep MESSICV", "bootstrap begins", "bootstrap ends"]
    watcher, heard = listening()
    diagnose(problem, SPLIT, DIAGNOSED, watcher)
    said = "said: measuring what held-out experts gain from them"
    assert heard == ["begin", "fit begins", "fit ends", said, "leaving out begins", "leaving out ends"]


def test_remarks_are_noted_and_in_the_record(problem):
    watcher, heard = listening()
    record = fit(problem, SPLIT, FitSettings(max_iter=1, baselines=False), watcher)
    assert any("did not converge" in text for text in record.warnings)
    assert heard.count("noted") == len(record.warnings)
    assert record.model.callback is None


def test_trajectories_that_are_cut_are_noted_once_by_the_one_that_least_was_seen_of(few_strengths):
    mdp = ring(3, discount=0.95)
    parts = [drawn(mdp, [1.0, 0.5], n, n, length=length, start=np.ones(3)) for n, length in ((4, 8), (6, 7))]
    short = Problem(mdp, parts[0] + parts[1], {"role": np.repeat(["expert", "other"], [4, 6])})
    split, few = Split("role = expert", "role = other"), {"cv": 2, "by": "role"}
    for work, settings in (
        (fit, FitSettings()),
        (select, SelectSettings(lambdas=(0.1,), **few)),
        (diagnose, DiagnoseSettings(influential=0, **few)),
    ):
        noted = []
        work(short, split, settings, Watcher(note=noted.append))
        said = [text for text in noted if "endless" in text]
        assert len(said) == 1
        assert said[0].startswith("trajectory 4 of unlabelled ends after 7 terms")


# ------------------------------------------------------------ settings


def test_parts_are_those_of_the_filters_and_draws_are_those_of_the_seed(problem):
    parts, again = divide(problem, SPLIT), divide(problem, replace(SPLIT, seed=3))
    assert parts.counts == {"expert": 5, "unlabelled": 8, "test": int((problem.meta["role"] == "test").sum())}
    assert set(problem.meta["role"][parts.rows["unlabelled"]]) == {"unlabelled"}
    assert not np.array_equal(parts.rows["expert"], again.rows["expert"])
    assert parts.groups("x") == [str(x) for x in problem.meta["x"][parts.rows["expert"]]]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_of_the_table_can_be_asked_for(name):
    model = make_model(ModelSettings(name), unlabelled=True)
    assert type(model) is METHODS[name].estimator()


# ------------------------------------------------------------ apart from commands

LIVE = """
import sys
from messirl.io import read_problem
from messirl.app.workflow.fitting import FitSettings, fit
from messirl.app.workflow.split import Split
record = fit(read_problem(sys.argv[1]), Split("role = expert"), FitSettings(baselines=False))
never = ("messirl.app.cli", "messirl.app.report", "matplotlib")
print(record.method, [name for name in sys.modules if name.startswith(never)])
"""


@pytest.mark.slow
def test_a_fit_needs_neither_the_command_line_nor_pages(folder):
    done = subprocess.run([sys.executable, "-c", LIVE, str(folder)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "MaxEntIRL []"


COMMANDS = [Path(cli.__file__).parent / f"{name}.py" for name in cli.COMMANDS]


@pytest.mark.parametrize("path", COMMANDS, ids=[path.stem for path in COMMANDS])
def test_the_parsed_words_never_leave_the_file_of_their_command(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} | {"vars", "getattr"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            if any(isinstance(value, ast.Name) and value.id == "arguments" for value in given):
                assert isinstance(node.func, ast.Name), f"line {node.lineno}"
                assert node.func.id in own, f"line {node.lineno}"


# ------------------------------------------------------------ similarities


def test_settings_name_every_similarity_of_sequences():
    xy = np.arange(6.0).reshape(3, 2)
    made = {kind: make_similarity(ModelSettings(similarity=kind), xy) for kind in ("edit", "visited", "dtw")}
    assert made["edit"] == EditDistance()
    assert made["visited"] == VisitedStates()
    assert made["dtw"].coordinates is xy
    assert make_similarity(ModelSettings(similarity="edit", scale=0.2)) == EditDistance(0.2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"similarity": "dtw"}, "`similarity` dtw needs coordinates of every state: give x and y, or use edit"),
        ({"similarity": "visited", "scale": 2.0}, "only with exponential, edit and dtw"),
        ({"similarity": "edit", "standardise_counts": False}, "`standardise_counts` has no effect"),
    ],
)
def test_a_similarity_without_what_it_needs_is_an_error(settings, message):
    with pytest.raises(ValueError, match=message):
        make_model(ModelSettings(**settings), unlabelled=True)
