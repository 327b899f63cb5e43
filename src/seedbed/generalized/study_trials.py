"""The trials of a generalized study, in parts: which environments, which configurations, which luck."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from seedbed.algorithms.sarsa_tiles import Configuration, SarsaTiles
from seedbed.environments.generalized.documents import (
    EnvironmentDocument,
    canonical_environment,
    covering_ranges,
)
from seedbed.environments.generalized.domains import DOMAINS
from seedbed.environments.generalized.samplers import TEST, TUNING, MetaSampler, Sampler
from seedbed.generalized.grid import full_grid, sample_grid
from seedbed.generalized.meta import Bandit, Forgetful, RangeKeeper, run_meta
from seedbed.generalized.methodology import choose
from seedbed.generalized.trials import gather, run_trials, score_matrix
from seedbed.generalized_study import GRID, TOGETHER, Agent, GeneralizedStudy
from seedbed.study_files import StudyError

META_COLUMNS = {
    "agent": "string",
    "meta_trial": "int64",
    "place": "int64",
    "environment": "string",
    "domain": "string",
    "episodes": "int64",
    "score": "float64",
    "growths": "int64",
}


def sampler_of(study: GeneralizedStudy, label: str) -> Sampler:
    """The distribution of one environment label."""
    entry = study.environments[label]
    odds = [entry.sampler.weights.get(domain, 1.0) for domain in entry.domains]
    return Sampler(
        tuple(entry.domains),
        variants=tuple(sorted(entry.variants.items())),
        weights=tuple(odd / sum(odds) for odd in odds) if entry.sampler.weights else None,
        **entry.sampler.model_dump(exclude={"weights"}),
    )


def environments_of(study: GeneralizedStudy, label: str) -> dict[str, list[EnvironmentDocument]]:
    """ "tuning" and "test" environments of a label; a single environment is both."""
    entry = study.environments[label]
    if entry.single:
        only = canonical_environment(entry.domains[0], entry.variants.get(entry.domains[0]))
        return {"tuning": [only], "test": [only]}
    sampler = sampler_of(study, label)
    return {
        "tuning": sampler.environments(TUNING, study.seed, study.tuning),
        "test": sampler.environments(TEST, study.seed, study.test),
    }


def configurations_of(study: GeneralizedStudy, label: str) -> list[int]:
    """Indices in the grid of all configurations that are tuned among."""
    label = study.environments[label].tuned_in or label
    entry = study.environments[label]
    if study.number(label) == GRID:
        return list(range(GRID))
    return sample_grid(
        study.number(label),
        study.seed,
        variables=max(len(DOMAINS[domain].LOW) for domain in entry.domains),
        most_features=entry.most_features,
        most_tiles=entry.most_tiles,
    )


def agent_of(entry: Agent) -> SarsaTiles:
    """The agent that a study describes."""
    return SarsaTiles(entry.family, entry.growth, entry.epsilon, entry.discount, entry.trace, entry.cull)


def tune(study: GeneralizedStudy, label: str, part: int) -> pd.DataFrame:
    """One part's tuning trials, all agents. Parts take turns in the grid, so that all take equally long."""
    grid, indices = full_grid(), sorted(configurations_of(study, label))
    parts = len(study.blocks()[label][TOGETHER])
    chosen = {index: grid[index] for index in indices[part::parts]}
    return _trials(study, label, "tuning", chosen, list(study.algorithms_in(label)))


