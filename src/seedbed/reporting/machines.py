"""What the runs ran on, and the reproducibility checklist."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from seedbed.reporting.formatting import Markdown, general, markdown, number, one_line, several
from seedbed.reporting.layout import Cell, Row, Table, to_markdown
from seedbed.reporting.trace import Register, Source

PACKAGES = ("torch", "numpy", "scipy", "gymnasium", "statsmodels", "snakemake")
"""Packages that the table names; the run records have all."""


def machines_text(runs: Sequence[Mapping[str, Any]], register: Register) -> Markdown:
    """A table of the distinct machines and software of all training jobs, and the versions of the code."""
    if not runs:
        return Markdown("No run record is there: the runs were imported, or made elsewhere.")
    import pandas as pd

    kinds: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for run in runs:
        kinds.setdefault((_machine(run), _software(run)), []).append(run)
    rows = []
    for index, ((machine, software), same) in enumerate(sorted(kinds.items())):
        run = same[0]
        path = "/".join(run[part] for part in ("study", "environment", "algorithm", "block")) + "/run.json"
        cells = (
            Cell(general(len(same))),
            Cell(machine, sources=(Source(path, {"key": "hardware"}),)),
            Cell(software, sources=(Source(path, {"key": "software"}),)),
        )
        rows.append(Row(str(index + 1), cells))
    table = Table(
        name="machines",
        caption="Machines and software of the training jobs.",
        header=("Jobs", "Machine", "Software"),
        keys=("jobs", "machine", "software"),
        align="rll",
        rows=tuple(rows),
        notes=(),
        values=pd.DataFrame(columns=["jobs", "machine", "software"]),
    )
    return Markdown(to_markdown(table, "provenance", register) + "\n" + markdown(_code(runs)))


def _machine(run: Mapping[str, Any]) -> str:
    facts = run["hardware"]
    memory = facts.get("memory_bytes")
    parts = [
        facts.get("cpu") or "processor unknown",
        f"{facts.get('usable_cores') or facts.get('logical_cores') or 'unknown number of'} cores",
        f"{number(memory / 1e9, 0)} GB memory" if memory else "memory unknown",
        *(f"GPU {gpu['name']}, driver {gpu['driver']}" for gpu in facts.get("gpus") or []),
        "networks trained on the GPU" if (run.get("device") or {}).get("used") == "cuda" else "",
        facts.get("platform") or "",
    ]
    return one_line("; ".join(part for part in parts if part))


def _software(run: Mapping[str, Any]) -> str:
    facts = run["software"]
    versions = facts.get("packages", {})
    parts = [
        f"Python {facts.get('python')}",
        *(f"{name} {versions[name]}" for name in PACKAGES if name in versions),
    ]
    threads = (facts.get("environment_variables") or {}).get("OMP_NUM_THREADS")
    if threads:
        parts.append(several(int(threads), "thread") if threads.isdecimal() else f"{threads} threads")
    return one_line(", ".join(parts))


def _code(runs: Sequence[Mapping[str, Any]]) -> str:
    commits = Counter(run["code"].get("commit") for run in runs)
    words = []
    for commit, count in sorted(commits.items(), key=lambda item: str(item[0])):
        words.append(
            f"{several(count, 'job')} ran at {f'commit {commit}' if commit else 'an unknown version'}"
        )
    dirty = sum(bool(run["code"].get("dirty")) for run in runs)
    state = f"; {dirty} of them with changes that were not committed" if dirty else ""
    return "; ".join(words) + state + "."


def checklist_table(items: Sequence[Mapping[str, Any]]) -> Table:
    """The reproducibility checklist: what is ticked, on which evidence, and what is missing."""
    import pandas as pd

    rows = []
    for index, item in enumerate(items):
        source = (Source("provenance/checklist.json", {"key": f"{index}/evidence"}),)
        said = item["note"] if item["ticked"] else _first(item["missing"], "missing: ")
        files = sorted(item["evidence"].items())
        proof = _first([f"{name} {digest[:12]}" for name, digest in files])
        cells = (Cell(one_line(item["item"])), Cell("yes" if item["ticked"] else "no"))
        rows.append(
            Row(
                one_line(item["item"]),
                (*cells, Cell(one_line(said)), Cell(one_line(proof), sources=source if proof else ())),
            )
        )
    return Table(
        name="checklist",
        caption="Reproducibility checklist. Evidence: files with the beginning of their SHA-256; all in "
        "results/provenance/checklist.json.",
        header=("Item", "Met", "What the evidence says", "Evidence"),
        keys=("item", "met", "note", "evidence"),
        align="llll",
        rows=tuple(rows),
        notes=(),
        values=pd.DataFrame(items),
    )


def _first(parts: Sequence[str], before: str = "") -> str:
    """The first of several, and how many more there are."""
    if not parts:
        return ""
    more = f" and {len(parts) - 1} more" if len(parts) > 1 else ""
    return f"{before}{parts[0]}{more}"
