"""Do the sentences of a page say what is true? Thirty visits of guides, and sets that help, hurt or do not matter.

help             100 more visits of the guides themselves
do not matter    three visits of a random walk: hardly anything
hurt             100 visits of somebody who wants the opposite

`messirl fit` judges the set by 40 held-out visits; the truth of a draw is the same comparison on 4,000 others, of the
same fits. A sentence is wrong if it says "helped" or "hurt" and the truth is not so against every method that does
without the set, or if it says that guides want what they avoid, or avoid what they want. (What `messirl select` and
`diagnose` say follows the verdict that `studies.verdict` checks.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from messirl import Trajectories
from messirl.app.workflow.fitting import FitSettings, fit
from messirl.app.workflow.narrative import HELPED, HURT, use_of
from messirl.app.workflow.preferences import sort_by_sign
from messirl.app.workflow.split import Split
from messirl.estimators.uniform import uniform_policy
from messirl.io import Problem
from messirl.paper.synthetic import museum
from messirl.planning import sample, soft_policy
from studies.common import Rows, column, counts, draws, options, write

L, U, LITTLE, TEST, MANY = 30, 100, 3, 40, 4000
KINDS = ("help", "do not matter", "hurt")
WAYS = {  # settings of the fit: every way to use unlabelled trajectories
    "MESSI": {},
    "base policy": {"method": "maxent", "reference": "unlabelled"},
    "light pooling": {"method": "maxent", "unlabelled_weight": 0.1},
}


def sets(seed: int) -> tuple[Any, np.ndarray, dict[str, Trajectories], Trajectories]:
    """The museum, the guides' weights, the unlabelled sets, and the guides: experts, test, and many for the truth."""
    example = museum()
    mdp, theta = example.problem.mdp, np.array(list(example.theta["guide"].values()))
    policies = {sign: soft_policy(mdp, mdp.reward(sign * theta)) for sign in (1.0, -1.0)}
    anywhere = np.full(mdp.n_states, 1.0 / mdp.n_states)

    def visits(policy: Any, n: int, of: int) -> Trajectories:
        drawn = sample(mdp, policy, n, start=anywhere, random_state=10 * seed + of)
        return Trajectories(drawn.states, drawn.offsets)

    others = (visits(policies[1.0], U, 1), visits(uniform_policy(mdp, None), LITTLE, 2), visits(policies[-1.0], U, 3))
    return mdp, theta, dict(zip(KINDS, others, strict=True)), visits(policies[1.0], L + TEST + MANY, 0)


def one(way: str, seed: int) -> Rows:
    mdp, theta, others, guides = sets(seed)
    expert, tests = guides[:L], {"said": guides[L : L + TEST], "true": guides[L + TEST :]}
    rows = []
    for kind, unlabelled in others.items():
        records = {}
        for name, test in tests.items():
            role = np.repeat(["expert", "other", "test"], [len(expert), len(unlabelled), len(test)])
            problem = Problem(mdp, expert + unlabelled + test, {"role": role})
            split = Split("role = expert", "role = other", "role = test")
            records[name] = fit(problem, split, FitSettings(**WAYS[way]))
        record = records["said"]
        gains, truths = (records[name].verdict.without for name in ("said", "true"))  # type: ignore[union-attr]
        said, (against, *_) = use_of(gains)
        sign = {HELPED: 1.0, HURT: -1.0}.get(said, 0.0)
        claimed = []
        if way != "base policy":  # whose weights are of what differs from the others
            found = record.preferences
            assert found is not None
            signs = sort_by_sign([str(j) for j in range(theta.size)], *found.ends, np.abs(found.model.theta_))
            claimed = [(int(j), 1.0) for j in signs.preferred] + [(int(j), -1.0) for j in signs.avoided]
        rows.append({
            "way": way, "seed": seed, "set": kind, "said": said, "against": against, "gain": gains[against].mean,
            "low": gains[against].low, "high": gains[against].high, "truth": truths[against].mean,
            "wrong": int(any(sign * truth.mean < 0.0 for truth in truths.values())),
            "claims": len(claimed),
            "wrong_claims": sum(direction * theta[j] < 0.0 for j, direction in claimed),
            "sentence": record.in_words[-1],
        })  # fmt: skip
    return rows


def main() -> None:
    arguments = options(__doc__ or "", runs=50).parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    rows = draws(one, [(way, seed) for way in WAYS for seed in seeds], arguments.jobs)
    write(rows, arguments.out / "sentences.csv")
    for way in WAYS:
        for kind in KINDS:
            about = {"way": way, "set": kind}
            said = column(rows, "said", **about).tolist()
            wrong, truth = np.mean(column(rows, "wrong", **about)), np.mean(column(rows, "truth", **about))
            claims, false = (int(np.sum(column(rows, name, **about))) for name in ("claims", "wrong_claims"))
            told = f"truth {truth:+.4f}; said {counts(said, sorted(set(said)))}; wrong {wrong:.0%}"
            print(f"{way:14s} {kind:14s} {told}; {false} of {claims} preferences wrong")


if __name__ == "__main__":
    main()
