"""What limits the conclusions, found in the results themselves."""

from collections.abc import Iterator, Sequence
from typing import Any

from seedbed.reporting.claims import (
    Claim,
    comparison_source,
    difference_unit,
    hopeless,
    in_sentence,
    titles_of,
)
from seedbed.reporting.formatting import (
    MINUS,
    NO_BREAK,
    finite,
    general,
    listed,
    number,
    one_line,
    several,
    signed,
    with_unit,
)
from seedbed.reporting.metric_tables import summary_source
from seedbed.reporting.study_results import StudyResults
from seedbed.reporting.trace import Source

WIDE = 0.1
"""An undecided comparison is called wide if its interval reaches beyond this share of the baseline's mean."""


def limitations(results: StudyResults) -> list[Claim]:
    """One sentence per limitation of a study, each with the rows that show it."""
    found = [
        *_few_seeds(results),
        *_missing_runs(results),
        *_budgets(results),
        *_environments(results),
        *(claim for environment in results.study.environments for claim in _tests(results, environment)),
        *(claim for environment in results.study.environments for claim in _censoring(results, environment)),
        *(claim for environment in results.study.environments for claim in _partial(results, environment)),
        *code_limitations(results.runs),
    ]
    prefix = f"{results.study.name}/limitation"
    return [Claim(f"{prefix}/{index + 1}", claim.text, claim.sources) for index, claim in enumerate(found)]


def _few_seeds(results: StudyResults) -> Iterator[Claim]:
    study, titles = results.study, titles_of(results)
    for key, count, where in (
        ("study/seeds", len(study.seeds), ""),
        *(
            (f"study/environments/{label}/seeds", len(entry.seeds), f" in {titles[label]}")
            for label, entry in study.environments.items()
            if entry.seeds
        ),
    ):
        source = Source(f"{study.name}/study.json", {"key": key})
        if count == 1:
            yield _claim(
                f"There is one training seed{where}: no spread between seeds is known and nothing could be "
                "tested.",
                source,
            )
        elif count < 10:
            yield _claim(
                f"There are {several(count, 'training seed')}{where}: standard deviations and tests rest on "
                "few runs.",
                source,
            )


def _missing_runs(results: StudyResults) -> Iterator[Claim]:
    titles = titles_of(results)
    for environment in results.study.environments:
        expected = set(results.study.seeds_in(environment))
        for label in results.algorithms(environment):
            rows = results.scores
            rows = rows[(rows.environment == environment) & (rows.algorithm == label)]
            lost = sorted(expected - set(rows.seed))
            if lost:
                yield _claim(
                    f"{titles[label]} in {titles[environment]} lacks {several(len(lost), 'seed')} "
                    f"({', '.join(map(str, lost))})."
                )
    rows = results.scores[results.scores.status != "ok"]
    rows = rows[rows.metric == rows.environment.map(results.study.statistics.primary)]
    for (environment, label, status), part in rows.groupby(["environment", "algorithm", "status"], sort=True):
        yield _claim(
            f"{titles[label]} in {titles[environment]} has no value of the primary metric for "
            f"{several(part.seed.nunique(), 'seed')}: {one_line(status)}."
        )


def _budgets(results: StudyResults) -> Iterator[Claim]:
    titles, entries = titles_of(results), results.study.algorithms
    budgets = {label: entry.budget for label, entry in entries.items() if entry.role == "learner"}
    if len(set(budgets.values())) < 2:
        return
    file = f"{results.study.name}/study.json"
    yield _claim(
        "Learners were not trained for equally many environment steps: "
        + listed([f"{titles[label]} for {general(budget)}" for label, budget in budgets.items()])
        + ".",
        *(Source(file, {"key": f"study/algorithms/{label}/budget"}) for label in budgets),
    )


def _environments(results: StudyResults) -> Iterator[Claim]:
    """What was found about environments before the study ran."""
    for label, sizes in results.resolved["environments"].items():
        for index, warning in enumerate(sizes.get("warnings", [])):
            source = Source(
                f"{results.study.name}/study.json", {"key": f"environments/{label}/warnings/{index}"}
            )
            yield _claim(f"In {titles_of(results)[label]}: {one_line(warning)}", source)


