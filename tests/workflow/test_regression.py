"""Every metric of the small study stays within committed ranges.

The ranges come from 30 other seeds: their mean +- 6 standard errors of a mean over the study's 3 seeds. So
they hold on any CPU, whose bits may differ, and still catch an environment, an algorithm or a metric that
changed. To make them anew after a change that was meant, run the preset ``ranges`` of small.yaml in a
checkout, then ``python tests/workflow/test_regression.py results/small/scores.parquet``.
"""

import json
import math
import sys
from pathlib import Path

import pandas as pd

RANGES = Path(__file__).parents[1] / "reference/workflow/ranges.json"
SEEDS, ERRORS = 3, 6


def ranges(scores: pd.DataFrame) -> dict[str, list[float]]:
    """Cell -> lowest and highest credible mean over SEEDS seeds; cells without spread allow rounding only."""
    found = {}
    for key, cell in scores[scores.status == "ok"].groupby(["algorithm", "policy_mode", "metric"]):
        if len(cell) == scores.seed.nunique():
            margin = ERRORS * cell.value.std() / math.sqrt(SEEDS) + 1e-9
            found["/".join(key)] = [cell.value.mean() - margin, cell.value.mean() + margin]
    return found


def test_metrics_stay_within_committed_ranges(finished):
    scores = pd.read_parquet(finished.folder / "results/small/scores.parquet")
    means = scores[scores.status == "ok"].groupby(["algorithm", "policy_mode", "metric"])["value"].mean()
    means.index = ["/".join(key) for key in means.index]
    committed = json.loads(RANGES.read_text())
    assert len(committed) > 100
    outside = {
        name: (means.get(name), low, high)
        for name, (low, high) in committed.items()
        if not low <= means.get(name, math.nan) <= high
    }
    assert outside == {}


if __name__ == "__main__":
    RANGES.parent.mkdir(exist_ok=True)
    RANGES.write_text(json.dumps(ranges(pd.read_parquet(sys.argv[1])), indent=1) + "\n")
