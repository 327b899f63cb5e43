"""The paper's one source: results of all studies as ``report/paper.md``, with the register of its numbers."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seedbed.artifacts import read_json, write_text
from seedbed.reporting.claims import CORRECTIONS, Claim, claims, in_sentence, key_finding
from seedbed.reporting.figure_list import figures_of
from seedbed.reporting.formatting import Markdown, general, markdown, one_line, plural
from seedbed.reporting.generalized_results import GeneralizedResults
from seedbed.reporting.generalized_section import generalized_context
from seedbed.reporting.layout import Table, to_markdown
from seedbed.reporting.limitations import limitations
from seedbed.reporting.machines import checklist_table, machines_text
from seedbed.reporting.methods import (
    Declared,
    algorithms_table,
    environments_text,
    hyperparameter_tables,
)
from seedbed.reporting.metric_tables import panels
from seedbed.reporting.off_policy_tables import behaviour_title, off_policy_claims
from seedbed.reporting.study_results import StudyResults
from seedbed.reporting.tables import study_tables
from seedbed.reporting.trace import Register
from seedbed.study import PaperSettings


def write_paper(
    paper: PaperSettings,
    studies: Sequence[StudyResults | GeneralizedResults],
    figures: Mapping[str, Sequence[str]],
    templates: str | Path,
    results: str | Path,
    checklist: str | Path | None = None,
) -> None:
    """Write ``report/paper.md`` and ``report/trace.json`` below ``results``.

    Args:
        paper: title and authors.
        studies: what ``read_study_results`` and ``read_generalized_results`` read, in the order of the paper.
        figures: study -> names of its figures, in order, without suffix.
        templates: folder with ``paper.md``, ``methods.md`` and ``captions/``.
        results: the folder ``results``.
        checklist: ``provenance/checklist.json``, where there is one.
    """
    register = Register()
    text = paper_text(paper, studies, figures, templates, checklist, register)
    folder = Path(results) / "report"
    write_text(folder / "paper.md", text)
    register.write(folder / "trace.json")


def paper_text(
    paper: PaperSettings,
    studies: Sequence[StudyResults | GeneralizedResults],
    figures: Mapping[str, Sequence[str]],
    templates: str | Path,
    checklist: str | Path | None,
    register: Register,
) -> str:
    """The paper as Markdown; its numbers enter the register."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(templates)),
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markdown) else Markdown(markdown(str(value))),
        comment_start_string="<!--#",  # "{#" begins an anchor in Markdown
        comment_end_string="#-->",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    sections = []
    for results in studies:
        names = figures.get(results.study.name, ())
        if isinstance(results, GeneralizedResults):
            sections.append(generalized_context(results, register, names, Path(templates)))
        else:
            sections.append(_Section(results, register, names, Path(templates)).context())
    items = read_json(checklist) if checklist and Path(checklist).is_file() else None
    return environment.get_template("paper.md").render(
        title=_quoted(paper.title or "; ".join(results.study.title for results in studies)),
        authors=Markdown("[" + ", ".join(_quoted(name) for name in paper.authors) + "]"),
        abstract=[paragraph for section in sections for paragraph in section["abstract"]],
        everything=sections,
        studies=[section for section in sections if section["kind"] == "training"],
        generalized=[section for section in sections if section["kind"] == "generalized"],
        machines=machines_text([run for results in studies for run in results.runs], register),
        checklist=to_markdown(checklist_table(items), "provenance", register) if items else "",
    )


def _quoted(text: str) -> Markdown:
    """Plain text as a YAML string of Markdown."""
    return Markdown(json.dumps(markdown(text), ensure_ascii=False))


def _episodes(reset_seeds: Sequence[int] | None, words: str) -> str:
    return words + (
        " per seed" if reset_seeds is None else ", whose reset seeds are the same for all training seeds"
    )