def _tests(results: StudyResults, environment: str) -> Iterator[Claim]:
    titles = titles_of(results)
    where = titles[environment]
    for family in results.families(environment):
        part = results.family(environment, family)
        kept = [row for row in part if row["decision"] == "not testable"]
        if kept:
            sources = tuple(comparison_source(results, row) for row in kept)
            yield _claim(
                f"In {where}, {len(kept)} of {several(len(part), 'comparison')} of the family {family} "
                f"could not be tested.",
                *sources,
            )
        futile = [row for row in part if hopeless(row)]
        if futile:
            yield _claim(
                f"In {where}, {len(futile)} of {several(len(part), 'comparison')} of the family {family} "
                f"could not have been significant whatever the data: {hopeless(futile[0])}.",
                *(comparison_source(results, row) for row in futile),
            )
    for row in results.family(environment, "primary"):
        yield from _wide(results, row)
        if row["unpaired_seeds"] > 0:
            pair = f"{titles[row['algorithm_a']]} and {titles[row['algorithm_b']]}"
            yield _claim(
                f"In {where}, {several(int(row['unpaired_seeds']), 'seed')} of {pair} have a score "
                f"on one side only and were left out of their comparison.",
                comparison_source(results, row),
            )


def _wide(results: StudyResults, row: Any) -> Iterator[Claim]:
    if row["decision"] != "undecided" or not (finite(row["difference_low"]) and finite(row["mean_b"])):
        return
    reach = max(abs(row["difference_low"]), abs(row["difference_high"]))
    if reach <= WIDE * abs(row["mean_b"]):
        return
    titles = titles_of(results)
    metric = results.metrics[row["metric"]]
    low, high = (signed(row[name], metric.decimals) for name in ("difference_low", "difference_high"))
    yield _claim(
        f"In {titles[row['environment']]}, the interval of {titles[row['algorithm_a']]} {MINUS} "
        f"{titles[row['algorithm_b']]} in {in_sentence(metric.title)} is wide: {low} to {high}"
        f"{with_unit(difference_unit(metric))}, up to "
        f"{number(100 * reach / abs(row['mean_b']), 0)}{NO_BREAK}% of the mean of "
        f"{titles[row['algorithm_b']]}.",
        comparison_source(results, row),
    )


def _censoring(results: StudyResults, environment: str) -> Iterator[Claim]:
    """Where the primary metric is a time until an event that some episodes never reach."""
    titles = titles_of(results)
    metric = results.metrics[results.study.statistics.primary[environment]]
    if not metric.reached or metric.reached not in results.metrics:
        return
    parts, sources = [], []
    for label in results.algorithms(environment):
        row = results.summary_row(environment, label, metric.reached)
        if row is not None and row["n"] > 0 and row["mean"] < 1:
            share = number(100 * (1 - row["mean"]), 1)
            parts.append(f"{share}{NO_BREAK}% for {titles[label]}")
            sources.append(summary_source(results, row, ("n", "mean")))
    if parts:
        yield _claim(
            f"In {titles[environment]}, {in_sentence(metric.title)} is censored: on average over seeds, "
            f"the event does not happen in {listed(parts)} of the episodes.",
            *sources,
        )


def _partial(results: StudyResults, environment: str) -> Iterator[Claim]:
    """Compared metrics that leave out episodes, such as times of the successful ones."""
    titles, scores = titles_of(results), results.scores
    total = results.study.evaluation.test.episodes
    shares: dict[str, tuple[list[str], list[Source]]] = {}
    for name in results.main_metrics(environment):
        metric, parts, sources = results.metrics[name], [], []
        for label in results.tested(environment) if metric.better != "none" else ():
            row = results.summary_row(environment, label, name)
            chosen = (scores.environment == environment) & (scores.algorithm == label)
            chosen &= (scores.metric == name) & (scores.policy_mode == results.mode(environment, label))
            chosen &= scores.status == "ok"
            share = scores.loc[chosen, "episodes"].mean() / total
            if row is not None and row["n"] > 0 and share < 1:
                parts.append(f"{number(100 * share, 1)}{NO_BREAK}% for {titles[label]}")
                sources.append(summary_source(results, row, ("n",)))
        if parts:
            named, behind = shares.setdefault(listed(parts), ([], []))
            named.append(in_sentence(metric.title.split(",")[0]))
            behind += sources
    for words, (named, behind) in shares.items():
        yield _claim(
            f"In {titles[environment]}, only a part of the test episodes enters {listed(named)} (on average "
            f"over seeds {words}), so algorithms are compared on different episodes there.",
            *behind,
        )


def code_limitations(runs: Sequence[Any]) -> Iterator[Claim]:
    """What run records say of the code that made them."""
    codes = [run["code"] for run in runs]
    if any(code.get("dirty") for code in codes):
        yield _claim("Some runs were made from a checkout with changes that are not committed.")
    commits = {code.get("commit") for code in codes}
    if len(commits) > 1:
        yield _claim(f"The runs come from {len(commits)} different versions of the code.")
    if None in commits:
        yield _claim("The version of the code is not known for all runs.")


def _claim(text: str, *sources: Any) -> Claim:
    return Claim("", text, tuple(sources))
