"""Soft and hard values, policies, expected visits, sampling and likelihood (paper, Eqs. 3 and 8)."""

from messirl.planning.api import (
    optimal_policy,
    optimal_values,
    soft_policy,
    soft_values,
    state_visitation,
    visits,
)
from messirl.planning.likelihood import log_likelihood
from messirl.planning.planner import Planner, model_for, start_values
from messirl.planning.sampling import sample
from messirl.planning.solution import Expectation, NoFiniteValue, Visits

__all__ = [
    "Expectation",
    "NoFiniteValue",
    "Planner",
    "Visits",
    "log_likelihood",
    "model_for",
    "optimal_policy",
    "optimal_values",
    "sample",
    "soft_policy",
    "soft_values",
    "start_values",
    "state_visitation",
    "visits",
]
