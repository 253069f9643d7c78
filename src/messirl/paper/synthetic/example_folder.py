"""Writing an example as a problem folder: CSV tables, truth.json and README.md, all at once or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

from messirl._text import did_you_mean
from messirl.data.errors import InputError
from messirl.io.folder.atomic_replace import replace_files
from messirl.io.folder.writer import OURS, check_place, problem_files
from messirl.paper.synthetic.maze import maze
from messirl.paper.synthetic.museum import museum
from messirl.paper.synthetic.roads import roads
from messirl.paper.synthetic.synthetic_problem import Example

EXAMPLES = {"museum": museum, "roads": roads, "maze": maze}
FORCE = "give another folder, or `force` (overwrite=True in Python) to replace it"
TRUTH, README = "truth.json", "README.md"


def write_example(name: str, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Example:
    """Write one of the examples (museum, roads, maze) into a new or empty folder, and return it.

    overwrite : replace the problem or the example that the folder holds, all files at once; any other file stays
    """
    if name not in EXAMPLES:
        raise ValueError(f"there is no example {name!r}; there are {', '.join(EXAMPLES)}{did_you_mean(name, EXAMPLES)}")
    place = Path(folder)
    if _is_example(place):
        if not overwrite:
            raise InputError(str(place), "already contains an example", FORCE)
    else:
        foreign = next((file for file in (README, TRUTH) if (place / file).exists()), None)
        if foreign is not None:
            what = f"contains {foreign}, which does not belong to an example"
            raise InputError(str(place), what, "give another folder, or move that file")
    check_place(place, overwrite=overwrite)
    made = EXAMPLES[name]()
    files = problem_files(made.problem, "csv")
    files |= {TRUTH: made.truth().encode(), README: made.readme(str(folder)).encode()}
    replace_files(place, files, OURS)
    return made


def _is_example(place: Path) -> bool:
    try:
        found = json.loads((place / TRUTH).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("example") in EXAMPLES
