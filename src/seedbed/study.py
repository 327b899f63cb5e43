"""The typed study: what is compared with what, validated once, immutable afterwards.

A study is one YAML file under ``studies/``; ``config.yaml`` says which studies run, with which preset
(``study_files`` reads them). Hyper-parameters are carried along: their algorithm checks them.
"""

import itertools
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from seedbed.artifacts import SeedbedError
from seedbed.contest_settings import SecretContest
from seedbed.registry import ALGORITHMS, ENVIRONMENTS, METRICS, location, mentioned

_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def _label(name: str) -> str:
    if not _LABEL.fullmatch(name) or ".." in name:
        raise ValueError(
            f"'{name}' cannot be a label: labels become folder names, so use letters, digits, "
            f"'_', '-' and '.', beginning with a letter or digit"
        )
    return name


def _seeds(value: Any) -> Any:
    """Accept "0-7" and 3 beside lists of both."""
    seeds = []
    for part in value if isinstance(value, list) else [value]:
        match = re.fullmatch(r"(\d+)-(\d+)", part.strip()) if isinstance(part, str) else None
        if match:
            first, last = int(match[1]), int(match[2])
            if last < first:
                raise ValueError(f"'{part}' runs backwards")
            seeds.extend(range(first, last + 1))
        elif isinstance(part, int) and not isinstance(part, bool):
            seeds.append(part)
        else:
            raise ValueError(f"'{part}' is neither a seed nor a range like 0-7")
    return seeds


def _distinct(seeds: list[int]) -> list[int]:
    repeated = sorted({seed for seed in seeds if seeds.count(seed) > 1})
    if repeated:
        raise ValueError(f"seeds {repeated} appear more than once; each seed is one run")
    if any(not 0 <= seed < 2**32 for seed in seeds):
        raise ValueError("seeds lie in [0, 2**32)")
    return sorted(seeds)


def _registered(registry: dict[str, str], kind: str) -> AfterValidator:
    def known(name: str) -> str:
        try:
            location(name, registry, kind)
        except SeedbedError as error:
            raise ValueError(str(error)) from None
        return name

    return AfterValidator(known)


