"""Where things lie below ``results/``, listed from a study and never globbed."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seedbed.generalized_study import GeneralizedStudy
    from seedbed.study import Study

BLOCK = "results/{study}/{environment}/{algorithm}/{block}"
TRAINED = ("policy.safetensors", "curve.parquet", "training.parquet", "diagnostics.parquet", "run.json")
EVALUATED = ("episodes.parquet", "steps.parquet", "evaluation.json")
MEASURED = ("scores.parquet", "curve_scores.parquet", "costs.parquet")
STUDY = ("study.json", "scores.parquet", "curve_scores.parquet", "costs.parquet")
OFF_POLICY = ("behaviour", "events", "estimates", "overlap", "coverage")
DRAWN = ("summary", "comparisons", "curves", "incidence", "reliability")
STATISTICS = (*DRAWN, "sample_efficiency")
TUNED = ("trials.parquet", "run.json")
TESTED = ("picks.parquet", "trials.parquet", "evaluation.json")

Blocks = Mapping[str, Mapping[str, Mapping[str, list[int]]]]
"""Environment label -> algorithm label -> block name -> training seeds."""


def blocks(study: "Study", seeds_per_job: int) -> Blocks:
    """How a study's seeds are divided over jobs."""
    return {
        environment: {
            name: study.blocks(environment, name, seeds_per_job) for name in study.algorithms_in(environment)
        }
        for environment in study.environments
    }


def block_folders(study: str, divided: Blocks, below: str = "results") -> list[Path]:
    """The folder of each block of a study."""
    return [
        Path(below, study, environment, algorithm, block)
        for environment, algorithms in divided.items()
        for algorithm, named in algorithms.items()
        for block in named
    ]


def block_files(study: str, divided: Blocks, *names: str) -> list[str]:
    """Files of those names of each block of a study."""
    return [str(folder / name) for folder in block_folders(study, divided) for name in names]


def forecast_files(study: "Study", divided: Blocks) -> list[str]:
    """The step tables behind reliability diagrams; none without the metric set ``model``."""
    return block_files(study.name, divided, "steps.parquet") if "model" in study.metrics else []


def off_policy_files(study: "Study") -> list[str]:
    """Behaviour data and estimates of a study; none without the section ``off_policy``."""
    return [f"results/{study.name}/off_policy/{name}.parquet" for name in OFF_POLICY if study.off_policy]


def logs(study: str, divided: Blocks, off_policy: bool = False) -> list[str]:
    """The logs of all jobs of a study up to its tables and figures."""
    jobs = [
        str(folder / f"{job}.log")
        for folder in block_folders(study, divided, "results/logs")
        for job in ("train", "evaluate", "measure")
    ]
    stages = ["resolve_study", "collect_scores", "analyse", "draw", "tabulate"]
    stages += ["log_behaviour", "evaluate_off_policy"] if off_policy else []
    return [*jobs, *(f"results/logs/{study}/{stage}.log" for stage in stages)]


def generalized_tests(study: "GeneralizedStudy", *names: str) -> list[str]:
    """Files of those names of each environment label's test."""
    return [f"results/{study.name}/{label}/all/test/{name}" for label in study.environments for name in names]


def generalized_meta(study: "GeneralizedStudy") -> list[str]:
    """Trials and run record of the series; none without the section ``meta``."""
    names = ("trials.parquet", "evaluation.json") if study.meta else ()
    return [f"results/{study.name}/meta/{name}" for name in names]


def generalized_analysis(study: "GeneralizedStudy") -> list[str]:
    """What the trials are put together to, and the statistics."""
    names = ["environments", "tuning", "test", "costs", "statistics/picks", "statistics/comparisons"]
    names += ["statistics/carried"] if study.carried else []
    names += ["statistics/meta"] if study.meta else []
    return [f"results/{study.name}/{name}.parquet" for name in names]


def generalized_files(study: "GeneralizedStudy") -> list[str]:
    """All of a generalized study before figures and tables."""
    return [
        f"results/{study.name}/study.json",
        *block_files(study.name, study.blocks(), *TUNED),
        *generalized_tests(study, *TESTED),
        *generalized_meta(study),
        *generalized_analysis(study),
    ]


def generalized_logs(study: "GeneralizedStudy") -> list[str]:
    """The logs of all jobs of a generalized study up to its tables and figures."""
    folder = f"results/logs/{study.name}"
    stages = ["resolve_study", "analyse_generalized", "draw", "tabulate", *(["meta"] if study.meta else [])]
    return [
        *(str(part / "tune.log") for part in block_folders(study.name, study.blocks(), "results/logs")),
        *(f"{folder}/{label}/all/test/test.log" for label in study.environments),
        *(f"{folder}/{stage}.log" for stage in stages),
    ]
