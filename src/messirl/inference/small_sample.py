r"""Small-sample corrections of the sandwich: the CR2 covariance, and degrees of freedom by Bell and McCaffrey.

The plain sandwich H⁻¹ (Σ_c g_c g_cᵀ) H⁻¹ is too small with few clusters, because θ̂ follows every cluster's own score
g_c. Under the working model, in which θ is right and choices are independent, with W_c the expected information of the
choices of cluster c and W = Σ_c W_c (with a penalty W + Q),

    Cov g_c = W_c − W_c W⁻¹ W_c,

so that A_c = (I − W_c W⁻¹)^(−1/2) makes E Σ_c (A_c g_c)(A_c g_c)ᵀ = W. In units Z, with Z Zᵀ = W⁻¹ and T_c = Zᵀ W_c Z,

    CR2     Cov θ = K (Σ_c a_c a_cᵀ) Kᵀ,     a_c = (I − T_c)^(−1/2) Zᵀ g_c,     K = H⁻¹ W Z.

The variance of weight j is a sum of squares of v_jᵀ a_c, v_j the j-th row of K. Under the working model these have the
covariance P_cc' = v_jᵀ (I − T_c)^(−1/2) (δ_cc' T_c − T_c T_c') (I − T_c')^(−1/2) v_j, and Student's t has

    ν_j = (tr P)² / tr P²

degrees of freedom (Satterthwaite). With n clusters of equal information ν = n − 1 and CR2 is n/(n − 1) times the plain
sandwich; clusters of unequal size leave fewer.

References: Bell and McCaffrey, Survey Methodology 28 (2002); Pustejovsky and Tipton, Journal of Business & Economic
Statistics 36 (2018).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from messirl._types import Floats

LEAST = 1e-4  # lower bound of 1 − τ: a cluster that determines a direction by itself leaves no residual there
NOTHING = 1e-9  # of tr P, relative to its terms: below it, one cluster determines the weight


def bias_reduced(scores: Floats, shares: Iterable[Floats], ways: Floats) -> tuple[Floats, Floats]:
    """Return the middle Σ_c a_c a_cᵀ (k, k) of the CR2 covariance, and ν of every weight, (d,).

    scores : (C, k) the score of every cluster in units Z, Zᵀ g_c
    shares : T_c of every cluster, (k, k) each, in the same order
    ways : (k, d) the columns v_j

    ν is NaN for a weight that one cluster determines by itself.
    """
    k, d = ways.shape
    middle, spread = np.zeros((k, k)), np.zeros((d, k, k))
    trace, squares, terms = np.zeros(d), np.zeros(d), np.zeros(d)
    for score, share in zip(scores, shares, strict=True):
        tau, basis = np.linalg.eigh(share)
        tau = np.clip(tau, 0.0, 1.0)
        stretch = 1.0 / np.sqrt(np.maximum(1.0 - tau, LEAST))
        adjusted = basis @ (stretch * (basis.T @ score))
        middle += np.outer(adjusted, adjusted)
        turned = basis.T @ ways
        own = (tau * stretch**2) @ turned**2  # v' (I − T)^(−½) T (I − T)^(−½) v
        drawn = basis @ ((tau * stretch)[:, None] * turned)  # T (I − T)^(−½) v
        length = (drawn**2).sum(axis=0)
        trace, terms = trace + own - length, terms + own
        squares += own**2 - 2.0 * own * length
        spread += np.einsum("ij,kj->jik", drawn, drawn)
    squares += (spread**2).sum(axis=(1, 2))
    known = trace > NOTHING * terms
    return middle, np.where(known, np.maximum(trace**2 / np.where(known, squares, 1.0), 1.0), np.nan)


def bias_reduced_by_size(scores: Floats, sizes: Floats, ways: Floats) -> tuple[Floats, Floats]:
    """Return the same where cluster c has the share h_c of the information, T_c = h_c I.

    sizes : (C,) the h_c, which sum to 1 or less
    """
    rest = np.maximum(1.0 - sizes, LEAST)
    adjusted = scores / np.sqrt(rest)[:, None]
    own, drawn = sizes / rest, sizes**2 / rest
    squares = (own**2 - 2.0 * own * drawn).sum() + drawn.sum() ** 2
    return adjusted.T @ adjusted, np.full(ways.shape[1], max((own - drawn).sum() ** 2 / squares, 1.0))
