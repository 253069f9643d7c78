"""Plant faults in a copy of the sources, one at a time, and see whether the thin tier of tests finds them.

    python tools/mutation_check.py              all of FAULTS
    python tools/mutation_check.py fieller goal  those whose name contains one of the words

The thin tier runs once without a fault, and must pass. For each fault the files of tests that are likely to find it
run first, then the whole thin tier, each until the first failure. Fails where fewer than 28 in 30 faults are found, or
where a fault does not fit the sources any more.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HOUSE = Path(__file__).resolve().parent.parent
PARTS = ("src", "tests", "docs", "examples", "studies", "benchmarks", "tools", "results")  # what the tests look at
LEAST = 28 / 30
EVERY_CORE = ("-n", "auto")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


class Fault(NamedTuple):
    """A text of a file, which occurs there once, what replaces it, and the tests to ask first."""

    name: str
    file: str
    text: str
    planted: str
    tests: str


FAULTS = [
    # planning
    Fault(
        "a Hessian with a horizon forgets the discount",
        "planning/value_derivatives.py",
        "weight = more + mdp.discount * (mdp.transitions.T @ steps[-1].ravel())",
        "weight = more + mdp.transitions.T @ steps[-1].ravel()",
        "choices exactness",
    ),
    Fault(
        "what chosen moves collect forgets the discount",
        "planning/policy_chain.py",
        "+ mdp.discount * (move @ ahead) - here",
        "+ (move @ ahead) - here",
        "choices inference",
    ),
    Fault(
        "the value of a choice is that of the same step",
        "planning/choice_likelihood.py",
        "self._later = 0 if mdp.horizon is None else 1",
        "self._later = 0",
        "choices",
    ),
    Fault(
        "the constant of choices drops the chance of moves",
        "planning/choice_likelihood.py",
        "else self.choices.log_probability + base.ravel()[self.choices.row]",
        "else base.ravel()[self.choices.row]",
        "reference choices",
    ),
    Fault(
        "a state is lost one step too early",
        "planning/finite_horizon.py",
        "return np.asarray(spans[0][states] < self.horizon - 1 - steps)",
        "return np.asarray(spans[0][states] < self.horizon - steps)",
        "exactness choices",
    ),
    Fault(
        "a checkpointed policy is that of the next step",
        "planning/finite_horizon.py",
        "state_major(policies[t % self._length])",
        "state_major(policies[(t + 1) % self._length])",
        "checkpoints",
    ),
    Fault(
        "the negative part of a source is added",
        "planning/infinite_horizon.py",
        "self._signed = (mass, both[0] - both[1], both[0] + both[1])",
        "self._signed = (mass, both[0] + both[1], both[0] + both[1])",
        "models choices",
    ),
    Fault(
        "ties at discount 1 ignore rewards of actions",
        "planning/infinite_horizon.py",
        "gain if reward.ndim == 1 else gain + reward, -np.inf)",
        "gain, -np.inf)",
        "exactness rounding models",
    ),
    Fault(
        "log Z of the last step has one discount too many",
        "planning/noncausal.py",
        "mdp.discount ** (self.horizon - 1) * end",
        "mdp.discount ** self.horizon * end",
        "exactness",
    ),
    Fault(
        "of goals solved alone the visits of actions are dropped",
        "planning/goal_conditioned.py",
        "pairs += alone.visits.steps",
        "pairs += 0.0",
        "goals choices models",
    ),
    Fault(
        "the compiled backup forgets the reward of a state",
        "planning/kernels/bellman.py",
        "out[at + i] = state_reward[at + i] + (factor * top[i] + _log(total[i]))",
        "out[at + i] = factor * top[i] + _log(total[i])",
        "exactness",
    ),
    Fault(
        "the compiled walk weighs visits of actions once too late",
        "planning/kernels/bellman.py",
        "by_action[a, at + i] += weight * mass[a, i]",
        "by_action[a, at + i] += mass[a, i]",
        "exactness counts",
    ),
    Fault(
        "compiled ties go to the highest action",
        "planning/kernels/bellman.py",
        "for a in range(n_actions - 1, -1, -1):",
        "for a in range(n_actions):",
        "exactness rounding",
    ),
    # objective
    Fault(
        "the penalty is not halved",
        "objective.py",
        "value -= 0.5 * float(theta @ pull)",
        "value -= float(theta @ pull)",
        "exactness",
    ),
    Fault(
        "a prior does not fade with the number of trajectories",
        "objective.py",
        "np.diag((self.unit / spread) ** 2 / self.size)",
        "np.diag((self.unit / spread) ** 2)",
        "prior",
    ),
    Fault(
        "the start of the data forgets the weights",
        "data/sufficient_statistics.py",
        "start = np.bincount(trajectories.first, weights, mdp.n_states).astype(np.float64)",
        "start = np.bincount(trajectories.first, minlength=mdp.n_states) / len(trajectories)",
        "exactness choices",
    ),
    Fault(
        "the scale of choices forgets the weights",
        "data/sufficient_statistics.py",
        "float(weights @ (trajectories.lengths - 1)), float(weights @ choice_mass(mdp, trajectories)))",
        "float(np.mean(trajectories.lengths - 1)), float(np.mean(choice_mass(mdp, trajectories))))",
        "choices",
    ),
    Fault(
        "a cut trajectory counts one term too few",
        "data/feature_counts.py",
        "tail = mdp.discount ** terms[cut].astype(np.float64)",
        "tail = mdp.discount ** (terms[cut] - 1.0)",
        "counts exactness",
    ),
    # penalty
    Fault(
        "the penalty is divided by one too many",
        "similarity/penalty_blocks.py",
        "return (total + total.T) / n",
        "return (total + total.T) / (n + 1)",
        "similarity",
    ),
    Fault(
        "the Gaussian kernel is half as wide",
        "similarity/kernels.py",
        "square /= -2.0 * sigma",
        "square /= -sigma",
        "similarity",
    ),
    Fault(
        "random pairs may be a trajectory and itself",
        "similarity/kernels.py",
        "second = (first + rng.integers(1, n, size=PAIRS)) % n",
        "second = (first + rng.integers(0, n, size=PAIRS)) % n",
        "similarity",
    ),
    Fault(
        "a compiled warp may not go diagonally",
        "similarity/_alignment_kernels.py",
        "apart[x[i], y[j]] + min(above, line[j], corner)",
        "apart[x[i], y[j]] + min(above, line[j])",
        "sequences",
    ),
    # inference
    Fault(
        "scores of clusters are not centred",
        "inference/standard_errors.py",
        "@ (found.each - found.each.mean(axis=0))",
        "@ found.each",
        "inference inference_choices small_sample",
    ),
    Fault(
        "degrees of freedom lose a product",
        "inference/small_sample.py",
        "squares += own**2 - 2.0 * own * length",
        "squares += own**2",
        "small_sample",
    ),
    Fault(
        "Fieller's interval has the covariance with the wrong sign",
        "inference/weight_ratios.py",
        "middle = a * b - z**2 * sab",
        "middle = a * b + z**2 * sab",
        "ratios",
    ),
    Fault(
        "the other groups include the group itself",
        "inference/group_breakdown.py",
        "rest = [np.delete(logs, k, axis=0).mean(axis=0) for k in range(many)]",
        "rest = [logs.mean(axis=0) for k in range(many)]",
        "groups",
    ),
    # io
    Fault(
        "steps count from 1 where one trajectory does",
        "io/tables/step_order.py",
        "(step[begins] == 1).all())",
        "(step[begins] == 1).any())",
        "io_folder io_lenient",
    ),
    Fault(
        "features of a step are those of the state that is left",
        "io/folder/build_problem.py",
        "np.hstack([states.features[edges.target], edges.features])",
        "np.hstack([states.features[edges.source], edges.features])",
        "io_folder",
    ),
    Fault(
        "a row belongs to the last tick of the clock",
        "io/positions/segmentation.py",
        "tick = np.rint((rows.time - rows.time[begins][trip]) / step)",
        "tick = np.floor((rows.time - rows.time[begins][trip]) / step)",
        "import",
    ),
    Fault(
        "a hexagon is looked for in the row below",
        "io/recordings/discretise.py",
        "for row in (below, below + 1):",
        "for row in (below, below - 1):",
        "import",
    ),
]


def copied(place: Path) -> None:
    """Copy what the tests need, compiled loops included."""
    for name in PARTS:
        shutil.copytree(HOUSE / name, place / name, ignore=shutil.ignore_patterns("*.pyc"))
    for path in HOUSE.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy2(path, place)


def fails(place: Path, *words: str) -> str | None:
    """Return the first test that fails, or None."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *words]
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(place / "src"), "MESSIRL_TEST_SEED": "0"}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    lines = done.stdout.splitlines()
    first = next((line.split(" - ")[0] for line in lines if line.startswith(("FAILED", "ERROR"))), None)
    if first is None:
        raise SystemExit(f"pytest did not run:\n{done.stdout}{done.stderr}")
    return first


