"""What noise, sparse recording and gaps do to weights: agents of known θ on a plane, recorded, imported and fitted.

python -m studies.raw_recordings: agents walk on 10 × 10 squares by the soft policy of θ*. At every step, or every
third, their position is written down with normal noise of 0, 0.25, 0.5 or 1 square in x and in y; a tenth of the rows
may be missing. The table is imported as a user would, with the noise given or without; its folder is written, read and
fitted by objective="choices", and θ compared with θ*. Gaps are filled in, or cut with --pause. Agents always move
(--no-stay), or may stay.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from messirl import MDP, MaxEntIRL, Trajectories, estimation_table, read_problem, sample, soft_policy
from messirl._types import Floats
from messirl.app.workflow.import_settings import ImportSettings
from messirl.app.workflow.importing import import_recordings
from messirl.io.folder.writer import write_problem
from messirl.io.positions.adjacency import add_self_transitions, transitions
from messirl.io.positions.spatial_cells import squares
from studies.common import column, draws, options, write

SIDE, TRACKS, STATES, DISCOUNT = 10, 60, 31, 0.9
AREA = (0.0, 0.0, float(SIDE), float(SIDE))
MARKS = {"nest": (8.0, 8.0), "water": (2.0, 7.0), "road": (5.0, 1.0)}
TRUTH = np.array([-0.4, -0.2, 0.3])  # per side of a square
NOISE = (0.0, 0.25, 0.5, 1.0)
MISSING = 0.1


class Case(NamedTuple):
    """How agents behave, are recorded, and are imported."""

    stay: bool
    every: int
    gaps: str  # none, filled, cut
    noise: float
    told: bool  # whether the import knows of the noise


CASES = [
    Case(stay, every, gaps, noise, True)
    for stay in (False, True)
    for every, gaps in ((1, "none"), (1, "filled"), (1, "cut"), (3, "none"), (3, "filled"))
    for noise in NOISE
]
CASES += [Case(stay, 1, "none", noise, False) for stay in (False, True) for noise in NOISE[1:]]


@cache
def world(stay: bool) -> tuple[MDP, Floats]:
    corners = np.reshape(AREA, (2, 2))
    places = squares(corners, 1.0, 4, corners)
    at = places.centres
    assert at is not None
    far = np.column_stack([np.linalg.norm(at - mark, axis=1) for mark in MARKS.values()])
    moves = add_self_transitions(places.near) if stay else places.near
    return MDP(transitions(moves, at)[0], far, discount=DISCOUNT, start=np.full(len(at), 1.0 / len(at))), at


@cache
def policy(stay: bool) -> Any:
    mdp, _ = world(stay)
    return soft_policy(mdp, mdp.reward(TRUTH))


def recorded(case: Case, seed: int) -> str:
    """A table of positions, as a tracker writes it."""
    mdp, at = world(case.stay)
    random = np.random.default_rng([seed, case.every, int(100 * case.noise)])
    lines = ["track,frame,x,y"]
    for name, one in enumerate(sample(mdp, policy(case.stay), TRACKS, STATES, random_state=seed)):
        seen = at[one.states] + case.noise * random.normal(size=(STATES, 2))
        there = (case.gaps == "none") | (random.random(STATES) >= MISSING)
        for frame in range(0, STATES, case.every):
            if np.broadcast_to(there, STATES)[frame]:
                lines.append(f"{name},{frame},{seen[frame, 0]:.4f},{seen[frame, 1]:.4f}")
    return "\n".join(lines) + "\n"


def imported(table: str, case: Case) -> tuple[MDP, Trajectories]:
    settings = ImportSettings(
        discount=DISCOUNT,
        step=1.0,
        grid=1.0,
        area=AREA,
        whole_grid=True,
        stay=case.stay,
        noise=case.noise if case.told and case.noise > 0 else None,
        pause=case.every if case.gaps == "cut" else None,
        distance=[f"{name}={x},{y}" for name, (x, y) in MARKS.items()],
    )
    with TemporaryDirectory() as place:
        source = Path(place) / "tracks.csv"
        source.write_text(table)
        write_problem(import_recordings(source, settings).problem, Path(place) / "problem")
        problem = read_problem(Path(place) / "problem")
    return problem.mdp, problem.trajectories


def one(case: Case, seed: int) -> list[dict[str, Any]]:
    mdp, tracks = imported(recorded(case, seed), case)
    model = MaxEntIRL(objective="choices", theta_max=None, ridge=0.0).fit(mdp, tracks)
    found = estimation_table(model, tracks)
    gaps, errors = found.estimate - TRUTH, found.robust_std_error
    return [
        {**case._asdict(), "weight": name, "gap": gap, "error": error, "covered": bool(abs(gap) < 1.96 * error)}
        for name, gap, error in zip(MARKS, gaps, errors, strict=True)
    ]


def main() -> None:
    parser = options(__doc__ or "", runs=50)
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    rows = draws(one, [(case, seed) for case in CASES for seed in seeds], arguments.jobs)
    summary = []
    for case in CASES:
        for name, truth in zip(MARKS, TRUTH, strict=True):
            where = {**case._asdict(), "weight": name}
            gap, error, covered = (column(rows, key, **where) for key in ("gap", "error", "covered"))
            spread = float(gap.std(ddof=1))
            summary.append(
                {
                    **where,
                    "truth": float(truth),
                    "runs": len(gap),
                    "bias": float(gap.mean()),
                    "bias_error": spread / len(gap) ** 0.5,
                    "spread": spread,
                    "std_error": float(error.mean()),
                    "coverage": float(covered.mean()),
                }
            )
            print(*(f"{value:.4g}" if isinstance(value, float) else value for value in summary[-1].values()))
    write(summary, arguments.out / "raw-recordings.csv")


if __name__ == "__main__":
    main()
