"""What a study cost: run records -> one table."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_KEYS = {
    "study": "string",
    "environment": "string",
    "algorithm": "string",
    "block": "string",
    "job": "string",
    "phase": "string",
    "seeds": "int64",
}
_SHARED = {"wall_s": "float64", "cpu_s": "float64", "steps": "Int64", "model_calls": "Int64"}
_WHOLE = {"steps_per_s": "float64", "peak_memory_bytes": "Int64", "gpu_peak_memory_bytes": "Int64"}
COST_COLUMNS = _KEYS | _SHARED | _WHOLE | {f"{name}_per_seed": "float64" for name in _SHARED}
"""One row per job and phase; ``seeds`` is their number in the block.

``wall_s``, ``cpu_s``, ``steps``, ``steps_per_s``, ``model_calls`` and the peaks are the whole block's.
Columns ``..._per_seed`` are the block's value divided by its seeds: a share, as seeds of a block run together
and none of them was measured alone. Phases of a job do not overlap, so times may be summed; peaks may not.
"""


def costs(records: Iterable[Mapping[str, Any]]) -> "pd.DataFrame":
    """The cost table, ``COST_COLUMNS``, of documents made by ``run_record``, in their order."""
    import pandas as pd

    rows = []
    for record in records:
        seeds = len(record["seeds"])
        keys = {name: record[name] for name in ("study", "environment", "algorithm", "block", "job")}
        for phase in record["phases"]:
            share = {
                f"{name}_per_seed": None if phase[name] is None else phase[name] / seeds for name in _SHARED
            }
            rows.append(keys | phase | share | {"seeds": seeds})
    return pd.DataFrame(rows, columns=list(COST_COLUMNS)).astype(COST_COLUMNS)
