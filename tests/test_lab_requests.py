"""What a page may ask for: known fields, of their kinds, within bounds."""

from __future__ import annotations

import json

import pytest

from messirl.app.lab.requests import FitRequest, RequestError, parse_fit_request

GOOD = {"scene": "pit", "u": 5, "nu": 0.25, "drawn": [[0, 1, 2]], "rough": True}


def test_a_good_request_is_understood():
    assert parse_fit_request(json.dumps(GOOD).encode()) == FitRequest(
        "pit", u=5, nu=0.25, drawn=((0, 1, 2),), rough=True
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"path": "/etc/passwd"}, "unknown field 'path'"),
        ({"scene": 3}, "scene must be a printable text"),
        ({"scene": "x" * 10**5}, "at most 120"),
        ({"expert": "a\nb"}, "expert must be a printable text"),
        ({"lambda0": 1e300}, "lambda0 must be a number from 0 to 10000"),
        ({"lambda0": -1}, "lambda0 must be"),
        ({"lambda0": True}, "lambda0 must be"),
        ({"lambda0": 10**400}, "lambda0 must be"),
        ({"sigma": 0}, "sigma must be"),
        ({"u": 10**9}, "u must be a whole number from 0 to 100"),
        ({"u": 1.5}, "u must be a whole number"),
        ({"seed": -1}, "seed must be"),
        ({"page": "../x"}, "page must be"),
        ({"rough": 1}, "rough must be"),
        ({"drawn": [[0, 1]] * 21}, "at most 20 trajectories"),
        ({"drawn": [[0]]}, "2 to 500 states"),
        ({"drawn": [[0] * 501]}, "2 to 500 states"),
        ({"drawn": [[0, 10**12]]}, "numbered from 0"),
        ({"drawn": [[0, "1"]]}, "numbered from 0"),
        ({"drawn": {"0": 1}}, "at most 20"),
    ],
)
def test_anything_else_is_refused_with_the_reason(change, why):
    with pytest.raises(RequestError, match=why):
        parse_fit_request(json.dumps(GOOD | change).encode())


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"[" * 10**5, b'{"scene": "pit", "nu": NaN}', b'{"u": 1}'])
def test_what_is_no_request_is_refused(body):
    with pytest.raises(RequestError, match="request"):
        parse_fit_request(body)
