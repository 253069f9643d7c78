"""Claims on made tables: what was planted is what is found, and all of it is plain, finite data."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from messirl.paper.experiments.claims import evaluate_claims
from messirl.paper.experiments.curves import Curves, interval
from messirl.paper.experiments.paper_settings import SETTINGS
from messirl.paper.experiments.training_runs import trials

RUNS = 20
WOBBLE = 0.01 * np.tile([1.0, -1.0, -1.0, 1.0], 50)  # mean zero over every four runs
HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
signs = pytest.mark.parametrize(("gain", "wanted"), [(0.1, HOLDS), (-0.1, FAILS), (0.0, UNDECIDED)])


def curve(x, mean, runs=RUNS, norm=0.0, wobble=1.0):
    """Points x, a mean performance each, the same small differences between runs everywhere."""
    x = np.asarray(x, dtype=float)
    size = np.broadcast_to(np.asarray(norm, dtype=float).reshape(-1, 1), (len(x), runs))
    base = np.broadcast_to(np.asarray(mean, dtype=float), x.shape)[:, None]
    # Every method has its own wobble, so that paired differences vary too.
    return x, base + wobble * WOBBLE[:runs], size


def table(curves):
    """A table of results from {(domain, figure, method): (x, performance (points, runs), theta_norm)}."""
    columns = {name: [] for name in ("domain", "figure", "method", "x", "run", "performance", "theta_norm")}
    for (domain, figure, method), (x, performance, norm) in curves.items():
        points, runs = performance.shape
        n = points * runs
        for name, value in (("domain", domain), ("figure", figure), ("method", method)):
            columns[name] += [value] * n
        columns["x"] += np.repeat(x, runs).tolist()
        columns["run"] += np.tile(np.arange(runs), points).tolist()
        columns["performance"] += performance.ravel().tolist()
        columns["theta_norm"] += norm.ravel().tolist()
    return pa.table(columns)


def verdict(curves, claim, domain="pit", solver="paper"):
    (row,) = (
        r
        for r in evaluate_claims(table(curves))
        if r["id"] == claim and r["domain"] == domain and r["solver"] == solver
    )
    return row["verdict"]


STEPS = np.arange(101)


def trained(**finals):
    """Methods that rise to their final performance in a hundred iterations."""
    out = {}
    for k, (name, final) in enumerate(finals.items()):
        method = name.replace("_", "-")
        out["pit", "iterations", method] = curve(STEPS, -1 + (1 + final) * STEPS / 100, wobble=1.0 + k % 2)
        out["pit", "iterations", f"{method}/exact"] = curve([500], [final], wobble=1.0 + k % 2)
    return out


def everything(runs, domains=("highway", "gridworld", "pit"), iterations=100):
    """Noise in every place that a whole reproduction fills."""
    random, out = np.random.default_rng(0), {}
    for domain in domains:
        for figure in SETTINGS[domain].figures:
            every = trials(figure, SETTINGS[domain])
            for name in dict.fromkeys(t.name for t in every):
                x = [t.x for t in every if t.name == name]
                x = np.arange(iterations + 1.0) if x == [None] else np.array(x)
                shape = (len(x), runs)
                out[domain, figure, name] = (x, random.normal(-0.5, 0.1, shape), random.uniform(0, 9, shape))
    return table(out)


# ------------------------------------------------------------ intervals and curves


def test_an_interval_is_students():
    found = interval(np.array([1.0, 2.0, 4.0, 5.0]))
    half = 3.182446 * np.sqrt(10 / 3) / 2  # t(0.975, 3), s, root of n
    assert (found.mean, found.n) == (3.0, 4)
    assert (found.low, found.high) == pytest.approx((3 - half, 3 + half), rel=1e-5)


def test_curves_put_points_and_runs_in_order_whatever_the_order_of_rows():
    made = table({("pit", "nu", "MaxEnt"): (np.array([0.5, 0.0]), np.array([[1.0, 2.0], [3.0, 4.0]]), np.ones((2, 2)))})
    shuffled = made.take([2, 0, 3, 1])
    found = Curves(shuffled)["pit", "nu", "MaxEnt"]
    assert found.x.tolist() == [0.0, 0.5]
    assert found.performance.tolist() == [[3.0, 4.0], [1.0, 2.0]]
    assert found.at(0.5).tolist() == [1.0, 2.0]
    assert found.last.tolist() == [1.0, 2.0]


# ------------------------------------------------------------ the main comparison


@signs
@pytest.mark.parametrize("solver", ["paper", "exact"])
@pytest.mark.parametrize(
    ("claim", "method"),
    [("max-beats-maxent", "MESSIMAX"), ("mu1-beats-maxent", "MESSI_mu1"), ("mu2-beats-maxent", "MESSI_mu2")],
)
def test_better_than_maxent_is_found_as_planted(claim, method, solver, gain, wanted):
    made = trained(**{"MaxEnt": -0.3, method: -0.3 + gain})
    assert verdict(made, claim, solver=solver) == wanted


@signs
def test_worse_than_maxent_on_mu3_is_found_as_planted(gain, wanted):
    made = trained(MaxEnt=-0.3, MESSI_mu3=-0.3 - gain)
    assert verdict(made, "mu3-below-maxent") == wanted


@signs
@pytest.mark.parametrize("mix", ["mu1", "mu2"])
def test_messimax_as_an_upper_bound_is_found_as_planted(mix, gain, wanted):
    made = trained(**{"MESSIMAX": -0.3 + gain, f"MESSI_{mix}": -0.3})
    assert verdict(made, f"max-above-{mix}") == wanted


def test_messimax_is_at_least_as_good_as_its_equal():
    made = trained(MESSIMAX=-0.3, MaxEnt=-0.4, MESSI_mu1=-0.3)
    assert verdict(made, "max-above-mu1") == HOLDS


@pytest.mark.parametrize("other", ["Ridge", "RidgeStd", "Complete", "Pooling"])
@signs
def test_better_than_a_sceptics_baseline_is_found_as_planted(other, gain, wanted):
    made = trained(**{other: -0.3, "MESSI_mu1": -0.3 + gain})
    assert verdict(made, f"sceptic-{other.lower()}") == wanted


@pytest.mark.parametrize(("loss", "wanted"), [(0.02, HOLDS), (0.2, FAILS), (0.05, UNDECIDED)])
def test_limited_harm_is_found_as_planted(loss, wanted):
    made = trained(MaxEnt=-0.3, MESSIMAX=-0.2, MESSI_mu3=-0.3 - loss)
    assert verdict(made, "harm-is-limited") == wanted


# ------------------------------------------------------------ iterations


@pytest.mark.parametrize(("gain", "wanted"), [(0.1, HOLDS), (-0.1, FAILS), (0.0, UNDECIDED)])
def test_an_early_benefit_is_found_as_planted(gain, wanted):
    late = np.where(STEPS == 100, 0.5, 0.0)
    made = {
        ("pit", "iterations", "MaxEnt"): curve(STEPS, late),
        ("pit", "iterations", "MESSIMAX"): curve(STEPS, gain - late, wobble=2.0),
    }
    assert verdict(made, "benefit-soon") == wanted


@pytest.mark.parametrize(("slope", "wanted"), [(1.0, HOLDS), (-1.0, FAILS), (0.0, UNDECIDED)])
def test_a_growing_reward_is_found_as_planted(slope, wanted):
    x, performance, _ = curve(STEPS, 0.0)
    norm = 200 + slope * STEPS[:, None] + (STEPS[:, None] == 100) * WOBBLE[:RUNS]
    assert verdict({("pit", "iterations", "MaxEnt"): (x, performance, norm)}, "theta-grows") == wanted


def saturating(reach, gain, wobble=0.0):
    """All methods reach θ_max at iteration 50, or never, and gain after that."""
    norm = np.minimum(STEPS * 10.0, 500.0) if reach else STEPS * 1.0
    x, performance, size = curve(STEPS, gain * (STEPS == 100), norm=norm)
    performance = performance + wobble * (STEPS[:, None] == 100) * WOBBLE[:RUNS]
    methods = ("MaxEnt", "MESSIMAX", "MESSI-mu1", "MESSI-mu2")
    return {("pit", "iterations", m): (x, performance, size) for m in methods}


@pytest.mark.parametrize(
    ("reach", "gain", "wanted"), [(True, 0.0, HOLDS), (True, -0.1, HOLDS), (True, 0.1, FAILS), (False, 0.0, FAILS)]
)
def test_saturation_is_found_as_planted(reach, gain, wanted):
    assert verdict(saturating(reach, gain), "theta-saturates") == wanted


def test_a_likely_gain_after_saturation_is_not_called_none():
    made = saturating(True, 0.1, wobble=60.0)  # mean 0.1, interval from about −0.04 to 0.24
    assert verdict(made, "theta-saturates") == UNDECIDED


def humped(fall, wobble=0.0):
    """Rises to a best moment at iteration 40, then falls until the end."""
    mean = np.where(STEPS <= 40, STEPS / 40, 1 - fall * (STEPS - 40) / 60)
    x, performance, norm = curve(STEPS, mean)
    return x, performance + wobble * (STEPS[:, None] > 40) * WOBBLE[:RUNS], norm


@pytest.mark.parametrize(("fall", "wanted"), [(0.3, HOLDS), (0.0, UNDECIDED)])
def test_degrading_maxent_is_found_as_planted(fall, wanted):
    made = {("pit", "iterations", "MaxEnt"): humped(fall)}
    assert verdict(made, "maxent-degrades") == wanted


def test_a_training_that_only_improves_does_not_degrade():
    """Its best moment is its end: nothing falls, so that it degrades does not hold."""
    made = {("pit", "iterations", "MaxEnt"): curve(STEPS, STEPS / 100)}
    assert verdict(made, "maxent-degrades") != HOLDS


@pytest.mark.parametrize("method", ["MESSIMAX", "MESSI-mu1", "MESSI-mu2"])
def test_monotone_improvement_is_found_as_planted(method):
    key = ("pit", "iterations", method)
    claim = f"monotone-{method.lower()}"
    assert verdict({key: curve(STEPS, STEPS / 100)}, claim) == HOLDS
    assert verdict({key: humped(0.3)}, claim) == FAILS


def test_a_likely_fall_is_not_called_monotone():
    made = {("pit", "iterations", "MESSIMAX"): humped(0.3, wobble=60.0)}  # mean fall 0.3, interval over zero
    assert verdict(made, "monotone-messimax") == UNDECIDED


def test_a_deep_dip_on_the_way_is_not_called_monotone():
    """It could not safely be stopped at any time."""
    dip = STEPS / 100 - 0.5 * np.exp(-(((STEPS - 50) / 10) ** 2))
    made = {("pit", "iterations", "MESSIMAX"): curve(STEPS, dip)}
    assert verdict(made, "monotone-messimax") == FAILS


# ------------------------------------------------------------ sweeps

POINTS = {
    "unlabelled": np.array([0, 1, 2, 5, 10, 20, 50, 100.0]),
    "nu": np.array([0, 0.05, 0.1, 0.15, 0.25, 0.5, 0.75, 1.0]),
    "lambda": np.array([0, 0.005, 0.05, 0.5, 5, 50.0]),
}


@pytest.mark.parametrize("method", ["MESSIMAX", "MESSI-mu1", "MESSI-mu2", "MESSI-mu3"])
@signs
def test_what_more_trajectories_do_is_found_as_planted(method, gain, wanted):
    x = POINTS["unlabelled"]
    sign = -1.0 if method == "MESSI-mu3" else 1.0
    _, performance, norm = curve(x, sign * gain * np.log2(np.maximum(x, 1)))
    performance = performance + np.log2(np.maximum(x, 1))[:, None] * WOBBLE[:RUNS]
    performance[0] = 1e3  # u = 0 is MaxEnt, and not on the line
    made = {("pit", "unlabelled", method): (x, performance, norm)}
    assert verdict(made, f"more-{method.lower()}") == wanted


@pytest.mark.parametrize("mix", ["mu1", "mu2"])
@signs
def test_a_sufficient_share_of_good_trajectories_is_found_as_planted(mix, gain, wanted):
    x = POINTS["nu"]
    made = {
        ("pit", "nu", "MaxEnt"): curve(x, -0.3),
        ("pit", "nu", f"MESSI-{mix}"): curve(x, np.where(x >= 0.15, gain, -0.2) - 0.3, wobble=2.0),
    }
    assert verdict(made, f"nu-suffices-{mix}") == wanted


def test_one_point_below_maxent_is_enough_to_refute_that_nu_suffices_and_is_the_evidence():
    x = POINTS["nu"]
    _, performance, norm = curve(x, 0.1)
    performance = performance + (x == 0.25)[:, None] * 40 * WOBBLE[:RUNS]  # nothing is known there
    performance = performance - 0.15 * (x == 0.5)[:, None]  # and here it is worse beyond doubt
    made = {("pit", "nu", "MaxEnt"): curve(x, 0.0, wobble=2.0), ("pit", "nu", "MESSI-mu1"): (x, performance, norm)}
    (row,) = (r for r in evaluate_claims(table(made)) if r["id"] == "nu-suffices-mu1")
    assert row["verdict"] == FAILS
    assert row["evidence"]["high"] < 0
    assert "ν = 0.5" in row["note"].split(";")[0]


@pytest.mark.parametrize(("gap", "wanted"), [(0.0, HOLDS), (1e-6, FAILS)])
def test_equality_at_nu_one_is_found_as_planted(gap, wanted):
    x = POINTS["nu"]
    made = {("pit", "nu", m): curve(x, x) for m in ("MESSIMAX", "MESSI-mu1", "MESSI-mu2")}
    made["pit", "nu", "MESSI-mu2"] = curve(x, x + gap)
    assert verdict(made, "nu-one") == wanted


@pytest.mark.parametrize(
    ("least", "wobble", "wanted"),
    [(0.0, 1.01, HOLDS), (0.15, 1.01, FAILS), (-0.15, 1.01, FAILS), (0.05, 20, UNDECIDED)],
)
def test_a_small_lambda_is_found_as_planted(least, wobble, wanted):
    x = POINTS["lambda"]
    gain = np.where(x == 0, 0.0, np.where(x == 0.005, least, 1.0))
    made = {("pit", "lambda", "MaxEnt"): curve(x, 0.0), ("pit", "lambda", "MESSI-mu1"): curve(x, gain, wobble=wobble)}
    assert verdict(made, "lambda-small") == wanted


@pytest.mark.parametrize("method", ["MESSIMAX", "MESSI-mu1"])
@pytest.mark.parametrize(("fall", "wanted"), [(0.3, HOLDS), (0.0, UNDECIDED)])
def test_a_large_lambda_is_found_as_planted(method, fall, wanted):
    x = POINTS["lambda"]
    mean = np.where(x == 0.5, 1.0, np.where(x == 50, 1.0 - fall, 0.0))
    made = {("pit", "lambda", method): curve(x, mean)}
    assert verdict(made, f"lambda-large-{method.lower()}") == wanted


# ------------------------------------------------------------ EM


def em(gap, eta=10, mix="mu1"):
    """MESSI above EM by `gap` at every iteration."""
    name = f"EM-{eta}" + ("" if mix == "mu1" else f"-{mix}")
    return {
        ("pit", "em", f"MESSI-{mix}"): curve(STEPS, STEPS / 100),
        ("pit", "em", name): curve(STEPS, STEPS / 100 - np.asarray(gap), wobble=2.0),
    }


@pytest.mark.parametrize("mix", ["mu1", "mu2"])
@pytest.mark.parametrize("eta", [1, 5, 10, 20, 50])
@signs
def test_em_against_messi_is_found_as_planted(mix, eta, gain, wanted):
    assert verdict(em(gain, eta, mix), f"em-{eta}-worse-{mix}") == wanted


def test_em_may_be_better_in_a_few_iterations_and_no_more():
    assert verdict(em(np.where((STEPS > 10) & (STEPS < 18), -0.1, 0.1)), "em-10-worse-mu1") == HOLDS
    assert verdict(em(np.where((STEPS > 10) & (STEPS < 50), -0.1, 0.1)), "em-10-worse-mu1") == FAILS


def test_em_that_is_worse_only_in_the_end_is_not_worse_in_all_but_a_few_iterations():
    assert verdict(em(np.where(STEPS == 100, 0.1, 0.0)), "em-10-worse-mu1") != HOLDS


@pytest.mark.parametrize("mix", ["mu1", "mu2"])
@pytest.mark.parametrize("eta", [1, 10, 50])
def test_em_that_ends_below_its_best_moment_is_found_as_planted(mix, eta):
    name = f"EM-{eta}" + ("" if mix == "mu1" else f"-{mix}")
    claim = f"em-{eta}-peaks-{mix}"
    assert verdict({("pit", "em", name): humped(0.3)}, claim) == HOLDS
    assert verdict({("pit", "em", name): humped(0.0)}, claim) == UNDECIDED
    assert verdict({("pit", "em", name): curve(STEPS, STEPS / 100)}, claim) != HOLDS


# ------------------------------------------------------------ over domains


@signs
@pytest.mark.parametrize("solver", ["paper", "exact"])
def test_a_larger_advantage_in_the_pit_is_found_as_planted(solver, gain, wanted):
    suffix = "/exact" if solver == "exact" else ""
    made = {}
    for domain, share in (("pit", 0.3 + gain), ("highway", 0.3), ("gridworld", 0.3)):
        made[domain, "iterations", f"MaxEnt{suffix}"] = curve([100], [-2.0])
        made[domain, "iterations", f"MESSI-mu1{suffix}"] = curve([100], [-2.0 + 2 * share], wobble=2.0)
    for other in ("highway", "gridworld"):
        assert verdict(made, "pit-larger", f"pit against {other}", solver) == wanted


# ------------------------------------------------------------ as data


def test_every_claim_says_what_it_is_where_it_stands_and_how_it_is_tested():
    found = evaluate_claims(everything(4))
    assert len({(r["id"], r["domain"], r["solver"]) for r in found}) == len(found)
    for r in found:
        assert r["text"].endswith(".")
        assert r["where"]
        assert r["test"]
        assert r["verdict"] in (HOLDS, FAILS, UNDECIDED)
    wanted = {"max-beats-maxent", "mu1-beats-maxent", "mu2-beats-maxent", "mu3-below-maxent", "max-above-mu1"}
    wanted |= {"benefit-soon", "theta-saturates", "more-messimax", "more-messi-mu1", "more-messi-mu2", "more-messi-mu3"}
    wanted |= {"nu-suffices-mu1", "nu-suffices-mu2", "nu-one", "lambda-small", "lambda-large-messimax"}
    wanted |= {"em-1-worse-mu1", "em-50-peaks-mu1", "monotone-messi-mu1"}
    for domain in ("highway", "gridworld", "pit"):
        assert wanted <= {r["id"] for r in found if r["domain"] == domain}
    assert "pit-larger" in {r["id"] for r in found}


@pytest.mark.parametrize("runs", [1, 2, 3, 5])
def test_claims_are_plain_data_with_finite_numbers_however_few_the_runs(runs):
    found = evaluate_claims(everything(runs, ("highway", "pit")))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found


def test_one_run_decides_nothing_that_needs_an_interval():
    for r in evaluate_claims(everything(1, ("pit",))):
        assert r["verdict"] == UNDECIDED or r["id"] in ("nu-one", "theta-saturates"), r["id"]


@pytest.mark.parametrize("figure", ["iterations", "unlabelled", "nu", "lambda", "em"])
def test_a_table_with_one_figure_decides_what_it_can(figure):
    every = everything(4, ("pit",))
    part = every.filter(pa.compute.equal(every["figure"], figure))
    assert {r["domain"] for r in evaluate_claims(part)} == {"pit"}


def test_a_short_training_leaves_out_what_it_cannot_decide():
    found = {r["id"] for r in evaluate_claims(everything(4, ("pit",), iterations=10))}
    assert "max-beats-maxent" in found
    assert "benefit-soon" not in found


def test_the_highway_with_a_further_view_has_its_own_verdicts():
    assert {r["domain"] for r in evaluate_claims(everything(4, ("highway-far",)))} == {"highway-far"}


def test_a_variant_that_is_no_setting_is_left_out():
    made = {("pit: lambda0 halved", "iterations", "MaxEnt"): curve(STEPS, 0.0)}
    assert evaluate_claims(table(made)) == []


def test_a_table_that_keeps_only_the_end_of_curves_decides_what_it_can():
    ends = {("pit", "em", name): curve([100], [final]) for name, final in (("EM-1", -1.0), ("MESSI-mu1", 0.0))}
    assert [row for row in evaluate_claims(table(ends)) if "EM" in row["text"]] == []
