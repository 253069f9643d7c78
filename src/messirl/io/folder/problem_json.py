"""Settings in problem.json: discount, and optionally horizon, number of actions, names, and direction of y."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from messirl._checks import is_number, is_whole
from messirl._memory_guard import JSON
from messirl._npz import parse_json
from messirl._text import closest_word
from messirl.data.errors import InputError
from messirl.data.mdp import NAMES

SETTINGS = "problem.json"
KNOWN = ("discount", "horizon", "n_actions", *NAMES, "y_axis")
SYNONYMS = {"gamma": "discount", "γ": "discount", "discount_factor": "discount"}
LARGEST = 50_000_000  # maximum of states times actions, limited by memory


@dataclass(frozen=True)
class Settings:
    """Content of problem.json; `names` holds only the keys that are present."""

    discount: Any
    horizon: Any = None
    n_actions: int | None = None
    names: dict[str, list[str] | None] = field(default_factory=dict)
    where: str = SETTINGS
    unknown: tuple[str, ...] = ()  # keys that messirl does not know
    y_down: bool = False

    def named(self, key: str, own: Sequence[str] | None) -> Sequence[str] | None:
        """Return the names under `key`, else `own`; raise InputError if a name belongs to another column or label."""
        given = self.names.get(key, own)
        places = {name: i for i, name in enumerate(own or ())}
        if key == "feature_names":  # "x" means the column f_x
            places = {name[2:]: i for name, i in places.items()} | places
        for i, name in enumerate(given or ()):
            if places.get(name, i) != i:
                what = f"{key} has {name!r} in place {i + 1}, which is number {places[name] + 1} in the tables"
                raise InputError(self.where, what, "give the names in the order of the tables, or drop them")
        return given


def read_settings(path: Path) -> Settings:
    """Read the settings in problem.json; nothing is guessed.

    A key that resembles a known one is an error, since its value would be ignored; any other unknown key is allowed.
    """

    def refuse(what: str, remedy: str) -> InputError:
        return InputError(SETTINGS, what, remedy)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        if len(set(keys)) < len(keys):
            raise ValueError("a key occurs twice")
        return dict(pairs)

    if path.is_file() and path.stat().st_size > JSON:
        raise refuse("is too large", "give the names of states in states.csv")
    try:
        content = parse_json(path.read_bytes().decode("utf-8-sig"), object_pairs_hook=unique)
    except FileNotFoundError:
        raise refuse("does not exist", 'write {"discount": 0.95}, with your discount') from None
    except (OSError, ValueError, RecursionError) as error:
        raise refuse(f"is not JSON ({' '.join(str(error).split())[:200]})", "correct the file") from None
    if not isinstance(content, dict):
        raise refuse("is not an object", 'write {"discount": 0.95}, with your discount')
    for key in content:
        close = None if key in KNOWN else closest_word(key, KNOWN, SYNONYMS)
        if close is not None:
            raise refuse(f"{_short(key)} is not a known key", f"did you mean {close!r}? Rename it, or delete it")
    if "discount" not in content:
        raise refuse("has no discount", 'add "discount", a number in (0, 1]')
    names: dict[str, list[str] | None] = {key: content[key] for key in NAMES if key in content}
    for key, value in names.items():
        if value is not None and not (isinstance(value, list) and all(isinstance(name, str) for name in value)):
            raise refuse(f"{key} is not a list of text", "give a list of names, or null for none")
        if value is not None and len(set(value)) < len(value):
            raise refuse(f"{key} contains a name twice", "use distinct names")
        if value is not None and any("\ud800" <= sign <= "\udfff" for name in value for sign in name):
            raise refuse(f"{key} contains an unpaired surrogate (half a character)", "write the names in UTF-8")
    discount, horizon, n_actions = content["discount"], content.get("horizon"), content.get("n_actions")
    if not is_number(discount) or not 0 < discount <= 1:
        raise refuse(f"discount is {_short(discount)}", "give a number in (0, 1]")
    for key, value in (("horizon", horizon), ("n_actions", n_actions)):
        if value is not None and (not is_whole(value) or value < 1):
            raise refuse(f"{key} is {_short(value)}", "give a whole number of at least 1, or null")
    if n_actions is not None and n_actions > LARGEST:
        raise refuse(f"n_actions is {_short(n_actions)}", f"it must be at most {LARGEST}")
    y_axis = content.get("y_axis")
    if y_axis not in (None, "up", "down"):
        raise refuse(f"y_axis is {_short(y_axis)}", 'give "up", or "down" if y grows downwards as in images')
    unknown = tuple(str(key) for key in content if key not in KNOWN)
    return Settings(float(discount), horizon, n_actions, names, unknown=unknown, y_down=y_axis == "down")


def _short(value: object) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 60 else f"{shown[:60]}…"
