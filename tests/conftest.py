"""What several files of tests ask for, and what the tests run with."""

from __future__ import annotations

import platform
import signal
from contextlib import nullcontext
from functools import partial
from importlib import metadata

import hypothesis
import numba
import numpy as np
import pytest
import threadpoolctl
import tiers
from pages import sketched
from seeds import SHIFT

from messirl.app import cli
from messirl.app.report.common import images
from messirl.selection import diagnostics

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell: Ctrl-C is heard all the same
    signal.signal(signal.SIGINT, signal.default_int_handler)

images.PNG_DPI = 50  # coarse pictures take half the time, and no test looks at their dots

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "pyarrow", "matplotlib", "pandas")


def pytest_report_header():
    """Versions and instruction sets: the last digits of a number may differ with any of them."""
    core = np._core._multiarray_umath
    sets = [name for name in (*core.__cpu_baseline__, *core.__cpu_dispatch__) if core.__cpu_features__.get(name)]
    blas = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
    kernels = sorted({f"{pool.get('architecture')} with {pool['num_threads']} threads" for pool in blas})
    return [
        ", ".join([f"Python {platform.python_version()}", *(f"{name} {metadata.version(name)}" for name in PACKAGES)]),
        f"NumPy uses {' '.join(sets)}; Numba compiles for {numba.config.CPU_NAME or 'this processor'}; "
        f"BLAS uses kernels for {', '.join(kernels)}",
        f"random problems of MESSIRL_TEST_SEED={SHIFT}",
    ]


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items):
    """Tests get the mark of their tier; generated examples move with the seeds of the random problems."""
    tiers.mark(items)
    for item in items:
        if SHIFT and getattr(item.obj, "is_hypothesis_test", False):
            hypothesis.seed(SHIFT)(item.obj)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Figures are made, but drawn only for tests marked `drawn` or `slow`: drawing is most of the work of a page."""
    with nullcontext() if any(item.iter_markers("drawn")) or any(item.iter_markers("slow")) else sketched():
        return (yield)


@pytest.fixture
def few_strengths(monkeypatch):
    """Diagnoses try two strengths of each penalty: all of them only where the claim is about which is best."""
    monkeypatch.setattr(diagnostics, "MESSICV", partial(diagnostics.MESSICV, lambdas=(0.1, 1.0)))


@pytest.fixture
def run(capsys):
    """A command in this process: its standard output; it must succeed."""

    def command(*words):
        code = cli.main([str(word) for word in words])
        written = capsys.readouterr()
        assert code == 0, written.err
        return written.out

    return command
