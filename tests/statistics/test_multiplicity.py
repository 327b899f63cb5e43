import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seedbed.statistics.multiplicity import METHODS, adjust, bh, bonferroni, holm

REFERENCE = Path(__file__).parents[1] / "reference" / "statistics"
CASES = json.loads((REFERENCE / "multiple_comparisons.json").read_text())["cases"]
few = settings(max_examples=20)  # statsmodels collects garbage on every Holm correction: a tenth of a second
pvalues = st.lists(st.one_of(st.floats(0, 1), st.just(math.nan)), max_size=12)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["name"])
@pytest.mark.parametrize("method", METHODS)
def test_corrections_match_reference(case, method):
    expected = case["expected"][METHODS[method]]
    result = adjust(case["inputs"]["p_values"], method)
    assert result.pvalues == pytest.approx(expected["adjusted"], rel=case["rel_tol"], abs=1e-9)
    assert list(result.pvalues <= case["inputs"]["alpha"]) == expected["reject_at_0_05"]
    assert result.family_size == len(expected["adjusted"])


@few
@given(pvalues)
def test_holm_and_bh_by_their_definitions(p):
    """Written as loops over the sorted p-values of the tests that were made."""
    made = sorted((v, i) for i, v in enumerate(p) if not math.isnan(v))
    m = len(made)
    step_down, step_up = np.full(len(p), math.nan), np.full(len(p), math.nan)
    worst = 0.0
    for rank, (v, i) in enumerate(made):
        worst = max(worst, min(1.0, (m - rank) * v))
        step_down[i] = worst
    best = 1.0
    for rank, (v, i) in reversed(list(enumerate(made))):
        best = min(best, m / (rank + 1) * v)
        step_up[i] = best
    assert holm(p) == pytest.approx(step_down, rel=1e-9, nan_ok=True)
    assert bh(p) == pytest.approx(step_up, rel=1e-9, nan_ok=True)


@pytest.mark.parametrize("method", METHODS)
@few
@given(p=pvalues, data=st.data())
def test_corrected_is_no_smaller_keeps_order_and_forgets_position(method, p, data):
    p = np.array(p, float)
    corrected = adjust(p, method).pvalues
    np.testing.assert_array_equal(np.isnan(corrected), np.isnan(p))
    made = ~np.isnan(p)
    assert np.all(corrected[made] >= p[made] * (1 - 1e-12))
    assert np.all(corrected[made] <= 1)
    assert np.all(np.diff(corrected[made][np.argsort(p[made])]) >= -1e-12)
    order = np.array(data.draw(st.permutations(range(p.size))), int)
    assert adjust(p[order], method).pvalues == pytest.approx(corrected[order], rel=1e-9, nan_ok=True)


def test_nan_is_outside_the_family():
    result = adjust([0.01, math.nan, 0.04], "holm")
    assert result.family_size == 2
    assert result.pvalues == pytest.approx([0.02, math.nan, 0.04], nan_ok=True)
    assert bonferroni([0.01, math.nan])[0] == 0.01
    assert adjust([math.nan], "bh").family_size == 0
    assert adjust([], "holm").pvalues.size == 0


def test_holm_is_never_larger_than_bonferroni_nor_bh_than_holm():
    p = [0.001, 0.02, 0.03, 0.2, 0.04]
    assert np.all(bh(p) <= holm(p))
    assert np.all(holm(p) <= bonferroni(p))


@pytest.mark.parametrize("p", [[1.2], [-0.1], [[0.1, 0.2]]])
def test_what_is_no_p_value_is_refused(p):
    with pytest.raises(ValueError, match="p-values"):
        adjust(p)


def test_unknown_method_is_refused():
    with pytest.raises(ValueError, match="unknown correction"):
        adjust([0.1], "none of these")
