"""Corrections of a family of p-values.

NaN is a test that could not be made: it stays outside the family and comes back NaN.
"""

from dataclasses import dataclass

import numpy as np

# our name -> statsmodels' name
METHODS = {
    "holm": "holm",
    "bh": "fdr_bh",
    "bonferroni": "bonferroni",
    "by": "fdr_by",
    "hochberg": "simes-hochberg",
    "hommel": "hommel",
    "sidak": "sidak",
    "holm-sidak": "holm-sidak",
}


@dataclass(frozen=True)
class AdjustedPvalues:
    """pvalues [m]: corrected, in the order given, NaN where the test was NaN; family_size without those."""

    pvalues: np.ndarray
    method: str
    family_size: int


def adjust(pvalues, method: str = "holm") -> AdjustedPvalues:
    """Corrected p-values of one family, pvalues [m] in [0, 1] or NaN.

    Methods: holm (1979), bonferroni, sidak, holm-sidak, hochberg (1988), hommel (1988) bound the chance of
    any false claim; bh (Benjamini and Hochberg 1995) and by (2001) the expected share of false claims.
    """
    p = np.asarray(pvalues, float)
    if method not in METHODS:
        raise ValueError(f"unknown correction {method!r}: one of {', '.join(METHODS)}")
    if p.ndim != 1 or np.any((p < 0) | (p > 1)):
        raise ValueError(f"p-values must be a list of numbers in [0, 1] or NaN, got {pvalues!r}")
    inside = ~np.isnan(p)
    adjusted = np.full(p.shape, np.nan)
    if inside.any():
        from statsmodels.stats.multitest import multipletests  # slow to import, wanted by comparisons only

        with np.errstate(divide="ignore"):  # sidak takes log(1 - p), and p = 1 is allowed
            adjusted[inside] = np.minimum(multipletests(p[inside], method=METHODS[method])[1], 1.0)
    return AdjustedPvalues(adjusted, method, int(inside.sum()))


def holm(pvalues) -> np.ndarray:
    """Holm's corrected p-values: bounds the chance of any false claim in the family."""
    return adjust(pvalues, "holm").pvalues


def bh(pvalues) -> np.ndarray:
    """Benjamini-Hochberg corrected p-values: bounds the expected share of false claims."""
    return adjust(pvalues, "bh").pvalues


def bonferroni(pvalues) -> np.ndarray:
    """Bonferroni's corrected p-values, min(1, m p)."""
    return adjust(pvalues, "bonferroni").pvalues
