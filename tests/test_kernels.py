"""exp and log as the compiled loops have them, against NumPy's."""

from __future__ import annotations

import numpy as np
from seeds import generator

from messirl._compiled import jit
from messirl.planning.kernels.bellman import TINY, _exp, _log

NEAR = 4 * np.finfo(float).eps


@jit
def exponentials(x, out):
    for i in range(x.shape[0]):
        out[i] = _exp(x[i])


@jit
def logarithms(x, out):
    for i in range(x.shape[0]):
        out[i] = _log(x[i])


def test_a_loop_runs_where_what_is_compiled_cannot_be_kept():
    names = {}
    exec("def double(x):\n    return 2 * x", names)  # of no file, so that Numba has no place for its cache
    assert jit(names["double"])(21) == 42


def found(loop, x):
    out = np.empty_like(x)
    loop(x, out)
    return out


def test_exp_is_right_to_rounding_wherever_it_is_a_normal_number():
    random = generator(0)
    x = np.concatenate([random.uniform(-708.0, 0.0, 20_000), -(10.0 ** random.uniform(-20.0, 1.0, 20_000)), [0.0]])
    np.testing.assert_allclose(found(exponentials, x), np.exp(x), rtol=NEAR, atol=0.0)


def test_exp_of_what_is_too_small_is_zero_and_of_no_number_is_none():
    got = found(exponentials, np.array([TINY, 2.0 * TINY, -1e300, -np.inf, np.nan]))
    assert not got[:4].any()
    assert np.isnan(got[4])


def test_log_is_right_to_rounding():
    random = generator(1)
    around = 10.0 ** random.uniform(-16.0, -0.4, 20_000)
    x = np.concatenate([np.exp(random.uniform(-700.0, 700.0, 20_000)), 1.0 + around, 1.0 - around])
    np.testing.assert_allclose(found(logarithms, x), np.log(x), rtol=NEAR, atol=0.0)
