"""The three examples: small, seeded, whole or not there, and what their READMEs promise is what is found."""

from __future__ import annotations

import json
import os
import re
import shlex

import numpy as np
import pytest
from folders import park, read_json

from messirl import MaxEntIRL, estimation_table, weight_ratio
from messirl.app import cli
from messirl.io import check_problem, read_problem
from messirl.io.folder import atomic_replace
from messirl.paper.synthetic import write_example
from messirl.paper.synthetic.example_folder import EXAMPLES
from messirl.selection import MESSICV
from tests.test_docs import parser_of

every_example = pytest.mark.parametrize("name", EXAMPLES)
EXPERT = {"museum": ("guide", "who = guide"), "roads": ("commuter", "who = commuter")}
EXPERT["maze"] = ("thirsty", "thirsty = true")


def commands(folder):
    """The command lines of a README, as a reader would copy them."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    return [line.strip() for line in text.splitlines() if line.startswith("       messirl ")]


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """All examples, read by all tests and changed by none."""
    place = tmp_path_factory.mktemp("examples")
    for name in EXAMPLES:
        write_example(name, place / name)
    return {name: place / name for name in EXAMPLES}


# ------------------------------------------------------------ what is written


@every_example
def test_an_example_is_small_sound_and_the_same_each_time(name, folders, tmp_path):
    assert sum(len(content) for content in contents(folders[name]).values()) < 200_000
    assert check_problem(folders[name]) == []
    write_example(name, tmp_path / name)
    first, again = contents(folders[name]), contents(tmp_path / name)
    assert {file for file in first if first[file] != again[file]} <= {"README.md"}  # which names the folder


@every_example
def test_what_is_written_is_what_was_made(name, folders):
    made, read = EXAMPLES[name]().problem, read_problem(folders[name])
    np.testing.assert_array_equal(read.trajectories.states, made.trajectories.states)
    np.testing.assert_allclose(read.mdp.features, made.mdp.features)
    np.testing.assert_allclose(read.mdp.transitions.toarray(), made.mdp.transitions.toarray())
    np.testing.assert_allclose(read.xy, made.xy)
    assert (read.mdp.feature_names, read.mdp.state_names) == (made.mdp.feature_names, made.mdp.state_names)
    assert {column: values.tolist() for column, values in read.meta.items() if column != "goal"} == {
        column: values.tolist() for column, values in made.meta.items()
    }


@every_example
def test_the_truth_names_every_feature_and_every_kind_of_trajectory(name, folders):
    told = json.loads((folders[name] / "truth.json").read_text(encoding="utf-8"))
    features = read_problem(folders[name]).mdp.feature_names
    assert told["example"] == name
    assert all(tuple(theta) == features for theta in told["theta"].values())
    assert {EXPERT[name][0], *told["unlabelled"]} == set(told["theta"])


def test_the_command_writes_what_the_function_writes_and_refuses_what_is_there(run, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    said = run("example", "roads")
    assert said.startswith("roads: MDP(25 states, 4 actions, 4 state-action features, discount 1, ")
    assert "five commands to try: roads/README.md" in said
    write_example("roads", tmp_path / "other")
    first, other = contents(tmp_path / "roads"), contents(tmp_path / "other")
    assert {file for file in first if first[file] != other[file]} == {"README.md"}
    assert cli.main(["example", "maze", "roads"]) == 2
    assert "roads: already contains an example: give another folder, or --force" in capsys.readouterr().err
    assert contents(tmp_path / "roads") == first
    (tmp_path / "roads" / "notes.txt").write_text("mine")
    run("example", "maze", "roads", "--force")
    assert json.loads((tmp_path / "roads" / "truth.json").read_text(encoding="utf-8"))["example"] == "maze"
    assert (tmp_path / "roads" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("file", ["README.md", "truth.json"])
def test_a_readme_or_truth_of_someone_else_is_never_replaced(file, tmp_path):
    folder = park(tmp_path / "park")
    (folder / file).write_text("{}")
    before = contents(folder)
    for overwrite in (False, True):
        with pytest.raises(ValueError, match=f"contains {file}, which does not belong to an example: give"):
            write_example("maze", folder, overwrite=overwrite)
    assert contents(folder) == before


def test_a_problem_is_replaced_only_on_request_and_then_whole(tmp_path):
    folder = park(tmp_path / "park")
    with pytest.raises(ValueError, match=r"already contains edges\.csv: give another folder, or --force"):
        write_example("maze", folder)
    write_example("maze", folder, overwrite=True)
    assert len(read_problem(folder).trajectories) == 200


def test_an_interrupted_command_leaves_nothing(monkeypatch, tmp_path):
    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic_replace.os, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        write_example("maze", tmp_path / "maze")
    assert os.listdir(tmp_path) == []


def test_another_name_is_answered_with_the_one_that_was_meant(tmp_path):
    with pytest.raises(ValueError, match=r"there is no example 'musem'; there are museum, roads, maze; did you mean"):
        write_example("musem", tmp_path / "x")


def test_a_folder_with_blanks_in_its_name_is_quoted_in_the_readme(tmp_path):
    write_example("maze", tmp_path / "my maze")
    for line in commands(tmp_path / "my maze"):
        assert str(tmp_path / "my maze") in shlex.split(line)


def test_the_command_knows_every_example():
    choices = next(action.choices for action in parser_of("example")._actions if action.dest == "name")
    assert choices == tuple(EXAMPLES)


@every_example
def test_the_readme_gives_five_commands_that_can_be_given(name, folders):
    lines = commands(folders[name])
    assert len(lines) == 5
    for line in lines:
        _, command, *words = shlex.split(line)
        parser_of(command).parse_args(words)


# ------------------------------------------------------------ what is found


@every_example
def test_the_truth_is_in_the_intervals_of_a_fit(name, folders):
    kind, which = EXPERT[name]
    some = read_problem(folders[name]).select(which)
    table = estimation_table(MaxEntIRL().fit(some.mdp, some.trajectories), some.trajectories)
    truth = np.array(list(EXAMPLES[name]().theta[kind].values()))
    assert np.all(np.abs(table.estimate - truth) < 1.96 * table.robust_std_error)


def test_the_true_value_of_a_minute_is_in_its_interval(folders):
    some = read_problem(folders["roads"]).select("who = commuter")
    table = estimation_table(MaxEntIRL().fit(some.mdp, some.trajectories), some.trajectories)
    found = weight_ratio(table, "g_minutes", "g_toll")
    assert found.low < 0.8 < found.high
    assert found.fieller_low < 0.8 < found.fieller_high


@pytest.mark.slow
@pytest.mark.parametrize(("who", "verdict"), [("tourist", "help"), ("class", "hurt")])
def test_tourists_help_and_school_classes_hurt(who, verdict, folders):
    problem = read_problem(folders["museum"])
    guides, others = (problem.select(which).trajectories for which in ("who = guide and day <= 2", f"who = {who}"))
    chosen = MESSICV(random_state=0).fit(problem.mdp, guides, others)
    assert chosen.verdict_ == verdict
    assert chosen.candidate_.unlabelled == (verdict == "help")


@pytest.mark.slow
@every_example
def test_the_commands_of_the_readme_run_and_show_what_it_says(name, run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    run("example", name)
    first, second, third, _, fifth = [run(*shlex.split(line)[1:]) for line in commands(tmp_path / name)]
    out = tmp_path / "out"

    def verdict(command, file):
        return read_json((out / command / file).read_text(encoding="utf-8"))["verdict"]

    if name == "museum":
        assert "museum is fine" in first
        assert "f_painting" in second
        assert (out / "museum.tex").read_text(encoding="utf-8").count(r"f\_") == 11
        assert verdict("select", "select.json") == "help"
        assert verdict("diagnosis", "diagnosis.json") == "hurt"
        scores = {row.split("]  ")[1]: row.split()[1] for row in fifth.splitlines() if "]  " in row}
        assert float(scores["light pooling with L2"]) > float(re.search(r"(\S+) +MaxEnt-IRL\b", fifth)[1])
    elif name == "roads":
        assert "commuter (240)" in first
        assert "g_minutes/g_toll" in second
        assert (out / "roads.tex").is_file()
        found = re.search(r"without g_left: likelihood ratio \d+\.\d+ on 1 degree of freedom, p <?([\d.]+)", third)
        assert float(found[1]) < 0.001
        assert verdict("select", "select.json") == "no effect"
        assert "20 trajectories" in fifth
    else:
        assert "thirsty  False (120), True (80)" in first
        assert "f_water" in second
        score, chance = map(float, re.search(r"per step +(\S+) +\((?:a |the )?uniform policy: (\S+)\)", third).groups())
        assert score < chance
        assert verdict("select", "select.json") == "no effect"
        rows = read_json((out / "fit" / "fit.json").read_text(encoding="utf-8"))["estimates"]
        assert [row["p"] < 0.05 for row in rows] == [True, False, False, False, False]