def move_loops(here: Path, there: Path) -> None:
    """Move what Numba has kept to another folder."""
    for loop in [*here.glob("**/*.nb[ci]")]:
        (there / loop.relative_to(here)).parent.mkdir(parents=True, exist_ok=True)
        loop.replace(there / loop.relative_to(here))


def found_by(fault: Fault, place: Path) -> str | None:
    """Return the test that finds a fault, or None."""
    path = place / "src" / "messirl" / fault.file
    before, kept = path.read_text(encoding="utf-8"), path.stat()
    if before.count(fault.text) != 1:
        raise SystemExit(f"{fault.file} has {fault.text!r} {before.count(fault.text)} times: change FAULTS")
    path.write_text(before.replace(fault.text, fault.planted), encoding="utf-8")
    compiled, aside = "kernels" in fault.file, place / "aside"
    if compiled:  # Numba does not see that a loop which a loop calls has changed
        move_loops(place / "src", aside)
    try:
        likely = [f"tests/test_{name}.py" for name in fault.tests.split()]
        return fails(place, "-p", "no:xdist", *likely) or fails(place, *EVERY_CORE)
    finally:
        path.write_text(before, encoding="utf-8")
        os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))
        for old in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            old.unlink()
        if compiled:
            move_loops(place / "src", place / "of the fault")
            move_loops(aside, place / "src")


def main(words: list[str]) -> None:
    chosen = [fault for fault in FAULTS if not words or any(word in fault.name for word in words)]
    missed = 0
    with tempfile.TemporaryDirectory(prefix="messirl-mutations-") as folder:
        copied(Path(folder))
        wrong = fails(Path(folder), *EVERY_CORE)
        if wrong is not None:
            raise SystemExit(f"without any fault there is {wrong}: mend it first")
        for fault in chosen:
            begin = time.monotonic()
            test = found_by(fault, Path(folder))
            missed += test is None
            print(f"{'MISSED' if test is None else 'found '} {fault.name} ({fault.file}), ", end="")
            print(f"{time.monotonic() - begin:.0f} s: {test or 'the thin tier passes'}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} faults are found.")
    if len(chosen) - missed < LEAST * len(chosen):
        raise SystemExit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
