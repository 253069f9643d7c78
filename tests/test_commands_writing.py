"""Commands that write: nothing that is there is lost, and nothing old is taken for new."""

from __future__ import annotations

import os
import stat

import numpy as np
import pytest
from folders import grid, park, read_json, roads

import messirl
from messirl.app import cli
from messirl.app.cli._output_dir import MOVED, Results
from messirl.io import read_problem, read_trajectories

PLAIN = ["--no-baselines", "--no-report"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folders, read by all tests and changed by none."""
    place = tmp_path_factory.mktemp("folders")
    return {"grid": grid(place / "grid"), "roads": roads(place / "roads"), "park": park(place / "park")}


@pytest.fixture
def run(capsys):
    """Run a command; its exit code, and what it printed and remarked."""

    def command(*words):
        capsys.readouterr()
        code = cli.main([str(word) for word in words])
        written = capsys.readouterr()
        return code, written.out, written.err

    return command


def content(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# ------------------------------------------------------------ convert


@pytest.mark.parametrize("way", ["itself", "slash", "dots", "link", "relative"])
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_convert_refuses_its_own_source(run, tmp_path, monkeypatch, way, force):
    source = park(tmp_path / "park")
    (tmp_path / "link").symlink_to(source)
    monkeypatch.chdir(source)
    ways = {"itself": source, "slash": f"{source}/", "dots": f"{source}/../park", "link": tmp_path / "link"}
    before = content(source)
    code, _, said = run("convert", source, ways.get(way, "."), *force)
    assert code == 2
    assert "is both SOURCE and DEST: give another DEST" in said
    assert content(source) == before


def test_convert_replaces_a_problem_only_when_forced_and_leaves_other_files(made, run, tmp_path):
    other = park(tmp_path / "other")
    (other / "notes.txt").write_text("mine")
    before = content(other)
    code, _, said = run("convert", made["grid"], other)
    assert code == 2
    assert "already contains edges.csv: give another folder, or --force" in said
    assert content(other) == before
    assert run("convert", made["grid"], other, "--force")[0] == 0
    assert read_problem(other).mdp.n_states == 16
    assert (other / "notes.txt").read_text() == "mine"
    assert not list(other.glob("*.csv"))


def test_convert_refuses_an_existing_table_unless_forced(run, tmp_path, monkeypatch):
    table = tmp_path / "table.csv"
    table.write_text("mine")
    some = messirl.Trajectories.from_lists([[0, 1]], [[0]])
    monkeypatch.setattr("messirl.io.interop.minari.from_minari", lambda _: some)
    code, _, said = run("convert", "minari:a/b-v0", table)
    assert code == 2
    assert "already exists: give another name, or --force" in said
    assert table.read_text() == "mine"
    assert run("convert", "minari:a/b-v0", table, "--force")[0] == 0
    assert read_trajectories(table)[0] == some


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_convert_keeps_every_column(run, tmp_path, form):
    edges = "from,to,action,road\ngate,pond,east,A1\npond,gate,west,A2\npond,pond,stay,\n"
    steps = "trajectory_id,step,state,speed,light\nanna,0,gate,1.5,red\nanna,1,pond,,green\n"
    source = park(
        tmp_path / "a", edges__csv=edges, trajectories__csv=steps, trajectory_meta__csv="trajectory_id,age\nanna,3\n"
    )
    assert run("convert", source, tmp_path / "b", "--format", form)[0] == 0
    one, other = read_problem(source), read_problem(tmp_path / "b")
    for name in ("state_columns", "edge_columns", "step_columns"):
        for column, values in getattr(one, name).items():
            np.testing.assert_array_equal(getattr(other, name)[column], values)
    assert other.edge_columns["road"].tolist() == ["A1", None, "A2"], "by state and action"
    assert other.step_columns["light"].tolist() == ["red", "green"]


# ------------------------------------------------------------ fit and the others


def test_an_earlier_result_is_replaced_only_when_forced_and_kept_beside(made, run, tmp_path):
    out = tmp_path / "out"
    assert run("fit", made["park"], "--no-baselines", "--out", out)[0] == 0
    before = content(out)
    listed = read_json((out / "fit.json").read_text(encoding="utf-8"))["files"]
    assert set(listed) == set(before) - {"fit.json"}
    for command in ("fit", "select"):
        code, _, said = run(command, made["park"], *PLAIN[1:], "--out", out)
        assert code == 2
        assert f"{out} contains an earlier result: give another folder with --out, or --force" in said
        assert content(tmp_path) == {f"out/{name}": data for name, data in before.items()}
    for _ in range(2):
        earlier = content(out)
        code, _, said = run("fit", made["park"], *PLAIN, "--max-iter", 400, "--out", out, "--force")
        assert code == 0
        assert f"the earlier result is in {out}.earlier" in said
        assert set(content(out)) == {"fit.json", "model.npz"}
        assert content(tmp_path / "out.earlier") == {**earlier, MOVED: b""}
    assert sorted(os.listdir(tmp_path)) == ["out", "out.earlier"]


def test_a_result_that_the_user_named_earlier_stays(made, run, tmp_path):
    for name in ("out", "out.earlier"):
        assert run("fit", made["park"], *PLAIN, "--out", tmp_path / name)[0] == 0
    before = content(tmp_path / "out.earlier")
    for _ in range(2):
        _, _, said = run("fit", made["park"], *PLAIN, "--out", tmp_path / "out", "--force")
        assert f"the earlier result is in {tmp_path / 'out.earlier-2'}" in said
    assert content(tmp_path / "out.earlier") == before
    assert sorted(os.listdir(tmp_path)) == ["out", "out.earlier", "out.earlier-2"]


def test_the_usual_folder_may_be_used_again_and_again(made, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        code, _, said = run("fit", made["park"], *PLAIN)
        assert code == 0
        assert ("the earlier result is in out/fit.earlier" in said) is (number > 0)
    assert sorted(os.listdir("out")) == ["fit", "fit.earlier"]


def test_files_of_ones_own_stay_when_a_result_is_replaced(made, run, tmp_path):
    out = tmp_path / "out"
    assert run("fit", made["park"], "--no-baselines", "--out", out)[0] == 0
    (out / "notes.txt").write_text("mine")
    (out / "figures" / "photo.png").write_text("mine")
    (out / "more").mkdir()
    (out / "more" / "deep.txt").write_text("mine")
    assert run("fit", made["park"], *PLAIN, "--out", out, "--force")[0] == 0
    own = {"notes.txt", "figures/photo.png", "more/deep.txt"}
    assert {name for name, data in content(out).items() if data == b"mine"} == own
    (tmp_path / "out.earlier" / "added.txt").write_text("mine")
    assert run("fit", made["park"], *PLAIN, "--out", out, "--force")[0] == 0
    assert (tmp_path / "out.earlier" / "added.txt").read_text() == "mine"
    assert (tmp_path / "out.earlier-2" / "fit.json").is_file()


def test_the_folder_one_is_in_is_refused(made, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, said = run("fit", made["park"], *PLAIN, "--out", ".")
    assert code == 2
    assert "--out . is the current folder or contains it: give a separate folder" in said


def test_what_a_stopped_command_had_finished_is_kept_and_named(made, run, tmp_path, monkeypatch):
    out = tmp_path / "out"
    assert run("fit", made["park"], *PLAIN, "--out", out)[0] == 0
    before = content(out)
    with monkeypatch.context() as patched:
        patched.setattr("messirl.app.report.fit.fit_page.write_fit_report", lambda *_: os.stat("/nowhere"))
        code, _, said = run("fit", made["park"], "--no-baselines", "--out", out, "--force")
    assert code == 2
    (left,) = tmp_path.glob("out.unfinished-*")
    assert f"finished work is in {left}" in said
    assert set(content(left)) == {"fit.json", "model.npz"}
    assert content(out) == before
    _, _, said = run("fit", made["park"], *PLAIN, "--out", out, "--force")
    assert f"{left} is the unfinished result of a stopped or running command: inspect it" in said


def test_folders_are_exchanged_where_the_system_cannot_do_it_in_one_step(made, run, tmp_path, monkeypatch):
    monkeypatch.setattr("messirl._files._exchanged", lambda *_: False)
    for _ in range(3):
        assert run("fit", made["park"], *PLAIN, "--out", tmp_path / "out", "--force")[0] == 0
    assert sorted(os.listdir(tmp_path)) == ["out", "out.earlier"]


@pytest.mark.parametrize(
    ("name", "words"), [("report.html", []), ("model.npz", PLAIN), ("fit.json", PLAIN)], ids=lambda v: str(v)
)
def test_a_fit_refuses_to_write_over_what_is_no_result(made, run, tmp_path, name, words):
    (tmp_path / name).write_text("mine")
    code, _, said = run("fit", made["park"], *words, "--out", tmp_path)
    assert code == 2
    assert f"contains {name}, which messirl did not write: give another folder with --out" in said
    assert content(tmp_path) == {name: b"mine"}


def test_a_folder_of_somebody_else_is_left_as_it_is(made, run, tmp_path):
    (tmp_path / "report.html").write_text("mine")
    assert run("fit", made["park"], *PLAIN, "--out", tmp_path)[0] == 0
    assert (tmp_path / "report.html").read_text() == "mine"


def test_a_picture_that_is_there_is_replaced_only_when_forced(made, run, tmp_path):
    picture = tmp_path / "visits.png"
    picture.write_bytes(b"mine")
    code, _, said = run("show", made["grid"], "--picture", picture)
    assert code == 2
    assert "exists already: give another name, or --force" in said
    assert picture.read_bytes() == b"mine"
    assert run("show", made["grid"], "--picture", picture, "--force")[0] == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


# ------------------------------------------------------------ sample


@pytest.fixture
def fitted(made, run, tmp_path):
    def fit(folder):
        assert run("fit", folder, *PLAIN, "--out", tmp_path / "fit")[0] == 0
        return tmp_path / "fit" / "model.npz"

    return fit


def test_sample_replaces_no_file_without_force(made, run, fitted, tmp_path, monkeypatch):
    model = fitted(made["park"])
    monkeypatch.chdir(tmp_path)
    for code in (0, 2):
        assert run("sample", model, "--length", 3)[0] == code
    named = ["sample", model, "--length", 3, "--out", tmp_path / "walks.csv"]
    assert run(*named)[0] == 0
    before = (tmp_path / "walks.csv").read_bytes()
    code, _, said = run(*named, "--seed", 7)
    assert code == 2
    assert "walks.csv: already exists: give another name, or --force" in said
    assert (tmp_path / "walks.csv").read_bytes() == before
    assert run(*named, "--seed", 7, "--force")[0] == 0
    assert (tmp_path / "walks.csv").read_bytes() != before


def test_sample_refuses_to_write_over_its_model(made, run, fitted, tmp_path):
    model = fitted(made["park"])
    os.link(model, tmp_path / "linked.csv")
    code, _, said = run("sample", model, "--length", 3, "--out", tmp_path / "linked.csv", "--force")
    assert code == 2
    assert "is the model itself: give another name" in said


def test_sample_prints_csv_and_nothing_else(made, run, fitted, tmp_path, monkeypatch):
    model = fitted(made["park"])
    monkeypatch.chdir(tmp_path)
    code, out, said = run("sample", model, "-n", 4, "--length", 3, "--out", "-")
    assert code == 0
    assert said == ""
    assert not (tmp_path / "-").exists()
    (tmp_path / "printed.csv").write_text(out, encoding="utf-8")
    table, _ = read_trajectories(tmp_path / "printed.csv", read_problem(made["park"]))
    assert table == messirl.load(model).sample(4, 3, random_state=0)


NAMES = {
    "names beside labels": {"states__csv": "state,f_green,name\ngate,0,Tor\npond,1,Teich\nwood,1,Wald\ncafé,0,Café\n"},
    "labels without names": {"problem__json": '{"discount": 0.5, "state_names": null, "action_names": null}'},
    "labels that are the names": {},
    "labels like numbers": {
        "states__csv": "state,f_green\n007,0\n2,1\n",
        "edges__csv": "from,to,action\n007,2,01\n2,007,01\n2,2,b\n",
        "trajectories__csv": "trajectory_id,step,state\nanna,0,007\nanna,1,2\n",
        "trajectory_meta__csv": "trajectory_id,age\nanna,1\n",
    },
}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("case", NAMES)
def test_sample_writes_the_labels_of_the_folder(run, fitted, tmp_path, case, suffix):
    folder = park(tmp_path / "folder", **NAMES[case])
    model = fitted(folder)
    out = tmp_path / f"walks{suffix}"
    assert run("sample", model, "-n", 6, "--length", 5, "--out", out)[0] == 0
    drawn = messirl.load(model).sample(6, 5, random_state=0)
    assert read_trajectories(out, read_problem(folder))[0] == drawn
    (folder / "trajectories.csv").unlink()
    (folder / "trajectory_meta.csv").unlink()
    out.rename(folder / f"trajectories{suffix}")
    assert read_problem(folder).trajectories == drawn


def test_sample_writes_numbers_where_the_folder_has_numbers_and_names(run, fitted, tmp_path):
    folder = park(
        tmp_path / "folder",
        states__csv="state,f_a\n0,1\n1,0\n",
        edges__csv="from,to,action\n0,1,0\n1,0,0\n1,1,1\n",
        trajectories__csv="trajectory_id,step,state\nanna,0,0\nanna,1,1\n",
        trajectory_meta__csv="trajectory_id\nanna\n",
        problem__json='{"discount": 0.5, "state_names": ["in", "out"], "action_names": ["go", "stay"]}',
    )
    _, out, _ = run("sample", fitted(folder), "-n", 1, "--length", 3, "--out", "-")
    head, first, *_ = out.splitlines()
    assert head == '"trajectory_id","step","state","state_name","action","action_name"'
    assert first in ('0,0,0,"in",0,"go"', '0,0,1,"out",0,"go"', '0,0,1,"out",1,"stay"')


def test_sample_calls_goals_by_their_labels(made, run, fitted, tmp_path):
    model = fitted(made["roads"])
    _, out, _ = run("sample", model, "-n", 2, "--goal", "crossing 1-3", "--out", "-")
    assert out.splitlines()[1].endswith('"crossing 1-3"')
    code, _, said = run("sample", model, "--goal", "crosing 1-3", "--out", "-")
    assert code == 2
    assert "did you mean 'crossing 1-3'?" in said


# ------------------------------------------------------------ places that cannot be written to


OUTPUTS = {  # the words of a command, where OUT is a place, and the work that it must not come to
    "fit --table": ("fit PARK --method maxent --table OUT.csv --out RESULTS", "app.workflow.fitting.fit"),
    "fit": ("fit PARK --out OUT", "estimators.maxent.MaxEntIRL.fit"),
    "sample": ("sample MODEL --out OUT.csv", "loading.load"),
    "convert": ("convert PARK OUT", "io.folder.writer.problem_files"),
    "import": ("import PARK OUT --discount 0.9", "app.workflow.importing.import_recordings"),
    "example": ("example maze OUT", "paper.synthetic.example_folder.problem_files"),
    "show": ("show PARK --picture OUT.png", "io.folder.reader.read_problem"),
    "reproduce": ("reproduce --quick --out OUT", "paper.experiments.reproduction.reproduce"),
}


@pytest.mark.parametrize("command", OUTPUTS)
def test_a_place_that_cannot_be_written_to_is_found_before_the_work(made, run, tmp_path, monkeypatch, command):
    words, work = OUTPUTS[command]
    ending = words.partition("OUT")[2].partition(" ")[0]
    (tmp_path / "file").write_text("")
    (tmp_path / "model.npz").write_bytes(b"PK")
    (tmp_path / f"taken{ending}" if ending else tmp_path / "taken/report.html").mkdir(parents=True)
    places = {"PARK": made["park"], "MODEL": tmp_path / "model.npz", "RESULTS": tmp_path / "results"}
    monkeypatch.setattr(f"messirl.{work}", lambda *_, **__: pytest.fail("the work began"))
    before = content(tmp_path)
    for place in ("file/deep/x", "taken", "no access"):
        if place == "no access":
            monkeypatch.setattr("messirl._files.os.access", lambda *_: False)
        out = str(tmp_path / place)
        code, _, said = run(*(places.get(word, word.replace("OUT", out)) for word in words.split()))
        assert code == 2
        assert str(tmp_path) in said.splitlines()[-1]
        assert content(tmp_path) == before


def test_a_folder_in_the_place_of_a_result_is_found_before_the_work_even_beside_our_summary(tmp_path):
    (tmp_path / "fit.json").write_text('{"command": "messirl fit park"}')
    (tmp_path / "report.html").mkdir()
    with pytest.raises(ValueError, match=r"contains report\.html, which messirl did not write"):
        Results(tmp_path, ("fit.json", "report.html")).begin()


def test_a_table_holds_no_text_that_a_spreadsheet_takes_for_a_formula():
    from messirl.app.cli.diagnose import _cell

    assert [_cell(text) for text in ("=cmd", "+1+1", "-1+1", "@a", "\tx")] == ["'=cmd", "'+1+1", "'-1+1", "'@a", "'\tx"]
    assert [_cell(value) for value in ("a=1", "", -1.5, float("nan"), None, 3)] == ["a=1", "", -1.5, "", None, 3]


def test_nothing_of_ones_own_is_lost_or_written_over_when_results_change_places(made, run, tmp_path):
    out = tmp_path / "out"
    (out / "figures").mkdir(parents=True)
    (out / "secret.txt").write_text("mine")
    out.chmod(0o700)
    assert run("fit", made["park"], "--no-baselines", "--out", out)[0] == 0, "an empty folder stands in no way"
    assert (out / "secret.txt").read_text() == "mine"
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    (out / "report.html").write_text("edited")
    for _ in range(2):
        assert run("fit", made["park"], *PLAIN, "--out", out, "--force")[0] == 0
    edited = tmp_path / "out.earlier" / "report.html"
    assert edited.read_text() == "edited", "it is not as it was written: it is kept for ever"
    assert (tmp_path / "out.earlier-2" / "fit.json").is_file()


def test_a_link_to_a_folder_stays_one(made, run, tmp_path):
    (tmp_path / "far" / "real").mkdir(parents=True)
    (tmp_path / "far" / "real" / "notes.txt").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "far" / "real")
    for _ in range(2):
        assert run("fit", made["park"], *PLAIN, "--out", tmp_path / "link", "--force")[0] == 0
    assert (tmp_path / "link").is_symlink()
    assert sorted(os.listdir(tmp_path / "far" / "real")) == ["fit.json", "model.npz", "notes.txt"]
    assert sorted(os.listdir(tmp_path / "far")) == ["real", "real.earlier"]


def test_an_interrupt_while_folders_change_places_says_what_is_where(made, run, tmp_path, monkeypatch):
    out = tmp_path / "out"
    assert run("fit", made["park"], *PLAIN, "--out", out)[0] == 0
    (out / "notes.txt").write_text("mine")
    with monkeypatch.context() as patched:
        patched.setattr("messirl.app.cli._output_dir._move", lambda *_: os.stat("/nowhere"))
        code, _, said = run("fit", made["park"], *PLAIN, "--out", out, "--force")
    assert code == 2
    (left,) = tmp_path.glob("out.unfinished-*")
    assert f"the earlier result and files of yours are in {left}" in said
    assert set(content(left)) == {"fit.json", "model.npz", "notes.txt"}
    assert set(content(out)) == {"fit.json", "model.npz"}


@pytest.mark.parametrize("files", ["null", "5", '["a"]', '{"a": 1}'])
def test_a_summary_that_lists_nonsense_is_no_error(made, run, tmp_path, files):
    (tmp_path / "fit.json").write_text(f'{{"command": "messirl fit", "files": {files}}}')
    assert run("fit", made["park"], *PLAIN, "--out", tmp_path, "--force")[0] == 0
