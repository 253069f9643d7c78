"""How much is lost when the dynamics are not known but learnt: gridworld and pit, from 500 to 20,000 transitions.

    share = (x − random) / (known − random)      x the performance, in the true MDP, of the policy learnt

The learner is maximum entropy IRL at its optimum, and begins where the expert does, so that nothing but the dynamics
differs. Its data is N transitions in all: the expert's (ten trajectories in the gridworld, where with one alone the
known dynamics are hardly better than chance; the one of the pit), then in turn a near-expert, another and a random
walk, until there are N. Ways to learn the dynamics from them:

    counts      maximum likelihood; an action never seen in a state is not allowed there
    smoothed    counts with a prior of weight α, spread over the next states seen from the state under any action
    graph       the same, spread over a known graph of possible moves; an action never seen has the prior's mean
    forest      fitted value iteration on coordinates, with the default regressor
    tabular     the same with one tree, a leaf a state
    MESSI       as graph, but MESSI(μ1) learns, at the reproduction's λ0, against MESSI(μ1) with known dynamics; its 20
                unlabelled trajectories, many of them also in the log, enter by their feature counts alone

python -m studies.unknown_dynamics --jobs 2
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.tree import DecisionTreeRegressor

from messirl._types import Floats
from messirl.app.report.common.method_style import WIDTH, domain_name
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.dynamics import FittedMESSI, estimate_mdp
from messirl.estimators import MESSI, MaxEntIRL
from messirl.io.recordings.recording import Recording
from messirl.paper.domains import gridworld, mixture, pit
from messirl.paper.domains.slippery_grid import coordinates
from messirl.paper.experiments.curves import interval
from messirl.paper.experiments.paper_settings import SETTINGS
from messirl.planning import sample, soft_policy, state_visitation
from studies.common import Rows, column, draws, options, save_figure, write

SIZES = (500, 1_000, 2_000, 5_000, 20_000)
ALPHA = 5.0  # weight of the prior; chosen among 0.1, 1, 5 and 10 on the pilot seeds 0 … 9
ROUNDS = 175  # of near-expert, other, random walk: more than 20,000 transitions
ITERATIONS = 200
DOMAINS = {
    "gridworld": gridworld(**SETTINGS["gridworld"].arguments, experts=10, pool=ROUNDS),
    "pit": pit(**SETTINGS["pit"].arguments, pool=ROUNDS),
}
WAYS = {
    "counts": ("counts", "#0072B2", "s", "-"),
    "smoothed": ("counts, smoothed", "#E69F00", "v", "-"),
    "graph": ("counts, graph as prior", "#D55E00", "o", "-"),
    "forest": ("fitted, forest", "#009E73", "^", "--"),
    "tabular": ("fitted, one leaf per state", "#CC79A7", "D", ":"),
    "MESSI": ("MESSI(μ1), graph as prior", "#000000", "x", "--"),
}


def log(mdp: MDP, pools: dict[str, Trajectories], length: int, seed: int) -> Trajectories:
    """In turn a near-expert's trajectory, one of another behaviour (P_1 and P_2 by turns) and a random walk."""
    walks = sample(mdp, alike(mdp), ROUNDS, length, seed)
    every = pools["star"] + pools["one"] + pools["two"] + walks
    turn = np.arange(ROUNDS)
    order = np.column_stack([turn, (1 + turn % 2) * ROUNDS + turn, 3 * ROUNDS + turn])
    return every[order.ravel()]


def first(trajectories: Trajectories, n: int) -> Trajectories:
    """The first n transitions: whole trajectories, the last one cut."""
    total = np.cumsum(trajectories.lengths - 1)
    last = int(np.searchsorted(total, n))
    if last == len(trajectories):
        raise ValueError(f"{total[-1]} transitions are there, not {n}: raise ROUNDS")
    kept = [(t.states, t.actions) for t in trajectories[: last + 1]]
    steps = n - (int(total[last - 1]) if last else 0)
    states, actions = kept[-1]
    kept[-1] = (states[: steps + 1], actions[:steps])
    return Trajectories.from_lists([s for s, _ in kept], [a for _, a in kept])


def alike(mdp: MDP) -> Floats:
    """The policy that takes all actions alike."""
    return np.asarray(mdp.allowed / np.maximum(mdp.allowed.sum(axis=1, keepdims=True), 1))


def moves(mdp: MDP) -> sp.csr_array:
    """Which state can follow which, (S, S), whatever the action."""
    of_state = sp.kron(sp.eye_array(mdp.n_states), np.ones((1, mdp.n_actions)), format="csr")
    return sp.csr_array(of_state @ mdp.transitions)


