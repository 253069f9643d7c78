"""Golden files: what commands and estimators gave at one commit, kept to tell whether a change is one of behaviour.

    python tests/golden_files.py write            # renew tests/golden/*.json
    python tests/golden_files.py compare 1e-10    # compare with them, to this relative tolerance
    python tests/golden_files.py files            # renew the files in tests/golden/written, which later code must read

Numbers, keys, exit codes, names of files and single words are compared; sentences may be reworded, so only their
presence is. Times, versions and paths are left out. A change of behaviour renews the files and lists what changed.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
import shutil
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from folders import park
from problems import KINDS, problem

from messirl import estimators
from messirl.app import cli

GOLDEN = Path(__file__).parent / "golden"
VALLEY = Path(__file__).parent.parent / "docs" / "tutorial" / "valley.csv"
LONG = 40  # longer lists are kept as their length, first values and sum
UNSTABLE = re.compile(r"seconds|version|commit|time$|^path$|^made|created|elapsed|digest|hash|^cpu$")

GUIDES = ["--expert", "who = guide and day <= 2"]
COMMUTERS = ["--expert", "who = commuter"]
THIRSTY = ["--expert", "thirsty = true"]
PLAIN = ["--no-report", "--json"]
COMMANDS: dict[str, list[str]] = {
    "example-museum": ["example", "museum", "museum"],
    "example-roads": ["example", "roads", "roads"],
    "example-maze": ["example", "maze", "maze"],
    "check": ["check", "museum", "--json"],
    "show-folder": ["show", "maze", "--json"],
    "fit": ["fit", "museum", *GUIDES, "--unlabelled", "who = tourist", "--out", "fit", "--json"],
    "fit-test": [
        *["fit", "museum", *GUIDES, "--unlabelled", "who = class", "--test", "who = guide and day > 2"],
        *["--out", "fit-test", *PLAIN],
    ],
    "fit-ratio": [
        *["fit", "roads", *COMMUTERS, "--ratio", "g_minutes/g_toll", "--without", "g_left", "--table", "roads.csv"],
        *["--no-baselines", "--out", "fit-ratio", *PLAIN],
    ],
    "fit-counts": ["fit", "roads", *COMMUTERS, "--objective", "counts", "--out", "fit-counts", *PLAIN],
    "fit-paper": [
        *["fit", "museum", *GUIDES, "--unlabelled", "who = class", "--solver", "paper", "--objective", "counts"],
        *["--no-baselines", "--out", "fit-paper", *PLAIN],
    ],
    "fit-groups": ["fit", "maze", *THIRSTY, "--groups", "animal", "--no-baselines", "--out", "fit-groups", *PLAIN],
    "fit-reference": [
        *["fit", "maze", *THIRSTY, "--unlabelled", "thirsty = false", "--reference", "unlabelled", "--method"],
        *["maxent", "--by", "animal", "--out", "fit-reference", *PLAIN],
    ],
    "show-model": ["show", "fit", "--json"],
    "evaluate": ["evaluate", "fit-groups", "maze", "--test", "thirsty = false", "--out", "evaluate", *PLAIN],
    "sample": ["sample", "fit-ratio", "-n", "5", "--goal", "Castle & High", "--out", "trips.csv"],
    "select": ["select", "museum", *GUIDES, "--unlabelled", "who = tourist", "--out", "select", *PLAIN],
    "select-groups": [
        *[
            "select",
            "maze",
            *THIRSTY,
            "--unlabelled",
            "thirsty = false",
            "--groups",
            "animal",
            "--out",
            "select-groups",
        ],
        *PLAIN,
    ],
    "diagnose": ["diagnose", "museum", *GUIDES, "--unlabelled", "who = class", "--out", "diagnose", *PLAIN],
    "compare": [
        *["compare", "museum", *GUIDES, "--unlabelled", "who = class", "--methods", "MESSI,MaxEnt,Cloning"],
        *["--out", "compare", *PLAIN],
    ],
    "import": [
        *["import", str(VALLEY), "valley", "--grid", "100", "--mean", "cover", "--distance", "spring=650,600"],
        *["--discount", "0.75", "--json"],
    ],
    "convert": ["convert", "museum", "museum-parquet"],
    "fit-imported": ["fit", "valley", "--expert", "kind = doe", "--no-baselines", "--out", "fit-imported", *PLAIN],
    "refuses-a-role": ["fit", "museum", "--expert", "who = nobody", *PLAIN],
    "refuses-an-option": ["fit", "museum", *GUIDES, "--lambda0", "-1", *PLAIN],
    "refuses-a-folder": ["fit", "nowhere", *GUIDES, *PLAIN],
    "refuses-to-overwrite": ["fit", "museum", *GUIDES, "--out", "fit", *PLAIN],
    "refuses-a-command": ["fitt", "museum"],
}
SETTINGS: dict[str, list[dict[str, Any]]] = {  # parameters that an estimator is fitted with, besides its defaults
    "MaxEntIRL": [
        {},
        {"ridge": 0.01},
        {"ridge": 0.01, "standardise": True},
        {"objective": "counts", "ridge": 0.01},
        {"unlabelled_weight": 0.1, "theta_prior": 3.0},
        {"reference": "unlabelled"},
    ],
    "MESSI": [
        {},
        {"objective": "counts"},
        {"similarity": "exponential"},
        {"similarity": "complete", "lambda0": 0.5},
        {"objective": "counts", "solver": "paper", "max_iter": 20},
    ],
    "EMMaxEnt": [{}, {"steps_per_round": 5, "max_iter": 30}],
    "BayesianIRL": [{"random_state": 0}],
    "MixtureMESSI": [{"random_state": 0}],
    "OwnPolicyMESSI": [{"random_state": 0}],
}
GROUPED, EXPERTS_ONLY = ("SeveralExperts",), ("UniformPolicy",)


def stable(value: Any) -> Any:
    """A JSON value without what differs from run to run, long lists abridged and sentences marked."""
    if isinstance(value, dict):
        return {key: stable(item) for key, item in value.items() if not UNSTABLE.search(key)}
    if isinstance(value, list | tuple | np.ndarray):
        items = [stable(item) for item in value]
        if len(items) <= LONG:
            return items
        total = [math.fsum(items)] if all(isinstance(item, int | float) for item in items) else []
        return [{"length": len(items)}, *items[:5], *total]
    if isinstance(value, np.generic):
        return stable(value.item())
    if isinstance(value, float):
        return float(f"{value:.13g}") if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return "a sentence" if re.search(r"[ /]|sha256:", value) else value
    return value


def run(words: list[str]) -> dict[str, Any]:
    """Run a command in the current folder: its exit code, and what it printed where that is JSON."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = cli.main(words)
        except SystemExit as stop:
            code = stop.code
    found: dict[str, Any] = {"code": code, "refused": bool(code) and "Traceback" not in err.getvalue()}
    if "--json" in words and code == 0:
        found["json"] = stable(json.loads(out.getvalue()))
    return found


