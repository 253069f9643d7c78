"""Every block of code in the documents is run: Python in its order, page by page; commands that stand without what they
print; the notebook. What needs more than a machine has is in NOT_RUN, and its page says so.

Sessions are compared with what the program prints in test_docs.py.
"""

from __future__ import annotations

import importlib
import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pandas
import pytest
from seeds import shifted

from messirl import MDP, Trajectories, sample, soft_policy
from messirl.app import cli
from messirl.paper.domains import slippery
from messirl.paper.synthetic import write_example

HOME = Path(__file__).resolve().parents[1]
PAGES = [HOME / "README.md", *sorted((HOME / "docs").glob("*.md"))]
NOTEBOOK = HOME / "docs" / "tutorial" / "tutorial.ipynb"
LANGUAGES = {"", "json", "math", "python", "r", "text"}
SLOW = {"large.md", "selection.md", "tutorial.md"}
NOT_RUN = {  # page and a line of the block: what is missing here
    ("cluster.md", 'with cluster.connect("tcp://10.0.0.1:8786") as executor:'): "a Dask cluster; see test_cluster.py",
    ("cluster.md", "from dask_kubernetes.operator import KubeCluster"): "Kubernetes",
    ("cluster.md", "from dask_jobqueue import SLURMCluster"): "Slurm",
    ("other-languages.md", "library(jsonlite)"): "R",
}


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """Language, content and the line of text before each fenced block."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [(one[1], one[2], ["", *text[: one.start()].strip().splitlines()][-1]) for one in found]


def is_run(page: Path, content: str) -> bool:
    return not any(page.name == name and line in content.splitlines() for name, line in NOT_RUN)


def with_blocks(language: str) -> list[object]:
    """Pages with a block of this language that is run here."""
    found = [page for page in PAGES if any(kind == language and is_run(page, text) for kind, text, _ in blocks(page))]
    return [pytest.param(page, marks=[pytest.mark.slow] if page.name in SLOW else [], id=page.name) for page in found]


@pytest.fixture
def given(tmp_path, monkeypatch):
    """What blocks take for granted: an MDP, experts and others, in a folder with the examples and docs/."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").symlink_to(HOME / "docs")
    moves, corner = slippery(5, 0.9), np.indices((5, 5)).reshape(2, -1).T / 4
    mdp = MDP(moves, corner, discount=0.9, start=np.full(25, 0.04))
    policy = soft_policy(mdp, mdp.reward(np.array([2.0, -1.0])))
    every = [one.states.tolist() for one in sample(mdp, policy, 40, 60, random_state=shifted(1))]
    good, rest, left = every[:10], every[10:30], every[30:]
    return {
        "mdp": mdp,
        "transitions": moves,
        "features": corner,
        "good": good,
        "rest": rest,
        "expert": Trajectories.from_lists(good),
        "unlabelled": Trajectories.from_lists(rest),
        "held_out": Trajectories.from_lists(left),
    }


@pytest.mark.parametrize("page", with_blocks("python"))
def test_python_in_the_documents_runs(page, given, tmp_path):
    write_example("roads", tmp_path / "roads")
    for language, content, _ in blocks(page):
        if language == "python" and is_run(page, content):
            exec(compile(content, page.name, "exec"), given)


def test_every_block_is_of_a_kind_that_is_looked_at():
    kinds = {(page.name, language) for page in PAGES for language, _, _ in blocks(page)}
    assert {(page, language) for page, language in kinds if language not in LANGUAGES} == set()


def test_what_is_not_run_is_there_and_says_so():
    there = {
        (page.name, line): before for page in PAGES for _, text, before in blocks(page) for line in text.splitlines()
    }
    for block in NOT_RUN:
        assert block in there
        assert "not run" in there[block], block


# ------------------------------------------------------------ commands

# Minutes or no end, another machine, or a place to be filled in.
LONG = re.compile(r"reproduce|messirl (lab|benchmark)|compare (highway|gridworld)|--cluster|FOLDER|tcp://")


