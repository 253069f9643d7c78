"""Worker process that reads data and fits: `python -m messirl.app.lab.worker`, one JSON object per line in and out.

    in   {"folders": [path, …]} once, then {"id": 7, "what": "fit", …} or {"cancel": 7}
    out  {"id": 7, "status": 200, …}; "dropped" if it was cancelled; 422 and "error" if it was refused

The server may kill this process at any moment: its caches are quickly rebuilt.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from messirl.app.lab.catalog import LabScene, catalogue, make_scene, problem_scene
from messirl.app.lab.folders import FIT, PROBLEM, RESULTS, find_folders, open_folder, stamp
from messirl.app.lab.live_fit import (
    LABELS,
    SHOWN_SIMILARITIES,
    Cancelled,
    add_drawn_trajectories,
    check_fit_time,
    fit,
    parameters,
)
from messirl.app.lab.requests import FitRequest, RequestError

KEPT = 6  # maximum number of cached scenes
REMEMBERED = 200  # maximum number of θ for warm starts
Stamp = tuple[tuple[str, int, int], ...]


class Worker:
    """Caches between requests: scenes, results, and θ for warm starts."""

    def __init__(self, folders: list[str]) -> None:
        self._folders = [Path(folder) for folder in folders]
        self.places = find_folders(self._folders, strict=False)
        self._scenes: OrderedDict[tuple[str, int], LabScene] = OrderedDict()
        self._stamps: dict[str, Stamp] = {}  # of folders, when they were read
        self._results: tuple[Path, Stamp, dict[str, Any]] | None = None  # the last one read
        self._warm: OrderedDict[tuple[str, int, str], Any] = OrderedDict()

    def scene(self, key: str, seed: int) -> LabScene:
        """Return a scene, from the cache if possible."""
        if key in self.places:
            seed = 0
        if (key, seed) not in self._scenes:
            self._scenes[key, seed] = self._folder(key) if ":" in key else make_scene(key, seed)
        self._scenes.move_to_end((key, seed))
        while len(self._scenes) > KEPT:
            self._scenes.popitem(last=False)
        return self._scenes[key, seed]

    def _folder(self, key: str) -> LabScene:
        from messirl.io.folder.reader import read_problem

        path = open_folder(self.places, key, PROBLEM)
        self._stamps[key] = stamp(path)
        try:
            problem = read_problem(path)
        except ValueError as error:
            raise RequestError(str(error)) from error
        made = ["from messirl import read_problem", "", f"problem = read_problem({str(path)!r})"]
        return problem_scene(
            key, self.places[key].title, f"The problem folder {self.places[key].title}.", problem, made
        )

    def _forget_changed(self, key: str) -> None:
        """Drop a cached folder that has changed; pages that show it keep their copy."""
        held = (key, 0) in self._scenes and key in self.places
        if held and stamp(open_folder(self.places, key, PROBLEM)) != self._stamps[key]:
            del self._scenes[key, 0]

    def answer(self, message: dict[str, Any], cancelled: Callable[[], bool]) -> dict[str, Any]:
        """Return the answer to one request, as plain data."""
        what = message["what"]
        if what == "catalogue":
            return self.catalogue()
        if what == "scene":
            from messirl.app.lab.json_views import scene_view

            self._forget_changed(message["key"])
            return scene_view(self.scene(message["key"], 0))
        if what == "results":
            from messirl.app.lab.reproduction_view import results_view

            folder = open_folder(self.places, message["key"], RESULTS)
            now = stamp(folder)
            if self._results is None or self._results[:2] != (folder, now):
                self._results = folder, now, results_view(folder)
            return self._results[2]
        if what == "fitted":
            from messirl.app.lab.saved_fit_view import saved_fit

            return saved_fit(open_folder(self.places, message["key"], FIT), self.places)
        fields = message["ask"]
        return self.fit(FitRequest(**fields | {"drawn": tuple(map(tuple, fields["drawn"]))}), cancelled)

    def catalogue(self) -> dict[str, Any]:
        """Return the available scenes, folders, methods and similarities, with new folders included."""
        self.places = find_folders(self._folders, strict=False)

        def of(kind: str) -> dict[str, str]:
            return {place.key: place.title for place in self.places.values() if place.kind == kind}

        return {
            "scenes": catalogue(of(PROBLEM)),
            "results": of(RESULTS),
            "fits": of(FIT),
            "methods": LABELS,
            "similarities": {key: label for key, (label, _) in SHOWN_SIMILARITIES.items()},
        }

    def fit(self, ask: FitRequest, cancelled: Callable[[], bool]) -> dict[str, Any]:
        """Fit one or two methods; return everything that the page draws."""
        from messirl.app.lab.json_views import fit_view, sets_view
        from messirl.app.lab.python_snippet import make_snippet

        begin = perf_counter()
        scene = self.scene(ask.scene, ask.seed)
        picked = add_drawn_trajectories(scene.mdp, scene.pick(ask), ask.drawn)
        check_fit_time(scene.mdp, ask, picked)
        models = []
        for name in [ask.method, *([ask.second] if ask.second else [])]:
            key = (ask.scene, ask.seed, name)
            before = self._warm.get(key)
            fits_here = before is not None and before.size == scene.mdp.n_features
            model, said = fit(name, ask, scene, picked, before if fits_here else None, cancelled)
            self._warm[key] = model.theta_
            models.append(fit_view(scene, picked, model, name, LABELS[name], said))
            if not ask.rough:
                models[-1]["code"] = make_snippet(ask, scene, picked, name)
        while len(self._warm) > REMEMBERED:
            self._warm.popitem(last=False)
        shown = {} if ask.have == ask.sets else sets_view(scene, picked, parameters(ask)["similarity"])
        took = round(1000 * (perf_counter() - begin))
        return {"models": models, "rough": ask.rough, "sets": ask.sets, "ms": took, **shown}


def main() -> None:
    """Answer requests from standard input, one after the other, until its end."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    sys.stdout = sys.stderr  # output of other packages must not look like an answer
    todo: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    dropped: set[int] = set()

    def listen() -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "cancel" in message:
                dropped.add(message["cancel"])
            else:
                todo.put(message)
        os._exit(0)  # the server has ended

    threading.Thread(target=listen, daemon=True).start()
    worker = Worker(todo.get()["folders"])
    while True:
        message = todo.get()
        number = message["id"]
        try:
            line = _line(number, 200, worker.answer(message, partial(dropped.__contains__, number)))
        except Cancelled:
            line = _line(number, 200, {"dropped": True})
        except RequestError as error:
            line = _line(number, 422, {"error": str(error)})
        except Exception as error:  # the page shows the error and goes on
            line = _line(number, 500, {"error": f"internal error, {type(error).__name__}: {error}"})
        dropped.discard(number)
        out.write(line)
        out.flush()


def _line(number: int, status: int, answer: dict[str, Any]) -> str:
    return json.dumps({"id": number, "status": status, **answer}, allow_nan=False, separators=(",", ":")) + "\n"


if __name__ == "__main__":
    main()