def test(study: GeneralizedStudy, label: str, tuning: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What ``choose`` picks by tuning trials, a label's own or its ``tuned_in``'s, and their test trials."""
    agents = study.algorithms_in(label)
    grid, picks = full_grid(), choose(tuning[tuning.agent.isin(agents)])
    parts = []
    for agent, indices in picks.groupby("agent")["configuration"]:
        chosen = {index: grid[index] for index in sorted(set(indices))}
        parts.append(_trials(study, label, "test", chosen, [agent]))
    return picks, gather(parts)


def _trials(
    study: GeneralizedStudy,
    label: str,
    purpose: str,
    configurations: dict[int, Configuration],
    agents: Sequence[str],
) -> pd.DataFrame:
    sets = environments_of(study, label)
    origin = environments_of(study, study.environments[label].tuned_in or label)
    wide = covering_ranges([*origin["tuning"], *origin["test"]])
    made = {name: agent_of(study.algorithms[name]) for name in agents}
    seeds = study.seeds(label)["training" if purpose == "tuning" else "evaluation"]
    single = study.environments[label].single
    return gather(
        run_trials(
            configurations,
            sets[purpose],
            made,
            wide=wide,
            steps=study.steps,
            seed=seed,
            first_position=place if single else 0,
        )
        for place, seed in enumerate(seeds)
    )


def meta(study: GeneralizedStudy, tuning: pd.DataFrame) -> pd.DataFrame:
    """Three agents in the same series: one forgets, one keeps its ranges, one chooses among configurations.

    Args:
        tuning: trials that say which configurations are best, by mean.

    Returns:
        Table of META_COLUMNS.
    """
    plan, grid = study.meta, full_grid()
    scores, indices = score_matrix(tuning, plan.agent)
    best = indices[np.argsort(-scores.mean(0), kind="stable")][: plan.arms]
    arms, agent = [grid[index] for index in best], agent_of(study.algorithms[plan.agent])
    agents = {
        "forgets": Forgetful(arms[0], agent),
        "keeps_ranges": RangeKeeper(arms[0], agent),
        "chooses": Bandit(arms, agent),
    }
    return run_meta(
        agents,
        MetaSampler(Sampler(tuple(plan.domains))),
        range(plan.series),
        environments=plan.length,
        steps=study.steps,
        seed=study.seed,
    )


def resolve_generalized(study: GeneralizedStudy) -> dict[str, Any]:
    """Everything filled in, as a JSON document.

    Returns:
        "study"; "environments": label -> sampler, configurations tuned among, and the SHA-256 over the
        documents of its tuning and test environments; "algorithms": label -> agent label -> what is not
        tuned; "blocks": the jobs.

    Raises:
        StudyError: an environment's limits leave too few configurations, choices of another environment
            have no rivals, or there is no environment to report on.
    """
    environments = {}
    if all(entry.single or entry.beside for entry in study.environments.values()):
        raise StudyError(
            f"studies/{study.name}.yaml: environments: each is single or a variation of another; add one "
            f"that is neither."
        )
    for label, entry in study.environments.items():
        key = f"studies/{study.name}.yaml: environments.{label}"
        if entry.tuned_in and not entry.beside:
            raise StudyError(f"{key}: name the environment beside it, whose own choices are its rivals.")
        try:
            indices = configurations_of(study, label)
        except ValueError as error:
            raise StudyError(f"{key}: {error}.") from None
        environments[label] = {
            "sampler": {} if entry.single else sampler_of(study, label).parameters(),
            "configurations": sorted(indices),
            "content": {
                purpose: hashlib.sha256("\n".join(d.json for d in documents).encode()).hexdigest()
                for purpose, documents in environments_of(study, label).items()
            },
        }
    return {
        "study": study.model_dump(mode="json"),
        "environments": environments,
        "algorithms": {
            label: {name: asdict(agent_of(entry)) for name, entry in study.algorithms_in(label).items()}
            for label in study.environments
        },
        "blocks": study.blocks(),
    }


def documents_table(study: GeneralizedStudy) -> pd.DataFrame:
    """Every environment: label, purpose, position, hash, document (canonical JSON)."""
    rows = [
        (label, purpose, position, document.hash, document.json)
        for label in study.environments
        for purpose, documents in environments_of(study, label).items()
        for position, document in enumerate(documents)
    ]
    return pd.DataFrame(rows, columns=list(DOCUMENT_COLUMNS))


DOCUMENT_COLUMNS = {
    "label": "string",
    "purpose": "string",
    "position": "int64",
    "environment": "string",
    "document": "string",
}


def trial_settings(study: GeneralizedStudy, label: str, block: str, job: str) -> dict[str, Any]:
    """What a run record says of a job of trials."""
    return {
        "study": study.name,
        "environment": {"label": label},
        "algorithm": {"label": TOGETHER},
        "block": block,
        "seeds": study.seeds(label)[job] if label in study.environments else [study.seed],
        "steps": study.steps,
        "configurations": study.configurations,
    }
