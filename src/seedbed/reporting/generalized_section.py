"""A generalized study's part of the paper: sentences that its tables carry, and what templates fill in."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from seedbed.generalized_study import GRID, Ranges
from seedbed.reporting.claims import Claim
from seedbed.reporting.figure_list import figures_of
from seedbed.reporting.formatting import (
    MINUS,
    Markdown,
    finite,
    general,
    interval,
    listed,
    markdown,
    one_line,
    p_equals,
    plural,
    several,
    signed,
)
from seedbed.reporting.generalized_comparisons import DECIMALS, comparison_source, decisions
from seedbed.reporting.generalized_results import GeneralizedResults
from seedbed.reporting.generalized_tables import MAKERS, generalized_tables
from seedbed.reporting.layout import Cell, Row, Table, to_markdown
from seedbed.reporting.limitations import code_limitations
from seedbed.reporting.methods import Declared, setting
from seedbed.reporting.trace import Register, Source

_CHOICES = {"mean": "the mean's choice", "copeland": "Copeland's choice"}


def generalized_context(
    results: GeneralizedResults, register: Register, figures: Sequence[str], templates: Path
) -> dict[str, Any]:
    """Everything that the templates say about the study; numbers enter the register."""
    study, declared = results.study, Declared(results, register)
    tables = dict.fromkeys(MAKERS, Markdown(""))
    for name, table in generalized_tables(results).items():
        if table.rows:
            tables[name] = to_markdown(table, study.name, register)

    def said(claim: Claim) -> Markdown:
        return register.mark(claim.identity, claim.text, claim.sources)

    found = {label: [said(claim) for claim in pair_claims(results, label)] for label in results.main}
    # The first agent against each other one.
    firsts = [Markdown(" ".join(found[label][: len(results.agents(label)) - 1])) for label in results.main]
    design = (
        f"{markdown(study.title)}: {declared.count('study/algorithms')} {plural(study.algorithms, 'agent')}, "
        f"tuned among up to {general(max(map(study.number, study.environments)))} configurations on "
        f"{declared('study/tuning')} environments and tested on {declared('study/test')} others, in each of "
        f"{several(len(results.main), 'generalized environment')}."
    )
    return {
        "kind": study.kind,
        "title": one_line(study.title),
        "question": one_line(study.question),
        "anchor": lambda *parts: Markdown("{#" + "-".join((study.name, *parts)) + "}"),
        "reference": lambda table: Markdown(f"#tbl-{study.name}-{table}"),
        "declared": declared,
        "abstract": [Markdown(design), *firsts],
        "environments": [_environment(results, label, register) for label in study.environments],
        "agents": to_markdown(_agents_table(results), study.name, register),
        "alpha": f"{results.settings.alpha:g}",
        "confidence": f"{100 * results.settings.confidence:g}\u00a0%",
        "draws": general(results.settings.draws),
        "margin": f"{100 * study.margin:g}\u00a0%",
        "meta": study.meta is not None,
        "findings": [
            {"title": one_line(study.title_of(label)), "claims": found[label]} for label in results.main
        ],
        "single": [said(claim) for label in results.single for claim in pair_claims(results, label)],
        "reversals": [said(claim) for claim in reversals(results)],
        "tables": tables,
        "figures": figures_of(study.name, figures, templates / "captions"),
        "limitations": [said(claim) for claim in generalized_limitations(results)],
        "cost": tables["cost"],
    }


def _environment(results: GeneralizedResults, label: str, register: Register) -> dict[str, Any]:
    """What templates say of one environment label."""
    study = results.study
    entry = study.environments[label]
    indices = f"environments/{label}/configurations"
    limits = [f"{general(entry.most_features)} active features"] if entry.most_features else []
    limits += [f"{general(entry.most_tiles)} tiles"] if entry.most_tiles else []
    return {
        "title": one_line(study.title_of(label)),
        "domains": listed([domain.replace("_", " ") for domain in entry.domains]),
        "variants": listed([f"{d.replace('_', ' ')} '{v}'" for d, v in entry.variants.items()]),
        "single": entry.single,
        "drawn": listed(_other_ranges(entry.sampler)),
        "tuned_in": one_line(study.title_of(entry.tuned_in)) if entry.tuned_in else "",
        "configurations": register.mark(
            f"{study.name}/declared/{label}/configurations",
            general(len(results.resolved["environments"][label]["configurations"])),
            (Source(f"{study.name}/study.json", {"key": indices}),),
        ),
        "limits": listed(limits),
    }


def _other_ranges(ranges: Ranges) -> list[str]:
    """What is drawn from other ranges than the usual ones."""
    usual, told = Ranges(), []
    if ranges.noise_high != usual.noise_high:
        told.append(f"noise in [0, {ranges.noise_high:g}]")
    for name in ("scale", "shift"):
        bounds = [(getattr(each, f"{name}_low"), getattr(each, f"{name}_high")) for each in (ranges, usual)]
        if bounds[0] != bounds[1]:
            low, high = (f"{bound:g}".replace("-", MINUS) for bound in bounds[0])
            told.append(f"{name}s in [{low}, {high}]")
    if ranges.random_start != usual.random_start:
        told.append(f"random starts with odds {ranges.random_start:g}")
    told += [f"{domain.replace('_', ' ')} with weight {odds:g}" for domain, odds in ranges.weights.items()]
    return told


def _agents_table(results: GeneralizedResults) -> Table:
    import pandas as pd

    study, rows = results.study, []
    columns = ("family", "growth", "epsilon", "discount", "trace", "cull")
    for name in study.algorithms:
        label = next(place for place in study.environments if name in study.algorithms_in(place))
        made = results.resolved["algorithms"][label][name]
        key = f"algorithms/{label}/{name}"
        cells = [Cell(one_line(study.title_of(name)))]
        for column in columns:
            source = Source(f"{study.name}/study.json", {"key": f"{key}/{column}"})
            shown = column != "growth" or made["family"].startswith("A")
            text = setting(made[column]).replace("_", " ") if shown else ""
            cells.append(Cell(text, sources=(source,) if shown else ()))
        rows.append(Row(name, tuple(cells)))
    return Table(
        name="agents",
        caption="The agents, in what is not tuned. Growth: how far beyond a new extreme family A's range "
        "grows, in its new widths. Cull: traces below are dropped.",
        header=("Agent", "Family", "Growth", "Epsilon", "Discount", "Traces", "Cull"),
        keys=("agent", *columns),
        align="llrrrlr",
        rows=tuple(rows),
        notes=(),
        values=pd.DataFrame(columns=["agent", *columns]),
    )


def pair_claims(results: GeneralizedResults, label: str) -> list[Claim]:
    """One sentence per pair of agents, chosen by the mean: difference, wins, and what they decide."""
    claims = []
    for x, y in combinations(results.agents(label), 2):
        row = results.comparison(label, x, y)
        identity = f"{results.study.name}/claim/{label}/{row['agent_x']}/{row['agent_y']}"
        text = f"{one_line(results.study.title_of(label))}, {_told(results, row)}"
        claims.append(Claim(identity, text, (comparison_source(results, row),)))
    return claims


def _told(results: GeneralizedResults, row: Mapping[str, Any]) -> str:
    x, y = (one_line(results.study.title_of(row[name])) for name in ("agent_x", "agent_y"))
    noun = "trial" if results.study.environments[row["label"]].single else "environment"
    if row["ties"] == row["n"]:
        return f"{x} and {y}: equal in all {several(int(row['n']), noun)}."
    told = f"{x} against {y}: "
    if finite(row["difference"]):
        told += f"mean difference {signed(row['difference'], DECIMALS)}"
        if finite(row["difference_low"]) and finite(row["difference_high"]):
            told += f" {interval(row['difference_low'], row['difference_high'], DECIMALS)}"
        told += f" ({p_equals(row['p_student'])}, Student's t); " if finite(row["p_student"]) else "; "
    told += f"{x} is higher in {several(int(row['wins']), noun)} and lower in "
    told += f"{general(int(row['losses']))} ({p_equals(row['p_sign'])}, sign test). "
    mean, wins = decisions(results, row)
    names = {"x": x, "y": y}
    if mean and mean == wins:
        return told + f"{names[mean]} is better in both senses."
    if mean and wins:
        return (
            f"{told}The two senses contradict each other: {names[mean]} has the higher expected score, "
            f"{names[wins]} is likelier to win."
        )
    if mean:
        return told + f"{names[mean]} has the higher expected score; who is likelier to win is undecided."
    equal = finite(row["p_equivalence"]) and row["p_equivalence"] <= results.settings.alpha
    share, p = f"{100 * results.study.margin:g}\u00a0%", p_equals(row["p_equivalence"])
    means = f"their means are equal within {share} ({p})"
    if wins:
        more = means if equal else "who has the higher expected score is undecided"
        return told + f"{names[wins]} is likelier to win; {more}."
    if equal:
        return told + f"Neither is shown to be better; {means}."
    return told + f"Neither is shown to be better; that {means} is not shown either."


def reversals(results: GeneralizedResults) -> list[Claim]:
    """One sentence per agent and environment: whether the two methods chose apart, and who is better then."""
    claims, same = [], []
    for label in results.main:
        for agent in results.agents(label):
            row = results.methods(label, agent)
            where = f"{one_line(results.study.title_of(agent))} in {one_line(results.study.title_of(label))}"
            if row["configuration_x"] == row["configuration_y"]:
                same.append((where, comparison_source(results, row)))
                continue
            mean, wins = decisions(results, row)
            sides = {"x": _CHOICES[row["method_x"]], "y": _CHOICES[row["method_y"]]}
            verdict = f"{sides[mean]} has" if mean else "neither choice is shown to have"
            verdict += " the better test mean; "
            verdict += f"{sides[wins]} wins" if wins else "neither is shown to win"
            verdict += (
                f" more often ({general(int(row['wins']))} to {general(int(row['losses']))} trials for "
            )
            verdict += f"{sides['x']})."
            identity = f"{results.study.name}/reversal/{label}/{agent}"
            claims.append(Claim(identity, f"{where}: {verdict}", (comparison_source(results, row),)))
    if same:
        text = f"Both methods chose the same configuration for {listed([where for where, _ in same])}."
        sources = tuple(source for _, source in same)
        claims.append(Claim(f"{results.study.name}/reversal/same", text, sources))
    return claims


def generalized_limitations(results: GeneralizedResults) -> list[Claim]:
    """One sentence per limitation, each with the rows that show it."""
    found = [
        *_samples(results),
        *_diverged(results),
        *_hung(results),
        *_rules(results),
        *code_limitations(results.runs),
    ]
    prefix = f"{results.study.name}/limitation"
    return [Claim(f"{prefix}/{index + 1}", claim.text, claim.sources) for index, claim in enumerate(found)]


def _samples(results: GeneralizedResults) -> Iterator[Claim]:
    study = results.study
    parts: dict[int, list[str]] = {}
    for label in study.environments:
        if study.number(label) < GRID and not study.environments[label].tuned_in:
            parts.setdefault(study.number(label), []).append(one_line(study.title_of(label)))
    for number, titles in parts.items():
        yield Claim(
            "",
            f"In {listed(titles)}, agents were tuned among {general(number)} of the paper's {general(GRID)} "
            "configurations, drawn at random: the best of all of them may differ.",
            (Source(f"{study.name}/study.json", {"key": "study/configurations"}),),
        )
    if study.tuning < 25 or study.test < 100:
        yield Claim(
            "",
            f"There are {general(study.tuning)} tuning and {general(study.test)} test environments; the "
            "paper has 25 and 100.",
            tuple(
                Source(f"{study.name}/study.json", {"key": f"study/{name}"}) for name in ("tuning", "test")
            ),
        )
    if study.steps < 70_000:
        yield Claim(
            "",
            f"Trials have {general(study.steps)} steps; the paper's have {general(70_000)}.",
            (Source(f"{study.name}/study.json", {"key": "study/steps"}),),
        )


def _diverged(results: GeneralizedResults) -> Iterator[Claim]:
    """Trials whose errors ceased to be finite are told, and count with their scores."""
    for label in results.main:
        told, sources, tested = [], [], 0
        for agent in results.agents(label):
            pick = results.pick(label, agent, "mean")
            told.append(f"{100 * pick['diverged']:.1f}\u00a0% of {one_line(results.study.title_of(agent))}'s")
            sources.append(_pick_source(results, pick, "diverged", "test_diverged"))
            tested += int(pick["test_diverged"])
        if any(results.pick(label, agent, "mean")["diverged"] for agent in results.agents(label)):
            yield Claim(
                "",
                f"In {one_line(results.study.title_of(label))}, errors ceased to be finite in {listed(told)} "
                f"tuning trials and in {several(tested, 'test trial')}; they count as they are.",
                tuple(sources),
            )


def _hung(results: GeneralizedResults) -> Iterator[Claim]:
    """Test trials without a completed episode weigh on means, and not on wins."""
    for label in results.main:
        for agent in results.agents(label):
            pick = results.pick(label, agent, "mean")
            if pick["without_episode"]:
                yield Claim(
                    "",
                    f"{one_line(results.study.title_of(agent))} in {one_line(results.study.title_of(label))} "
                    f"completed no episode in {several(int(pick['without_episode']), 'test trial')}; such a "
                    "trial outweighs all others in the mean and counts as one in the sign test.",
                    (_pick_source(results, pick, "without_episode"),),
                )


def _pick_source(results: GeneralizedResults, pick: Mapping[str, Any], *columns: str) -> Source:
    key = {name: pick[name] for name in ("label", "agent", "reading", "method")}
    return Source(f"{results.study.name}/statistics/picks.parquet", key, columns)


def _rules(results: GeneralizedResults) -> Iterator[Claim]:
    yield Claim(
        "",
        "Noise, transforms, exploration, traces, the layout of tilings and the growth of family A's range "
        "are our choices where the paper leaves them open; few of them were varied.",
        (),
    )
    if any(len(results.study.environments[label].domains) > 1 for label in results.main):
        yield Claim(
            "", "Environments of a union are drawn one by one, so its domains are not equally frequent.", ()
        )