Label = Annotated[str, AfterValidator(_label)]
EnvironmentName = Annotated[str, _registered(ENVIRONMENTS, "environment")]
AlgorithmName = Annotated[str, _registered(ALGORITHMS, "algorithm")]
Seeds = Annotated[list[int], BeforeValidator(_seeds), AfterValidator(_distinct)]
Count = Annotated[int, Field(ge=1)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Environment(_Model):
    """One environment of a study."""

    environment: EnvironmentName = Field(description="Registered name, or package.module:Name of your own.")
    arguments: dict[str, Any] = Field({}, description="Keyword arguments of the environment.")
    title: str | None = Field(None, description="Name in text and figures; the label if absent.")
    seeds: Seeds | None = Field(
        None, min_length=1, description="Those of the study's seeds that run here; all if absent."
    )

    @property
    def modules(self) -> list[str]:
        """Its own module and those that its arguments name, as "package.module:Name".

        These are wrappers and the like, and the registered environment that a distribution is over.
        """
        inner = self.arguments.get("environment")
        over = [ENVIRONMENTS[inner]] if isinstance(inner, str) and inner in ENVIRONMENTS else []
        return [location(self.environment, ENVIRONMENTS, "environment"), *over, *mentioned(self.arguments)]


class Algorithm(_Model):
    """One algorithm of a study, with its settings."""

    algorithm: AlgorithmName = Field(
        description="Registered name, or package.module:Name of your own algorithm."
    )
    arguments: dict[str, Any] = Field({}, description="Hyper-parameters; absent ones take their defaults.")
    arguments_in: dict[str, dict[str, Any]] = Field(
        {}, description="Hyper-parameters for one environment (by label), over `arguments`."
    )
    budget: int = Field(0, ge=0, description="Environment steps per seed; 0 where nothing is learned.")
    environments: list[str] | None = Field(None, description="Labels of its environments; all if absent.")
    title: str | None = Field(None, description="Name in text and figures; the label if absent.")
    role: Literal["learner", "baseline", "reference"] = Field(
        "learner", description="What it is in the comparison; references stand beside it and are not tested."
    )
    seeds_per_job: Count | None = Field(
        None, description="Seeds that share a job; the configuration's if absent."
    )
    threads: Count = Field(
        1, description="CPU cores of a training job; more than one breaks block exactness."
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "cpu",
        description="Where its networks are trained: cpu, the reference; cuda, a GPU; auto, a GPU if any.",
    )
    gpu: int = Field(
        0, ge=0, description="GPUs that a training job asks for; 1 if absent and `device` is cuda."
    )
    mem_mb: Count = Field(2000, description="Memory that a training job asks for, MB.")
    runtime: Count = Field(240, description="Time limit of a training job, minutes.")

    @model_validator(mode="before")
    @classmethod
    def _gpu_for_cuda(cls, data: Any) -> Any:
        return {"gpu": 1} | data if isinstance(data, dict) and data.get("device") == "cuda" else data

    @model_validator(mode="after")
    def _one_device(self) -> Self:
        given = [self.arguments, *self.arguments_in.values()]
        if self.device != "cpu" and any("device" in arguments for arguments in given):
            raise ValueError("device is given twice: beside the arguments and among them; keep the first")
        return self


class Episodes(_Model):
    """A set of evaluation episodes, fixed before it starts."""

    episodes: Count = Field(description="Episodes per training seed.")
    reset_seeds: Seeds | None = Field(
        None,
        description="Plain reset seeds, the same for every training seed, in place of the seed's own stream.",
    )

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.reset_seeds is not None and len(self.reset_seeds) != self.episodes:
            raise ValueError(
                f"{self.episodes} episodes need as many reset_seeds, got {len(self.reset_seeds)}"
            )
        return self


class Curve(Episodes):
    """Learning curves: a separate evaluation while training."""

    every: Count = Field(description="Environment steps per seed between two points.")
    at: list[Count] = Field([], description="Further points, in environment steps.")


class Forecast(_Model):
    """What learned models foretell of the test episodes; see ``algorithms.forecasts``."""

    horizon: Count = Field(10, description="Steps that are foretold at once.")
    imagined: Count = Field(
        20, description="So many first test episodes are imagined to their end, per seed."
    )
    particles: Count = Field(10, description="Imagined episodes for each of them.")


class EvaluationPlan(_Model):
    """How policies are evaluated."""

    curve: Curve
    test: Episodes
    lanes: Count = Field(40, description="Episodes side by side per seed; changes speed, never a result.")
    forecast: Forecast | None = Field(
        None, description="How policies with a model of the environment are held against what happens."
    )


class SampleEfficiency(_Model):
    """What is reached after how many environment steps, between a floor and a ceiling that do not learn."""

    metric: str = Field("return", description="Metric that is normalised between floor and ceiling.")
    floor: str = Field(description="Label of the algorithm that scores 0.")
    ceiling: str = Field(description="Label of the algorithm that scores 1.")
    budgets: list[Count] = Field(min_length=1, description="Environment steps per seed, increasing.")
    levels: list[Annotated[float, Field(gt=0, lt=1)]] = Field(
        [0.8, 0.9], description="Shares of the way from floor to ceiling, increasing."
    )
    also: list[str] = Field([], description="Further metrics at the budgets, as they are.")

    @model_validator(mode="after")
    def _increasing(self) -> Self:
        for name in ("budgets", "levels"):
            values = getattr(self, name)
            if any(later <= earlier for earlier, later in itertools.pairwise(values)):
                raise ValueError(f"{name} must increase, got {values}")
        return self


class StatisticsPlan(_Model):
    """What is tested, declared before any data are seen."""

    policy_mode: Literal["greedy", "sampled"] = Field(
        "sampled", description="Mode behind tables and tests, for policies that have both."
    )
    primary: dict[str, str] = Field(description="Environment label -> its one primary metric.")
    secondary: list[str] = Field([], description="Further metrics, corrected together.")
    baseline: str = Field(description="Label of the algorithm that all learners are tested against.")
    primary_correction: Literal["holm", "bonferroni"] = "holm"
    sample_efficiency: SampleEfficiency | None = Field(
        None, description="What is reached at fixed budgets, and the steps that fixed levels take."
    )


class FixedPolicy(_Model):
    """A policy that learns nothing, made to act at random now and then."""

    algorithm: AlgorithmName
    arguments: dict[str, Any] = {}
    epsilon: float = Field(0, ge=0, le=1, description="Share of decisions that are uniform.")
    title: str | None = Field(None, description="Name in text and tables; the label if absent.")


class OffPolicyPlan(_Model):
    """Off-policy evaluation: what target policies earn, told from the episodes of a behaviour policy."""

    environment: Environment
    behaviour: FixedPolicy
    targets: dict[Label, FixedPolicy] = Field(min_length=1)
    episodes: int = Field(ge=2, description="Episodes of a data set.")
    repetitions: int = Field(ge=2, description="Data sets behind bias, RMSE and coverage.")
    truth_episodes: int = Field(ge=2, description="Episodes of each target behind its true value.")
    draws: int = Field(200, ge=100, description="Bootstrap draws per data set.")
    ridge: float = Field(1, gt=0, description="Penalty of fitted Q evaluation.")
    least_effective: float = Field(10, ge=1, description="Effective episodes below which it is refused.")

    @property
    def modules(self) -> list[str]:
        """Modules of its environment and policies."""
        policies = (self.behaviour, *self.targets.values())
        used = {location(policy.algorithm, ALGORITHMS, "algorithm") for policy in policies}
        return [*self.environment.modules, *sorted(used)]


class Study(_Model):
    """What is compared with what."""

    name: Label
    title: str
    question: str = Field(description="One sentence: what the study asks.")
    environments: dict[Label, Environment] = Field(min_length=1)
    algorithms: dict[Label, Algorithm] = Field(min_length=1)
    seeds: Seeds = Field(min_length=1, description="Training seeds, as a list or a range like 0-7.")
    pilot_seeds: Seeds = Field([], description="Seeds spent on tuning; never part of the comparison.")
    metrics: list[str] = Field(["episodes"], description="Metric sets to compute.")
    evaluation: EvaluationPlan
    statistics: StatisticsPlan
    off_policy: OffPolicyPlan | None = None

    @field_validator("metrics")
    @classmethod
    def _known_metrics(cls, names: list[str]) -> list[str]:
        for name in names:
            try:
                location(name, METRICS, "metric set")
            except SeedbedError as error:
                raise ValueError(str(error)) from None
        return names

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        shared = sorted(set(self.seeds) & set(self.pilot_seeds))
        if shared:
            raise ValueError(
                f"seeds {shared} are pilot_seeds too; tuning on the comparison's seeds favours what was tuned"
            )
        for label, environment in self.environments.items():
            other = sorted(set(environment.seeds or []) - set(self.seeds))
            if other:
                raise ValueError(f"environments.{label}.seeds: {other} are not among the study's seeds")
        curve, test = self.evaluation.curve.reset_seeds, self.evaluation.test.reset_seeds
        met = sorted(set(curve or []) & set(test or []))
        if met:
            raise ValueError(f"evaluation.test.reset_seeds and evaluation.curve.reset_seeds share {met}")
        for label, algorithm in self.algorithms.items():
            named = [*(algorithm.environments or []), *algorithm.arguments_in]
            _members(named, self.environments, f"algorithms.{label}: environment")
        plan = self.statistics
        _members([plan.baseline], self.algorithms, "statistics.baseline: algorithm")
        if plan.sample_efficiency is not None:
            ends = [plan.sample_efficiency.floor, plan.sample_efficiency.ceiling]
            _members(ends, self.algorithms, "statistics.sample_efficiency: algorithm")
        _members(plan.primary, self.environments, "statistics.primary: environment")
        lacking = sorted(set(self.environments) - set(plan.primary))
        if lacking:
            raise ValueError(f"statistics.primary names no metric for the environments {lacking}")
        return self

    def algorithms_in(self, environment: str) -> dict[str, Algorithm]:
        """The algorithms that run in one environment, by label."""
        return {
            label: algorithm
            for label, algorithm in self.algorithms.items()
            if algorithm.environments is None or environment in algorithm.environments
        }

    def arguments(self, algorithm: str, environment: str) -> dict[str, Any]:
        """An algorithm's hyper-parameters in one environment, with its device unless that is the CPU."""
        entry = self.algorithms[algorithm]
        device = {} if entry.device == "cpu" else {"device": entry.device}
        return entry.arguments | entry.arguments_in.get(environment, {}) | device

    def modules(self, algorithm: str, environment: str) -> list[str]:
        """An algorithm's own module and those that its arguments name, as "package.module:Name"."""
        own = location(self.algorithms[algorithm].algorithm, ALGORITHMS, "algorithm")
        return [own, *mentioned(self.arguments(algorithm, environment))]

    def files(self, algorithm: str, environment: str, seeds: list[int]) -> list[str]:
        """The files that an algorithm's argument ``path`` names; one per seed where it holds "{seed}"."""
        path = self.arguments(algorithm, environment).get("path")
        if not isinstance(path, str):
            return []
        return list(dict.fromkeys(path.replace("{seed}", str(seed)) for seed in seeds))

    def seeds_in(self, environment: str) -> list[int]:
        """The training seeds that run in one environment."""
        return self.environments[environment].seeds or self.seeds

    def blocks(self, environment: str, algorithm: str, seeds_per_job: int) -> dict[str, list[int]]:
        """Block name -> contiguous training seeds, such as {"seeds-0-3": [0, 1, 2, 3], "seed-7": [7]}."""
        size = self.algorithms[algorithm].seeds_per_job or seeds_per_job
        blocks: list[list[int]] = []
        for seed in self.seeds_in(environment):
            if blocks and len(blocks[-1]) < size and blocks[-1][-1] == seed - 1:
                blocks[-1].append(seed)
            else:
                blocks.append([seed])
        return {block_name(seeds): seeds for seeds in blocks}

    def title_of(self, label: str) -> str:
        """How text and figures call an algorithm or environment."""
        entry = self.algorithms.get(label) or self.environments[label]
        return entry.title or label


def block_name(seeds: list[int]) -> str:
    """The folder name of contiguous seeds: ``seed-7`` or ``seeds-0-3``."""
    return f"seed-{seeds[0]}" if len(seeds) == 1 else f"seeds-{seeds[0]}-{seeds[-1]}"


class StatisticsSettings(_Model):
    """Settings of all statistics."""

    confidence: float = Field(0.95, gt=0, lt=1, description="Level of intervals.")
    alpha: float = Field(0.05, gt=0, lt=1, description="Error rate of a family of tests.")
    draws: int = Field(10_000, ge=1_000, description="Bootstrap and Monte-Carlo draws.")
    seed: int = Field(0, ge=0, lt=2**32, description="Seed of all resampling.")


class PaperSettings(_Model):
    """What the paper says of itself."""

    title: str | None = Field(None, description="Title; the studies' titles if absent.")
    authors: list[str] = []


class Config(_Model):
    """config.yaml."""

    studies: list[Label] = Field(min_length=1, description="Files under studies/, without .yaml.")
    preset: str = Field("quick", description="Which of the studies' presets: smoke, quick or paper.")
    seeds_per_job: Count = Field(4, description="Seeds that share a training job.")
    statistics: StatisticsSettings = StatisticsSettings()
    paper: PaperSettings = PaperSettings()
    secret: SecretContest | None = Field(None, description="A secret evaluation, made by name only.")


def _members(names: Any, known: Mapping[str, Any], what: str) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"{what} '{name}' is not one of {', '.join(known)}")
