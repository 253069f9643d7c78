"""What the first process on a machine pays, and that the second one compiles nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.table import Row, seconds


def first_results() -> dict[str, Any]:
    """In a fresh process: imports, a first evaluation, then other kinds of problem; CPU seconds, compiled functions."""
    from numba.core.dispatcher import Dispatcher

    from benchmarks.problems import grid, true_theta
    from messirl import optimal_policy, soft_policy, state_visitation
    from messirl.planning.kernels import bellman

    imported = time.process_time()
    finite = grid(16, discount=0.99, horizon=100)
    reward = finite.reward(true_theta())
    state_visitation(finite, soft_policy(finite, reward))
    evaluated = time.process_time()
    endless = grid(16, discount=0.99, horizon=None)
    state_visitation(endless, soft_policy(endless, reward))
    soft_policy(finite, reward, "noncausal")
    for mdp in (finite, endless):
        optimal_policy(mdp, reward)
    compiled = [f for f in vars(bellman).values() if isinstance(f, Dispatcher)]
    return {
        "import": imported,
        "evaluation": evaluated,
        "compiled": sum(sum(f.stats.cache_misses.values()) for f in compiled),
        "loaded": sum(sum(f.stats.cache_hits.values()) for f in compiled),
    }


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as cache:
        first, second = (_process(cache) for _ in range(2))
    assert first["compiled"] > 0, "the first process found compiled functions in an empty folder"
    yield Row(
        "functions compiled, second process: first process",
        f"{second['compiled']} ({second['loaded']} loaded)",
        f"{first['compiled']}",
    )
    for what, name in (("a first 16² result", "evaluation"), ("the imports alone", "import")):
        yield Row(f"CPU time to {what}, second process: first process", seconds(second[name]), seconds(first[name]))


def _process(cache: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.startup"],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"a fresh process failed:\n{done.stderr}")
    return dict(json.loads(done.stdout))


if __name__ == "__main__":
    print(json.dumps(first_results()))