def command_results() -> dict[str, Any]:
    """Results of all commands, run one after the other in one folder, and the files that they leave."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        found: dict[str, Any] = {name: run(words) for name, words in COMMANDS.items()}
        files = (path for path in Path().rglob("*") if path.is_file() and "rows" not in path.parts)
        return found | {"files": sorted(path.as_posix() for path in files)}


def fit(name: str, settings: dict[str, Any], mdp: Any, expert: Any, unlabelled: Any) -> Any:
    """Fit an estimator, in silence."""
    more = [] if name in EXPERTS_ONLY else [unlabelled]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        groups = {"groups": np.arange(len(expert)) % 2} if name in GROUPED else {}
        return getattr(estimators, name)(**settings).fit(mdp, expert, *more, **groups)


def fitted(name: str, settings: dict[str, Any], kind: str) -> Any:
    """What a fit to a problem finds, or the type of the error that it ends with."""
    mdp, expert, unlabelled = problem(kind)
    try:
        model = fit(name, settings, mdp, expert, unlabelled)
        objective, converged = (stable(getattr(model, fact, None)) for fact in ("objective_", "converged_"))
        return {"objective": objective, "converged": converged, **said_by(model, expert)}
    except (ValueError, TypeError, AttributeError) as error:
        return type(error).__name__


def estimator_results() -> dict[str, Any]:
    """θ, objective and score of every estimator on a problem of each kind."""
    found: dict[str, Any] = {}
    for name in estimators.__all__:
        if not hasattr(getattr(estimators, name), "fit"):
            continue
        for settings in SETTINGS.get(name, [{}]):
            for kind in KINDS:
                key = f"{name}({', '.join(f'{k}={v!r}' for k, v in settings.items())}) on {kind}"
                found[key] = fitted(name, settings, kind)
    return found


def differences(old: Any, new: Any, tolerance: float, where: str = "") -> list[str]:
    """Where two results differ."""
    deeper = partial(differences, tolerance=tolerance)
    if isinstance(old, dict) and isinstance(new, dict):
        gone = [
            f"{where}/{key}: {'only before' if key in old else 'only now'}" for key in sorted(old.keys() ^ new.keys())
        ]
        return gone + [line for key in old if key in new for line in deeper(old[key], new[key], where=f"{where}/{key}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [line for i, (a, b) in pairs for line in deeper(a, b, where=f"{where}[{i}]")]
    if isinstance(old, float) and isinstance(new, int | float) and not isinstance(new, bool):
        same = math.isclose(old, new, rel_tol=tolerance, abs_tol=tolerance)
    else:
        same = type(old) is type(new) and old == new
    return [] if same else [f"{where}: {old!r} before, {new!r} now"]


def write_files(folder: Path) -> None:
    """Write a model of every estimator, a problem folder and a folder of results, and what models say of data."""
    shutil.rmtree(folder, ignore_errors=True)
    said = {}
    for name in estimators.__all__:
        for kind in ("goals", "finite"):
            mdp, expert, unlabelled = problem(kind)
            settings = SETTINGS.get(name, [{}])[-1]
            if isinstance(fitted(name, settings, kind), str) or not hasattr(getattr(estimators, name), "fit"):
                continue
            model = fit(name, settings, mdp, expert, unlabelled)
            (folder / "models").mkdir(parents=True, exist_ok=True)
            model.save(folder / "models" / f"{name}-{kind}.npz")
            said[f"{name}-{kind}"] = said_by(model, expert)
    (folder / "models.json").write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    park(folder / "park")
    with contextlib.chdir(folder):
        for words in (
            ["convert", "park", "park-parquet"],
            ["fit", "park", "--expert", "age >= 30", *PLAIN, "--no-baselines", "--out", "fit"],
        ):
            assert run(words)["code"] == 0, words


def said_by(model: Any, expert: Any) -> dict[str, Any]:
    """θ and score of a fitted model."""
    score = None if type(model).__name__ in GROUPED else stable(model.score(expert))
    return {"theta": stable(getattr(model, "theta_", None)), "score": score}


RESULTS = {"commands": command_results, "estimators": estimator_results}


def compare(name: str, tolerance: float) -> list[str]:
    """Differences between a golden file and what the code gives now."""
    old = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    new = json.loads(json.dumps(RESULTS[name]()))
    return differences(old, new, tolerance)


def main() -> int:
    """Write the golden files, or compare with them."""
    if sys.argv[1:] == ["write"]:
        for name, results in RESULTS.items():
            text = json.dumps(results(), indent=1, ensure_ascii=False, sort_keys=True)
            (GOLDEN / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        return 0
    if sys.argv[1:] == ["files"]:
        write_files(GOLDEN / "written")
        return 0
    if len(sys.argv) == 3 and sys.argv[1] == "compare":
        lines = [line for name in RESULTS for line in compare(name, float(sys.argv[2]))]
        print(*lines, f"{len(lines)} differences", sep="\n")
        return int(bool(lines))
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
