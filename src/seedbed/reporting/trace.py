"""From a number in the paper back to its runs: the register of what was printed, and the way it came.

A source is a table below ``results/``, the key of one row, and the columns that were read. The way leads from
the printed text over the row of statistics and the scores of each seed to episode tables and policies, with
hashes.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seedbed.artifacts import ArtifactError, read_json, read_table, sha256, write_json
from seedbed.reporting.formatting import Markdown, markdown

_UNSAFE = re.compile(r"[^A-Za-z0-9_./-]+")


@dataclass(frozen=True)
class Source:
    """Where a printed number stands.

    Args:
        table: file below ``results/``.
        row: column -> value, the key of one row; for JSON files, {"key": "path/of/keys"}.
        columns: the columns that were read.
        scores: rows of the study's score table behind it, each as column -> value.
    """

    table: str
    row: Mapping[str, Any]
    columns: tuple[str, ...] = ()
    scores: tuple[Mapping[str, str], ...] = ()

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "table": self.table,
            "row": dict(self.row),
            "columns": list(self.columns),
            "scores": [dict(score) for score in self.scores],
        }


@dataclass
class Register:
    """All numbers of one paper, by trace id."""

    entries: dict[str, dict[str, Any]] = field(default_factory=dict)

    def mark(
        self, identity: str, text: str, sources: tuple[Source, ...], content: str | None = None
    ) -> Markdown:
        """Note a number, and return it as Markdown that carries its id.

        Args:
            identity: what it is, as a path such as ``interview/main/default/ppo/return``.
            text: as printed, plain.
            sources: where it stands; without any there is nothing to trace, and the text comes back bare.
            content: the Markdown of the text, where it has marks of its own.

        Raises:
            ValueError: another text has this id.
        """
        content = markdown(text) if content is None else Markdown(content)
        if not sources:
            return content
        identity = _UNSAFE.sub("-", identity)
        entry = {"text": text, "sources": [source.document() for source in sources]}
        if self.entries.setdefault(identity, entry) != entry:
            raise ValueError(f"Two different numbers have the trace id {identity}.")
        return Markdown(f'[{content}]{{trace="{identity}"}}')

    def write(self, path: str | Path) -> None:
        """Write the register as ``trace.json``."""
        write_json(path, self.entries)


@dataclass(frozen=True)
class Step:
    """One step of the way back: what it is, the file that shows it, its SHA-256, and what it says there."""

    what: str
    file: str
    sha256: str
    values: Mapping[str, Any]

    def __str__(self) -> str:
        values = ", ".join(f"{name} = {value}" for name, value in self.values.items())
        return f"{self.what}: {values}\n    {self.file}\n    sha256 {self.sha256}"


def trace(identity: str, results: str | Path) -> list[Step]:
    """The way from a printed number to the runs behind it.

    Args:
        identity: a trace id, as the HTML page shows it.
        results: the folder ``results``, which holds ``report/trace.json``.

    Raises:
        ArtifactError: no such id (the nearest are named), or a file on the way is missing.
    """
    results = Path(results)
    register = read_json(results / "report/trace.json")
    if identity not in register:
        near = sorted(known for known in register if identity.lower() in known.lower())[:10]
        raise ArtifactError(
            f"The paper has no number with the trace id '{identity}'. "
            + ("Did you mean one of: " + ", ".join(near) if near else "results/report/trace.json lists all.")
        )
    entry = register[identity]
    steps = [
        Step(
            "printed",
            "report/paper.md",
            sha256(results / "report/paper.md"),
            {"id": identity, "text": entry["text"]},
        )
    ]
    for source in entry["sources"]:
        steps.extend(_steps(source, results))
    seen: dict[Step, None] = {}
    for step in steps:
        seen.setdefault(_frozen(step))
    return list(seen)


class _Values(dict):
    """Values of a step; equal content, equal hash, so that a file is named once."""

    def __hash__(self) -> int:
        return hash(tuple((name, str(value)) for name, value in self.items()))


def _frozen(step: Step) -> Step:
    return Step(step.what, step.file, step.sha256, _Values(step.values))


def _steps(source: Mapping[str, Any], results: Path) -> Iterator[Step]:
    table = results / source["table"]
    if not table.is_file():
        raise ArtifactError(f"{table} is missing, so the way back ends there. Run the rule that makes it.")
    if table.suffix == ".json":
        value: Any = read_json(table)
        for part in source["row"]["key"].split("/"):
            value = value[int(part)] if isinstance(value, list) else value[part]
        yield Step("declared", source["table"], sha256(table), {source["row"]["key"]: value})
    else:
        rows = read_table(table)
        for column, wanted in source["row"].items():
            rows = rows[rows[column].astype(str) == str(wanted)]
        if rows.empty:
            raise ArtifactError(f"{table} has no row {source['row']} any more. Make the report again.")
        for _, row in rows.iterrows():
            values = {**source["row"], **{name: row[name] for name in source["columns"]}}
            yield Step("statistic", source["table"], sha256(table), values)
        if table.parent.name == "statistics":
            yield from _trial_steps(source, table.parents[1], results)
        data = table.with_name("behaviour.parquet")
        if table.parent.name == "off_policy" and data.is_file():
            file = data.relative_to(results).as_posix()
            yield Step("behaviour data", file, sha256(data), {"episodes": read_table(data).episode.nunique()})
    for score in source["scores"]:
        yield from _score_steps(source["table"].split("/")[0], score, results)


def _trial_steps(source: Mapping[str, Any], study: Path, results: Path) -> Iterator[Step]:
    """Trials behind a statistic of a generalized study."""
    series = source["table"].endswith("/meta.parquet")
    for name in ("meta/trials.parquet",) if series else ("tuning.parquet", "test.parquet"):
        trials = study / name
        if trials.is_file():
            rows, key = read_table(trials), source["row"]
            if "agent" in key:
                rows = rows[rows.agent == key["agent"]]
            if "label" in key:
                rows = rows[
                    rows.label.isin([key[name] for name in ("label", "origin", "rival") if name in key])
                ]
            file = trials.relative_to(results).as_posix()
            yield Step("trials", file, sha256(trials), {"trials": len(rows)})


def _score_steps(study: str, score: Mapping[str, str], results: Path) -> Iterator[Step]:
    path = results / study / "scores.parquet"
    rows = read_table(path)
    for column, wanted in score.items():
        rows = rows[rows[column].astype(str) == wanted]
    digest = sha256(path)
    for _, row in rows.sort_values("seed").iterrows():
        values = {**score, "seed": row["seed"], "value": row["value"], "status": row["status"]}
        yield Step("score", f"{study}/scores.parquet", digest, values)
        yield from _run_steps(study, score, int(row["seed"]), results)


def _run_steps(study: str, score: Mapping[str, str], seed: int, results: Path) -> Iterator[Step]:
    """Episode table and policy of one seed; none for imported runs, which have only scores."""
    folder = results / study / score["environment"] / score["algorithm"]
    for block in sorted(folder.glob("seed*-*")):
        bounds = [int(part) for part in block.name.split("-")[1:]]
        if not bounds[0] <= seed <= bounds[-1]:
            continue
        episodes = block / "episodes.parquet"
        if episodes.is_file():
            table = read_table(episodes)
            count = int(((table.seed == seed) & (table.policy_mode == score["policy_mode"])).sum())
            values = {"seed": seed, "policy_mode": score["policy_mode"], "episodes": count}
            yield Step("episodes", episodes.relative_to(results).as_posix(), sha256(episodes), values)
        policy = block / "policy.safetensors"
        if policy.is_file():
            yield Step("policy", policy.relative_to(results).as_posix(), sha256(policy), {"seed": seed})
