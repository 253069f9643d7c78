"""Validation of arguments: parameters of estimators, numbers within limits, whole numbers, flags and arrays.

True and False are no numbers.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from messirl._parameters import Parameter, parameter


def is_whole(value: Any) -> TypeGuard[int]:
    """Return whether a value is a whole number, of Python or NumPy."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value is a number, of Python or NumPy."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_flag(name: str, value: Any) -> bool:
    """Return the value as True or False, or raise a TypeError that names the argument: strings are not accepted."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}={value!r}: it must be True or False")
    return bool(value)


def check_integer(name: str, value: Any, least: int = 1) -> int:
    """Return the value as a whole number >= `least`, or raise a ValueError that names the argument."""
    if not is_whole(value) or value < least:
        raise ValueError(f"{name}={value!r}: it must be a whole number >= {least}")
    return int(value)


def check_number(name: str, value: Any, *, above: float | None = None, least: float | None = None) -> float:
    """Return the value as a finite number within its limits, or raise an error that names the argument and limits."""
    if not is_number(value):
        raise TypeError(f"{name}={value!r}: it must be a number")
    x = float(value)
    if not math.isfinite(x) or (above is not None and x <= above) or (least is not None and x < least):
        limit = f"> {above:g}" if above is not None else f">= {least:g}"
        raise ValueError(f"{name}={value}: it must be finite and {limit}")
    return x


def check_fraction(name: str, value: Any) -> float:
    """Return the value as a number strictly between 0 and 1; raise an error that names the argument otherwise."""
    if not is_number(value) or not 0.0 < value < 1.0:
        shown = f"{value:g}" if is_number(value) else repr(value)
        raise ValueError(f"{name}={shown}: it must be between 0 and 1, for example 0.95")
    return float(value)


def check_parameters(estimator: Any) -> None:
    """Raise an error that names the first parameter of an estimator that is outside its range in the table."""
    owners = [kind.__name__ for kind in type(estimator).__mro__]
    for name, value in estimator.get_params(deep=False).items():
        entry = parameter(name, owners)
        if entry is not None:
            check_parameter(entry, value)


def check_parameter(entry: Parameter, value: Any) -> None:
    """Raise an error that names a parameter and its range, unless the value is in it."""
    if (value is None and entry.optional) or (entry.objects and not isinstance(value, str)):
        return
    if entry.kind == "flag":
        check_flag(entry.name, value)
    elif entry.kind == "choice":
        if value not in entry.choices:
            allowed = [*map(repr, entry.choices), *["an array"] * entry.objects, *["None"] * entry.optional]
            raise ValueError(f"{entry.name}={value!r}: choose {' or '.join(allowed)}")
    elif entry.kind == "whole":
        check_integer(entry.name, value, int(entry.least or 0))
    elif not (isinstance(value, str) and value in entry.choices):
        if not is_number(value):
            raise TypeError(f"{entry.name}={value!r}: it must be a number")
        if not (math.isfinite(value) and entry.includes(value)):
            raise ValueError(f"{entry.name}={value}: it must be finite and {entry.range}")


def check_numeric_array(name: str, value: Any) -> npt.NDArray[np.float64]:
    """Return the value as an array of floats, or raise an error that names the argument."""
    try:
        raw = np.asarray(value)
    except ValueError:  # lists of different lengths
        raise ValueError(f"{name} must be an array of numbers with rows of equal length") from None
    if np.ma.is_masked(value):
        raise ValueError(f"{name} holds masked values: fill them in")
    if raw.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numbers, not {raw.dtype}")
    return raw.astype(np.float64)
