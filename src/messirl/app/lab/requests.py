"""Validation of requests: every field must be known, of its type and within bounds."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass, fields
from typing import Any

PAGE = re.compile(r"[0-9a-z]{1,32}")
DRAWN, STEPS = 20, 500  # maximum numbers of drawn trajectories and of their states
NUMBERS = {  # minimum and maximum
    "lambda0": (0.0, 1e4),
    "sigma": (1e-3, 1e5),
    "nu": (0.0, 1.0),
    "theta_max": (1e-2, 1e4),
    "weight": (0.0, 1.0),
}
WHOLE = {"seed": (0, 9999), "u": (0, 100), "experts": (0, 50)}
WORDS = {
    "scene": 120,
    "mixture": 200,
    "expert": 200,
    "similarity": 20,
    "method": 30,
    "second": 30,
    "objective": 10,
    "have": 16,
}


class RequestError(ValueError):
    """A request was refused; the message gives the reason."""


@dataclass(frozen=True)
class FitRequest:
    """State of the page in a request for a fit.

    scene : key of the problem; page : id of the page; rough : whether the slider still moves
    expert, mixture : expert and unlabelled trajectories: a filter, or the mixture μ1, μ2, μ3 of a domain
    drawn : states of hand-drawn expert trajectories
    have : `sets` of the trajectories that the page has already, which are not sent again
    """

    scene: str
    page: str = "0"
    seed: int = 0
    expert: str = ""
    experts: int = 1
    mixture: str = ""
    u: int = 20
    nu: float = 0.5
    lambda0: float = 0.05
    sigma: float = 1.0
    similarity: str = "rbf"
    theta_max: float = 500.0
    weight: float = 0.0
    objective: str = "choices"
    method: str = "MESSI"
    second: str = ""
    drawn: tuple[tuple[int, ...], ...] = ()
    rough: bool = False
    have: str = ""

    @property
    def sets(self) -> str:
        """Hash of everything that determines the trajectories and their similarities."""
        parts = (self.scene, self.seed, self.expert, self.experts, self.mixture, self.u, self.nu, self.drawn)
        return hashlib.sha256(repr((*parts, self.similarity, self.sigma)).encode()).hexdigest()[:16]


def parse_fit_request(body: bytes) -> FitRequest:
    """Parse and validate a request in JSON; raise `RequestError` if anything in it is invalid."""
    try:
        found = json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise RequestError("the request is not valid JSON") from None
    if not isinstance(found, dict):
        raise RequestError("the request must be a JSON object")
    unknown = sorted(set(found) - {field.name for field in fields(FitRequest)})
    if unknown:
        raise RequestError(f"the request has an unknown field {unknown[0][:40]!r}")
    if "scene" not in found:
        raise RequestError("the request has no field scene")
    return FitRequest(**{name: _checked(name, value) for name, value in found.items()})


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _checked(name: str, value: Any) -> Any:
    if name in NUMBERS:
        return _number(name, value)
    if name in WHOLE:
        least, most = WHOLE[name]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise RequestError(f"{name} must be a whole number from {least} to {most}")
        return value
    if name in WORDS:
        if not isinstance(value, str) or len(value) > WORDS[name] or not value.isprintable():
            raise RequestError(f"{name} must be a printable text of at most {WORDS[name]} characters")
        return value
    if name == "page":
        if not isinstance(value, str) or not PAGE.fullmatch(value):
            raise RequestError("page must be 1 to 32 digits or lower-case letters")
        return value
    if name == "rough":
        if not isinstance(value, bool):
            raise RequestError("rough must be true or false")
        return value
    return _drawn(value)


def _number(name: str, value: Any) -> float:
    least, most = NUMBERS[name]
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not (abs(value) < 1e9 and math.isfinite(value) and least <= value <= most):
        raise RequestError(f"{name} must be a number from {least:g} to {most:g}")
    return float(value)


def _drawn(value: Any) -> tuple[tuple[int, ...], ...]:
    if not isinstance(value, list) or len(value) > DRAWN:
        raise RequestError(f"at most {DRAWN} trajectories can be drawn")
    for row in value:
        if not isinstance(row, list) or not 2 <= len(row) <= STEPS:
            raise RequestError(f"a drawn trajectory has 2 to {STEPS} states")
        if not all(isinstance(s, int) and not isinstance(s, bool) and 0 <= s < 10**6 for s in row):
            raise RequestError("a drawn trajectory is a list of states, numbered from 0")
    return tuple(tuple(row) for row in value)