class _Section:
    """One study's part of the paper."""

    def __init__(self, results: StudyResults, register: Register, figures: Sequence[str], templates: Path):
        self.results, self.register = results, register
        self.study, self.figures, self.templates = results.study, figures, templates
        self.tables = study_tables(results)
        self.declared = Declared(results, register)

    def context(self) -> dict[str, Any]:
        """Everything that the template says about the study."""
        study, plan, settings = self.study, self.study.statistics, self.results.settings
        return {
            "kind": "training",
            "title": one_line(study.title),
            "question": one_line(study.question),
            "anchor": self._anchor,
            "declared": self.declared,
            "abstract": self._abstract(),
            "environment_methods": self._environment_methods(),
            "algorithms": self._table(algorithms_table(self.results)),
            "single_seed": len(study.seeds) == 1,
            "fewer_seeds": [
                {"title": one_line(study.title_of(label)), "key": f"study/environments/{label}/seeds"}
                for label, entry in study.environments.items()
                if entry.seeds
            ],
            "pilots": bool(study.pilot_seeds),
            "curve_episodes": _episodes(study.evaluation.curve.reset_seeds, "episodes"),
            "test_episodes": _episodes(study.evaluation.test.reset_seeds, "further episodes"),
            "primaries": [self._primary(label) for label in study.environments],
            "secondaries": "; ".join(
                in_sentence(self.results.metrics[name].title) for name in plan.secondary
            ),
            "rates": "; ".join(in_sentence(m.title) for m in self.results.metrics.values() if m.rate),
            "baseline": one_line(study.title_of(plan.baseline)),
            "primary_correction": CORRECTIONS[plan.primary_correction],
            "draws": general(settings.draws),
            "alpha": f"{settings.alpha:g}",
            "confidence": f"{100 * settings.confidence:g}\u00a0%",
            "environments": [self._environment(label) for label in study.environments],
            "figures": figures_of(study.name, self.figures, self.templates / "captions"),
            "limitations": [self._said(claim) for claim in limitations(self.results)],
            "off_policy": self._off_policy() if study.off_policy else None,
            "cost": self._table(self.tables["cost"]),
            "hyperparameters": [self._table(table) for table in hyperparameter_tables(self.results)],
        }

    def _anchor(self, *parts: str) -> Markdown:
        return Markdown("{#" + "-".join((self.study.name, *parts)) + "}")

    def _table(self, table: Table) -> Markdown:
        return to_markdown(table, self.study.name, self.register) if table.rows else Markdown("")

    def _said(self, claim: Claim) -> Markdown:
        return self.register.mark(claim.identity, claim.text, claim.sources)

    def _abstract(self) -> list[Markdown]:
        study, declared = self.study, self.declared
        design = (
            f"{markdown(study.title)}: "
            f"{declared.count('study/algorithms')} {plural(study.algorithms, 'algorithm')} in "
            f"{declared.count('study/environments')} {plural(study.environments, 'environment')}, "
            f"{declared.count('study/seeds')} {plural(study.seeds, 'training seed')} each, "
            f"{declared('study/evaluation/test/episodes')} test episodes per seed."
        )
        findings = [self._said(key_finding(self.results, label)) for label in study.environments]
        return [Markdown(design), *findings]

    def _primary(self, label: str) -> dict[str, str]:
        metric = self.results.metrics[self.study.statistics.primary[label]]
        return {
            "metric": in_sentence(metric.title),
            "title": one_line(self.study.title_of(label)),
            "description": one_line(metric.description),
        }

    def _off_policy(self) -> dict[str, Any]:
        return {
            "environment": one_line(self.study.off_policy.environment.title or "an environment of its own"),
            "behaviour": behaviour_title(self.results),
            "data": self._table(self.tables["off_policy_data"]),
            "estimates": self._table(self.tables["off_policy"]),
            "data_id": Markdown(f"#tbl-{self.study.name}-off_policy_data"),
            "estimates_id": Markdown(f"#tbl-{self.study.name}-off_policy"),
            "claims": [self._said(claim) for claim in off_policy_claims(self.results)],
        }

    def _environment_methods(self) -> list[dict[str, Any]]:
        entries = []
        for entry in environments_text(self.results):
            key = f"environments/{entry['label']}"
            sizes = self.results.resolved["environments"][entry["label"]]
            shape = sizes["observation_shape"]
            observation = Markdown(
                " × ".join(self.declared(f"{key}/observation_shape/{i}") for i in range(len(shape)))
            )
            entries.append(
                {
                    **entry,
                    "name_code": Markdown(entry["name"].replace("`", "")),
                    "observation": observation,
                    "actions": self.declared(f"{key}/actions"),
                    "discrete": isinstance(sizes["actions"], int),
                    "horizon": self.declared(f"{key}/horizon"),
                    "success": one_line(sizes.get("success", "")),
                    "content": [
                        (part.replace("_", " "), Markdown(digest))
                        for part, digest in sorted(sizes.get("content", {}).items())
                    ],
                }
            )
        return entries

    def _environment(self, label: str) -> dict[str, Any]:
        results, tables, name = self.results, self.tables, self.study.name
        secondary = [f"secondary_{label}"]
        secondary += [f"secondary_{label}_{panel + 1}" for panel in range(1, len(panels(self.study, label)))]
        pairs = claims(results, label, "pairs") or claims(results, label, "primary")
        return {
            "title": one_line(self.study.title_of(label)),
            "heading": one_line(self.study.title_of(label)),
            "anchor": self._anchor("results", label),
            "appendix_anchor": self._anchor("comparisons", label),
            "finding": self._said(key_finding(results, label)),
            "main": self._table(tables[f"main_{label}"]),
            "pairs": self._table(tables[f"pairs_{label}"]),
            "pairs_id": Markdown(f"#tbl-{name}-pairs_{label}"),
            "claims": [self._said(claim) for claim in pairs],
            "secondary": Markdown("\n\n".join(self._table(tables[part]) for part in secondary)),
            "efficiency": self._table(tables[f"efficiency_{label}"])
            if f"efficiency_{label}" in tables
            else "",
            "comparisons": self._table(tables[f"comparisons_{label}"]),
            "secondary_claims": [self._said(claim) for claim in claims(results, label, "secondary")],
            "modes": self._table(tables[f"modes_{label}"]),
        }
