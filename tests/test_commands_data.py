"""The commands on real data, where it is: MESSIRL_DATA, or ../shared/data beside the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from folders import read_json

from messirl.app import cli

DATA = Path(os.environ.get("MESSIRL_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
PLAIN = ["--no-baselines", "--no-report"]

pytestmark = pytest.mark.slow


def folder(name):
    if not (DATA / name / "problem.json").exists():
        pytest.skip(f"there is no {name} in {DATA}: set MESSIRL_DATA to the folder of the data")
    return str(DATA / name)


@pytest.fixture
def run(capsys):
    def command(*words):
        assert cli.main([*words, "--json"]) == 0
        return read_json(capsys.readouterr().out)

    return command


def test_ten_trips_of_thirsty_mice_and_500_of_any_predict_other_mice(run, tmp_path):
    """λ0 and the similarity were chosen on held-out expert trips; a fit to all 363 of those trips scores −0.769."""
    mice, out = folder("labyrinth_segments"), str(tmp_path)
    split = ["--expert", "role = expert", "--n-expert", "10", "--unlabelled", "role = unlabelled"]
    scores = []
    for seed in range(10):
        draw = ["--n-unlabelled", "500", "--seed", str(seed), "--lambda0", "0.01"]
        run("fit", mice, *split, *draw, *PLAIN, "--out", out, "--force")
        found = run("evaluate", out, mice, "--test", "role = test")
        assert found["trajectories"] == 464
        scores.append(found["score"])
    assert sum(score > -0.802 for score in scores) >= 8, scores


def test_route_choice_in_borlange_agrees_with_an_independent_fit(run, tmp_path):
    found = run("fit", folder("borlange"), "--method", "maxent", "--theta-max", "none", *PLAIN, "--out", str(tmp_path))
    names = ["g_time", "g_left", "g_const", "g_uturn"]
    theta = [found["theta"][name] for name in names]
    assert theta == pytest.approx([-2.494, -0.933, -0.411, -4.459], abs=1e-2)
    assert found["statistics"]["log-likelihood"] == pytest.approx(-6302.93, abs=0.1)
    assert found["converged"] is True


def test_the_bus_engines_give_the_published_estimates_and_errors(run, tmp_path):
    """Rust 1987, Table IX: θ11 = 2.2930 (0.639), RC = 10.0750 (1.582), by the outer product of scores.

    The robust errors of 37 buses were 0.484 and 1.150 before the correction for small samples.
    """
    how = ["--method", "maxent", "--objective", "choices", "--ridge", "0", *PLAIN]
    found = run("fit", folder("bus_engines"), "--expert", "group = 4", *how, "--out", str(tmp_path))
    rows = {row["name"]: row for row in found["estimates"]}
    for name, *wanted in (("g_theta11", 2.293, 0.639, 0.554, 0.4958), ("g_RC", 10.075, 1.582, 1.351, 1.171)):
        row = rows[name]
        kinds = [row[kind] for kind in ("estimate", "outer_std_error", "std_error", "robust_std_error")]
        assert kinds == pytest.approx(wanted, rel=2e-3)
    assert found["statistics"]["log-likelihood"] == pytest.approx(-163.584, abs=5e-4)
    assert found["converged"] is True
    assert found["warnings"] == []