def commands(page: Path) -> list[str]:
    """The commands that stand in a block without what they print."""
    text = page.read_text(encoding="utf-8")
    lines = [line for kind, content, _ in blocks(page) if kind == "" for line in content.splitlines()]
    lines += [line.strip() for line in text.splitlines() if line.startswith("    ")]
    found = [shlex.join(shlex.split(line, comments=True)) for line in lines if line.startswith("messirl ")]
    return [line for line in found if not LONG.search(line) and "COMMAND" not in line]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with what the commands of the documents are about."""
    monkeypatch.chdir(tmp_path)
    write_example("museum", tmp_path / "museum")
    shutil.copy(HOME / "docs" / "tutorial" / "valley.csv", "tracks.csv")
    Path("tourists").mkdir()
    rows, meta = (pandas.read_csv(f"museum/{name}.csv") for name in ("trajectories", "trajectory_meta"))
    some = set(meta.trajectory_id[meta.who == "tourist"])
    rows[rows.trajectory_id.isin(some)].to_parquet("tourists/all.parquet")
    track, step = np.divmod(np.arange(240), 24)
    drives = pandas.DataFrame({"trajectory_id": track, "step": step, "o_x": np.sin(step + track)})
    action = pandas.Series((step + track) % 2, dtype="Int64").mask(step == 23)
    drives = drives.assign(action=action, role=np.where(track < 3, "expert", "other"))
    drives.to_parquet("drives.parquet")
    return tmp_path


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.name)
def test_commands_in_the_documents_end_well(page, place):
    for line in commands(page):
        if line == "messirl example museum":
            shutil.rmtree("museum")
        if "walks.csv" in line:
            Path("walks.csv").unlink(missing_ok=True)
        assert cli.main(shlex.split(line)[1:]) == 0, line


# ------------------------------------------------------------ the notebook, the tracks, the lists


@pytest.mark.slow
def test_the_notebook_comes_to_the_conclusion_of_the_tutorial(tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    shutil.copy(HOME / "docs" / "tutorial" / "valley.csv", tmp_path)
    book = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    said = ["".join(out.get("text", "") for out in cell.outputs) for cell in book.cells if cell.cell_type == "code"]
    assert said[3].startswith("help ")
    likeness = [float(number) for number in re.findall(r"-?\d\.\d+", said[4])]
    assert likeness[0] > 0 > likeness[1]


def test_the_notebook_holds_no_output():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code")


def test_the_tracks_of_the_tutorial_are_those_of_their_tool():
    from tools.valley import FILE, rows

    assert FILE.read_text(encoding="utf-8").splitlines() == rows()


def test_the_public_names_are_those_that_packages_offer():
    from tools.pages.api import public

    listed = public()
    stubs = [path.parent.relative_to(HOME / "src").as_posix() for path in (HOME / "src").rglob("__init__.pyi")]
    for home in [
        *(stub.replace("/", ".") for stub in stubs),
        "messirl.data",
        "messirl.selection",
        "messirl.paper.domains",
    ]:
        assert sorted(listed[home]) == sorted(importlib.import_module(home).__all__), home
    for home, names in listed.items():
        assert all(hasattr(importlib.import_module(home), name) for name in names), home


def test_the_format_names_every_column_and_key():
    from messirl.io.folder import parse_tables, problem_json

    page = (HOME / "docs" / "format.md").read_text(encoding="utf-8")
    assert [name for name in (*parse_tables.STATE_COLUMNS, *problem_json.KNOWN) if f"`{name}`" not in page] == []


def test_the_choices_of_the_reproduction_are_on_their_page():
    from messirl.paper.experiments.paper_settings import CHOICES

    page = (HOME / "docs" / "choices.md").read_text(encoding="utf-8")
    assert [what for what, why in CHOICES.items() if f"| {what} | {why} |" not in page] == []