def learn(way: str, mdp: MDP, learner: Any, expert: Trajectories, data: Trajectories) -> Floats:
    """The policy (S, A) learnt from the expert and the transitions of `data`; where it knows nothing, all alike.

    learner : from an MDP to the θ it learns there
    """
    if way in ("forest", "tabular"):
        at = coordinates(int(np.sqrt(mdp.n_states))).astype(float)
        regressor = DecisionTreeRegressor(random_state=0) if way == "tabular" else None
        model = FittedMESSI(
            lambda points: mdp.features[np.rint(points @ [1, np.sqrt(mdp.n_states)]).astype(int)],
            regressor=regressor,
            objective="counts",
            lambda0=0.0,
            discount=mdp.discount,
            max_iter=ITERATIONS,
        )
        recorded = [[Recording(at[t.states], t.actions, bool(mdp.terminal[t.states[-1]])) for t in some]
                    for some in (expert, data)]  # fmt: skip
        return model.fit(*recorded).policy(at)
    estimated = estimate_mdp(
        expert + data,
        mdp.features,
        n_actions=mdp.n_actions,
        discount=mdp.discount,
        terminal=mdp.terminal,
        prior=0.0 if way == "counts" else ALPHA,
        graph=moves(mdp) if way in ("graph", "MESSI") else None,
    ).mdp
    policy = soft_policy(estimated, estimated.reward(learner(estimated)))
    known = policy.sum(axis=1, keepdims=True) > 0.5
    return np.asarray(np.where(known, policy, alike(mdp)))


def one(domain: str, seed: int) -> Rows:
    scene = DOMAINS[domain].scene(seed)
    mdp, expert, setting = scene.mdp, scene.expert, SETTINGS[domain]

    def performance(policy: Floats) -> float:
        return scene.performance(state_visitation(mdp, np.where(mdp.terminal[:, None], 0.0, policy)))

    def maxent(at: MDP) -> Floats:
        return np.asarray(MaxEntIRL(objective="counts", max_iter=ITERATIONS).fit(at, expert).theta_)

    def messi(at: MDP) -> Floats:
        common = {"objective": "counts", "theta_max": setting.theta_max, "max_iter": ITERATIONS}
        model = MESSI(scene.similarity, lambda0=setting.lambda0, **common)
        return np.asarray(model.fit(at, expert, mixture(scene, "mu1", setting.u, setting.nu)).theta_)

    free = mdp.replace(start=None)  # as all that is compared: from the expert's own first states
    known = {f: performance(soft_policy(mdp, mdp.reward(f(free)))) for f in (maxent, messi)}
    random = performance(alike(mdp))
    recorded = log(mdp, scene.pools, DOMAINS[domain].settings["length"], seed)
    rows = []
    for n in SIZES:
        data = first(recorded, n - int((expert.lengths - 1).sum()))
        for way in WAYS:
            learner = messi if way == "MESSI" else maxent
            found, best = performance(learn(way, mdp, learner, expert, data)), known[learner]
            rows.append({"domain": domain, "way": way, "transitions": n, "seed": seed, "performance": found,
                         "known": best, "random": random, "share": (found - random) / (best - random)})  # fmt: skip
    return rows


def summary(rows: Rows) -> Rows:
    """Mean and 95 % interval over the seeds."""
    out = []
    for domain in dict.fromkeys(row["domain"] for row in rows):
        for way in WAYS:
            for n in SIZES:
                where = {"domain": domain, "way": way, "transitions": n}
                found = interval(column(rows, "share", **where))
                means = {name: float(column(rows, name, **where).mean()) for name in ("performance", "known", "random")}
                out.append({**where, "runs": found.n, "share": found.mean, "low": found.low, "high": found.high,
                            **means})  # fmt: skip
    return out


def draw(table: Rows) -> Any:
    from matplotlib.figure import Figure

    domains = list(dict.fromkeys(row["domain"] for row in table))
    figure = Figure(figsize=(WIDTH, 3.0), layout="constrained")
    for ax, domain in zip(np.atleast_1d(figure.subplots(1, len(domains), sharey=True)), domains, strict=True):
        for way, (label, colour, marker, dashes) in WAYS.items():
            here = [row for row in table if row["domain"] == domain and row["way"] == way]
            x = [row["transitions"] for row in here]
            ax.plot(x, [row["share"] for row in here], dashes, color=colour, marker=marker, label=label)
            ax.fill_between(x, [r["low"] for r in here], [r["high"] for r in here], color=colour, alpha=0.15, lw=0)
        ax.axhline(1.0, color="black", lw=0.8)
        ax.axhline(0.9, color="black", lw=0.6, ls=":")
        ax.set(xscale="log", xlabel="transitions recorded", title=domain_name(domain))
        ax.set_xticks(SIZES, [f"{n:,}" for n in SIZES], minor=False)
        ax.minorticks_off()
    figure.axes[0].set_ylabel("share of what known dynamics gain")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def save(table: Rows, out: Path) -> None:
    write(table, out / "unknown-dynamics.csv")
    save_figure("unknown-dynamics", lambda: draw(table), out)


def main() -> None:
    arguments = options((__doc__ or "").splitlines()[0], runs=20).parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    table = summary(draws(one, [(domain, seed) for domain in DOMAINS for seed in seeds], arguments.jobs))
    save(table, arguments.out)
    for row in table:
        print("{domain:10} {way:8} {transitions:6d}  {share:.3f} [{low:.3f}, {high:.3f}]".format(**row))


if __name__ == "__main__":
    main()
