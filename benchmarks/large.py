"""`make bench-large`: a slippery grid of up to a million states, each problem in a process of its own.

    python -m benchmarks.large                          the whole table, some twenty minutes of one core
    python -m benchmarks.large 1000 100 choices         one fit: side, horizon (0: none), objective

Times are CPU seconds, peak memory is that of the process from its imports to the end of the fit. The share of the
bandwidth is of what `read` reads, in the same process, in turns; both by the clock, with so many threads. It is taken
where every cell slips in its own way: where all are alike, their probabilities stay in the cache.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator

import numba
import numpy as np
import scipy.sparse as sp

from benchmarks.problems import MACRO, SUCCESS, true_theta
from benchmarks.table import Row, markdown, seconds
from benchmarks.timing import once
from messirl import MDP, MESSI, Trajectories, sample
from messirl.objective import Objective
from messirl.paper.domains import slippery
from messirl.planning.backups import soft_backup
from messirl.planning.identifiability import unidentified
from messirl.planning.kernels.bellman import jit
from messirl.planning.memory_layout import NONE, layout_of, terms_of, usable_actions
from messirl.planning.multithreading import BlockRange, run_in_parts

DISCOUNT, HORIZON = 0.99, 100
SIDES, LEAST = (100, 316, 1000), 32
NUMBERS = 2**26  # that are read to measure the bandwidth
TURNS = 15


def grid(side: int, horizon: int | None, *, varied: bool = False) -> MDP:
    """The grid of problems.py with sparse features, from a start where four macro-cells meet.

    varied : whether every cell slips in its own way, so that no two blocks of states are alike
    """
    x, y = np.arange(side * side) % side, np.arange(side * side) // side
    cell = (y * MACRO // side * MACRO + x * MACRO // side).astype(np.int32)
    features = sp.csr_array((np.ones(cell.size), cell, np.arange(cell.size + 1, dtype=np.int32)))
    middle = side // MACRO
    near = np.maximum(abs(x - middle), abs(y - middle)) < min(20, middle // 2)
    start = near / near.sum()
    moves = slippery(side, SUCCESS)
    if varied:
        moves.data *= np.random.default_rng(0).uniform(0.8, 1.2, moves.data.size)
        moves.data /= np.repeat(np.add.reduceat(moves.data, moves.indptr[:-1]), np.diff(moves.indptr))
    return MDP(moves, features, start=start, discount=DISCOUNT, horizon=horizon)


def walks(mdp: MDP, n: int, habits: list[float], seed: int) -> Trajectories:
    """Trajectories of who takes each action with a fixed probability."""
    policy = np.broadcast_to(np.array(habits), mdp.policy_shape)
    return sample(mdp, policy, n, mdp.horizon or 300, seed)


def fit(side: int, horizon: int | None, objective: str) -> dict[str, float]:
    """A whole fit: CPU seconds of its parts, evaluations, peak memory in GB."""
    if side > LEAST:
        fit(LEAST, horizon, objective)  # loads what is compiled
    begin, spent, times = time.process_time(), [], {}
    mdp = grid(side, horizon)
    times["making"] = time.process_time() - begin
    expert, unlabelled = walks(mdp, 10, [0.5, 0.1, 0.1, 0.3], 1), walks(mdp, 50, [0.25] * 4, 2)
    evaluate = Objective.__call__

    def counted(self, theta):
        spent.append(-time.process_time())
        try:
            return evaluate(self, theta)
        finally:
            spent[-1] += time.process_time()

    Objective.__call__ = counted
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        times["fit"] = once(lambda: MESSI(max_iter=20, objective=objective).fit(mdp, expert, unlabelled))
    Objective.__call__ = evaluate
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    times["identifying"] = once(lambda: unidentified(mdp, mdp.start, None))
    return {**times, "evaluations": len(spent), "evaluating": sum(spent), "peak": peak, "states": side * side}


@jit
def read(lo, hi, x):
    """A sum, in eight that do not wait for each other."""
    a = b = c = d = e = f = g = h = 0.0
    for i in range(lo, hi, 8):
        a, b, c, d = a + x[i], b + x[i + 1], c + x[i + 2], d + x[i + 3]
        e, f, g, h = e + x[i + 4], f + x[i + 5], g + x[i + 6], h + x[i + 7]
    return a + b + c + d + e + f + g + h


def backup(side: int) -> dict[str, float]:
    """One soft backup, where every cell slips in its own way and where all are alike, and reading.

    The least seconds by the clock of many turns, and the bytes of the first and of reading.
    """
    numbers, eighth = np.ones(NUMBERS), NUMBERS // 8
    pieces = [BlockRange(k * eighth, (k + 1) * eighth, 0, 0) for k in range(8)]
    varied, size = _one_backup(grid(side, HORIZON, varied=True))
    calls: dict[str, Callable[[], object]] = {
        "backup": varied,
        "alike": _one_backup(grid(side, HORIZON))[0],
        "reading": lambda: run_in_parts(pieces, lambda _, lo, hi: read(lo, hi, numbers)),
    }
    least = dict.fromkeys(calls, np.inf)
    for _ in range(TURNS + 1):  # the first compiles
        for name, call in calls.items():
            least[name] = min(least[name], once(call, time.perf_counter))
    return {**least, "bytes": size, "read": numbers.nbytes, "states": side * side, "threads": numba.get_num_threads()}


def _one_backup(mdp: MDP) -> tuple[Callable[[], object], int]:
    """A soft backup, and the bytes it reads."""
    layout, reward = layout_of(mdp), mdp.reward(true_theta())
    terms = terms_of(layout, reward, usable_actions(mdp))
    ahead, here = layout.pad(reward), np.empty(layout.padded)
    size = layout.idx.nbytes + layout.prob.nbytes + ahead.nbytes + terms.state.nbytes
    return lambda: soft_backup(layout, terms, DISCOUNT, ahead, here, NONE), size


def _apart(*arguments: object, threads: int = 1) -> dict[str, float]:
    """What this file finds with these arguments, in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.large", *map(str, arguments)]
    done = subprocess.run(
        command, env={**os.environ, "NUMBA_NUM_THREADS": str(threads)}, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def rows() -> Iterator[Row]:
    for threads in (1, 2):
        for side in SIDES:
            found = _apart(side, "backup", threads=threads)
            rate, best = found["bytes"] / found["backup"], found["read"] / found["reading"]
            what = f"one backup, {found['states']:,} states, {threads} thread(s): reading alone"
            ours = f"{1e9 * found['backup'] / found['states']:.1f} ns each, {rate / 1e9:.3g} GB/s"
            yield Row(what, ours, f"{best / 1e9:.3g} GB/s", rate / best)
            what = f"the same where all cells are alike, {found['states']:,} states, {threads} thread(s): as above"
            each = [f"{1e9 * found[name] / found['states']:.1f} ns each" for name in ("alike", "backup")]
            yield Row(what, *each, found["backup"] / found["alike"])
    for horizon in (HORIZON, 0):
        name = f"horizon {horizon}" if horizon else f"endless, γ {DISCOUNT}"
        for objective in ("counts", "choices"):
            small = None
            for side in SIDES:
                found = _apart(side, horizon, objective)
                each = found["evaluating"] / found["evaluations"]
                small = small or each / found["states"]
                what = f"{found['states']:,} states, {name}, {objective}"
                yield Row(
                    f"one evaluation, {what}: as per state of {SIDES[0]}²",
                    seconds(each),
                    "",
                    small * found["states"] / each,
                )
                yield Row(
                    f"making the MDP, {what}: evaluations",
                    seconds(found["making"]),
                    seconds(each),
                    each / found["making"],
                )
                yield Row(
                    f"identifiability, {what}: evaluations",
                    seconds(found["identifying"]),
                    seconds(each),
                    each / found["identifying"],
                )
                ours = f"{seconds(found['fit'])}, {found['peak']:.2f} GB at most"
                theirs = f"{found['evaluations']:.0f} evaluations, {seconds(found['evaluating'])}"
                yield Row(f"MESSI.fit, {what}: its evaluations", ours, theirs, found["evaluating"] / found["fit"])


def main() -> None:
    if len(sys.argv) == 1:
        print(markdown(list(rows())))
    elif sys.argv[2] == "backup":
        print(json.dumps(backup(int(sys.argv[1]))))
    else:
        print(json.dumps(fit(int(sys.argv[1]), int(sys.argv[2]) or None, sys.argv[3])))


if __name__ == "__main__":
    main()
