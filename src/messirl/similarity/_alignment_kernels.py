"""Compiled dynamic programs for distances between pairs of sequences.

Sequences are concatenated: sequence i has the entries offsets[i] … offsets[i+1]−1. Distances are divided by the length
of the longer one, and are symmetric to the last bit. Where rows and columns are the same (`mirrored`) half of them are
computed.
"""

from __future__ import annotations

import math

import numpy as np

from messirl._compiled import jit


@jit
def edit_distances(states, offsets, rows, columns, mirrored):
    """Return the Levenshtein distance of each of `rows` from each of `columns`, (m, k), over the longer length.

    D(i, j) = min(D(i−1, j) + 1, D(i, j−1) + 1, D(i−1, j−1) + [x_i ≠ y_j])
    """
    out = np.empty((rows.size, columns.size))
    line = np.empty(np.max(np.diff(offsets)) + 1, dtype=np.int64)
    for r in range(rows.size):
        x = states[offsets[rows[r]] : offsets[rows[r] + 1]]
        for c in range(r if mirrored else 0, columns.size):
            y = states[offsets[columns[c]] : offsets[columns[c] + 1]]
            for j in range(y.size + 1):
                line[j] = j
            for i in range(x.size):
                corner = line[0]
                line[0] = i + 1
                for j in range(y.size):
                    above = line[j + 1]
                    kept = corner if x[i] == y[j] else corner + 1
                    line[j + 1] = min(min(above, line[j]) + 1, kept)
                    corner = above
            out[r, c] = line[y.size] / max(x.size, y.size)
            if mirrored:
                out[c, r] = out[r, c]
    return out


@jit
def warped_distances(states, offsets, apart, rows, columns, mirrored):
    """Return the dynamic time warping distance of each of `rows` from each of `columns`, (m, k), per step.

    D(i, j) = apart(x_i, y_j) + min(D(i−1, j), D(i, j−1), D(i−1, j−1)), with the distances (S, S) of states
    """
    out = np.empty((rows.size, columns.size))
    line = np.empty(np.max(np.diff(offsets)) + 1)
    for r in range(rows.size):
        x = states[offsets[rows[r]] : offsets[rows[r] + 1]]
        for c in range(r if mirrored else 0, columns.size):
            y = states[offsets[columns[c]] : offsets[columns[c] + 1]]
            line[0] = 0.0
            for j in range(y.size):
                line[j + 1] = math.inf
            for i in range(x.size):
                corner = line[0]
                line[0] = math.inf
                for j in range(y.size):
                    above = line[j + 1]
                    line[j + 1] = apart[x[i], y[j]] + min(above, line[j], corner)
                    corner = above
            out[r, c] = line[y.size] / max(x.size, y.size)
            if mirrored:
                out[c, r] = out[r, c]
    return out
