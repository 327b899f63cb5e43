"""The typed study of generalized environments: agents tuned on some environments, tested on others.

Its file under ``studies/`` says ``kind: generalized``. After Whiteson, Tanner, Taylor and Stone (2011);
``docs/generalized.md`` has what their paper leaves open.
"""

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from seedbed.study import Count, Label

GRID = 3024
"""Configurations of the paper's grid."""
Domain = Literal["mountain_car", "acrobot", "puddle_world"]
Variant = Literal["zero_at_goal", "minus_one_at_goal", "book", "nips", "rllib", "closed", "open"]
VARIANTS: dict[str, tuple[str, ...]] = {
    "mountain_car": ("zero_at_goal", "minus_one_at_goal"),
    "acrobot": ("book", "nips", "rllib"),
    "puddle_world": ("closed", "open"),
}
"""Of each domain; the first is the default."""
FOLDERS = ("meta", "statistics", "figures", "tables")
TOGETHER = "all"
"""Stands where other studies name an algorithm: all agents of an environment share their jobs."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Ranges(_Model):
    """What an environment's noise, transforms and start rule are drawn from: ``Sampler``'s parameters."""

    noise_high: float = Field(
        0.5, ge=0, allow_inf_nan=False, description="Noise is uniform up to it; 1: what one action does."
    )
    scale_low: float = Field(0.1, gt=0, allow_inf_nan=False, description="Scales are log-uniform.")
    scale_high: float = Field(10.0, gt=0, allow_inf_nan=False)
    shift_low: float = Field(-10.0, allow_inf_nan=False, description="Shifts are uniform.")
    shift_high: float = Field(10.0, allow_inf_nan=False)
    random_start: float = Field(0.5, ge=0, le=1, description="Odds that episodes begin at random states.")
    weights: dict[Domain, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        {}, description="Relative odds of a union's domains; 1 where absent."
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        for name in ("scale", "shift"):
            low, high = getattr(self, f"{name}_low"), getattr(self, f"{name}_high")
            if low > high:
                raise ValueError(f"{name}_low is at most {name}_high, got {low:g} and {high:g}")
        return self


class GeneralizedEnvironment(_Model):
    """A distribution over environments, or the one environment that a domain is usually tested in."""

    domains: list[Domain] = Field(min_length=1, description="Drawn from with equal odds.")
    variants: dict[Domain, Variant] = Field({}, description="Of domains, where not their default.")
    single: bool = Field(
        False, description="Only the domain's usual form: no noise, fixed start, variables as they are."
    )
    sampler: Ranges = Field(Ranges(), description="What environments are drawn from.")
    title: str | None = Field(None, description="Name in text and figures; the label if absent.")
    beside: str | None = Field(
        None, description="Label of the environment whose variation it is; stands among the sensitivities."
    )
    tuned_in: str | None = Field(
        None,
        description="Label of another environment: what was chosen there is tested here as it is, against "
        "what was chosen in `beside`, which has the same test environments.",
    )
    configurations: Annotated[int, Field(ge=2, le=GRID)] | Literal["all"] | None = Field(
        None, description="How many are tuned among here; the study's number if absent."
    )
    most_features: Count | None = Field(
        None, description="Leaves out configurations with more active features."
    )
    most_tiles: Count | None = Field(None, description="Leaves out configurations with more tiles.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(set(self.domains)) < len(self.domains):
            raise ValueError(f"domains must differ, got {self.domains}")
        if self.single and len(self.domains) > 1:
            raise ValueError("a single environment has one domain")
        if self.single and self.sampler != Ranges():
            raise ValueError("a single environment is not drawn: leave out sampler")
        for domain, variant in self.variants.items():
            if variant not in VARIANTS[domain]:
                raise ValueError(
                    f"variants.{domain} is one of {', '.join(VARIANTS[domain])}, got '{variant}'"
                )
        if other := sorted({*self.variants, *self.sampler.weights} - set(self.domains)):
            raise ValueError(f"variants and weights are for its domains, got {', '.join(other)}")
        if self.tuned_in and (self.configurations or self.most_features or self.most_tiles):
            raise ValueError("configurations are those of tuned_in: leave them and their limits out")
        return self


class Agent(_Model):
    """Sarsa(lambda) with tile coding; what is not tuned."""

    family: Literal["A", "B", "C", "A_without_transplant"] = Field(
        description="A: adaptive range; B: a range that covers the experiment; C: the exact range."
    )
    growth: float = Field(0.25, ge=0, allow_inf_nan=False, description="Margin of families A, in widths.")
    epsilon: float = Field(0.05, ge=0, le=1)
    discount: float = Field(1.0, ge=0, le=1)
    trace: Literal["replacing", "accumulating"] = "replacing"
    cull: float = Field(0.01, ge=0, le=1, description="Traces below are dropped.")
    title: str | None = Field(None, description="Name in text and figures; the label if absent.")
    beside: str | None = Field(None, description="Label of the agent whose variation it is.")
    environments: list[str] | None = Field(None, description="Labels of its environments; all if absent.")


class MetaPlan(_Model):
    """Series of environments of hidden families, and three agents that keep more or less of each."""

    domains: list[Domain] = Field(min_length=1, description="One is drawn for each series.")
    environment: str = Field(description="Label of the environment on which configurations were tuned.")
    agent: str = Field(description="Label of the agent that lives through the series.")
    arms: int = Field(4, ge=2, description="Configurations of the agent that chooses: the best when tuned.")
    series: int = Field(30, ge=2, description="Meta-trials, the unit of all statistics.")
    length: Count = Field(10, description="Environments of a series.")


class GeneralizedStudy(_Model):
    """What is compared with what."""

    kind: Literal["generalized"]
    name: Label
    title: str
    question: str = Field(description="One sentence: what the study asks.")
    environments: dict[Label, GeneralizedEnvironment] = Field(min_length=1)
    algorithms: dict[Label, Agent] = Field(min_length=2, description="The agents.")
    configurations: Annotated[int, Field(ge=2, le=GRID)] | Literal["all"] = Field(
        description="How many of the grid's are tuned among, drawn at random; or all."
    )
    configurations_per_job: Count = Field(63, description="Changes speed, never a result.")
    tuning: int = Field(25, ge=2, description="Tuning environments; trials where there is only one.")
    test: int = Field(100, ge=2, description="Test environments, further ones.")
    steps: Count = Field(70_000, lt=2**32, description="Environment steps of a trial.")
    seed: int = Field(0, ge=0, lt=2**32, description="Of environments, trials and the sample of the grid.")
    margin: float = Field(0.05, gt=0, description="Share of the mean below which differences do not matter.")
    mem_mb: Count = Field(1200, description="Memory that a job of trials asks for, MB.")
    runtime: Count = Field(600, description="Time limit of a job of trials, minutes.")
    meta: MetaPlan | None = None
    companions: list[Label] = Field(
        [], description="Studies that run and are told with it: files under studies/, without .yaml."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for label, entry in self.environments.items():
            if label in FOLDERS:
                raise ValueError(f"environments.{label}: the results have a folder of that name")
            _member(entry.beside, self.environments, f"environments.{label}.beside")
            _member(entry.tuned_in, self.environments, f"environments.{label}.tuned_in")
            if entry.tuned_in:
                self._check_carried(label, entry)
            limited = entry.most_features or entry.most_tiles
            if limited and (entry.configurations or self.configurations) == "all":
                raise ValueError(f"environments.{label}: limits need a number of configurations, not all")
            if sum(agent.beside is None for agent in self.algorithms_in(label).values()) < 2:
                raise ValueError(
                    f"environments.{label}: two agents are compared, at least, beside variations"
                )
        for label, agent in self.algorithms.items():
            _member(agent.beside, self.algorithms, f"algorithms.{label}.beside")
            for environment in agent.environments or ():
                _member(environment, self.environments, f"algorithms.{label}.environments")
        if self.meta is not None:
            _member(self.meta.environment, self.environments, "meta.environment")
            _member(self.meta.agent, self.algorithms_in(self.meta.environment), "meta.agent")
            if not self.algorithms[self.meta.agent].family.startswith("A"):
                raise ValueError("meta.agent: only families A begin without a range")
            if self.meta.arms > (number := self.number(self.meta.environment)):
                raise ValueError(f"meta.arms: there are {number} configurations")
        return self

    def _check_carried(self, label: str, entry: GeneralizedEnvironment) -> None:
        """Choices of another environment need its domains and agents, and a rival on the same ground."""
        key, origin = f"environments.{label}", self.environments[entry.tuned_in]
        if origin.tuned_in:
            raise ValueError(f"{key}.tuned_in: nothing is tuned in '{entry.tuned_in}'")
        if new := sorted(set(entry.domains) - set(origin.domains)):
            raise ValueError(f"{key}: '{entry.tuned_in}' has no {', '.join(new)}")
        for name in filter(None, (entry.tuned_in, entry.beside)):
            if absent := sorted(set(self.algorithms_in(label)) - set(self.algorithms_in(name))):
                raise ValueError(f"{key}: '{name}' has no agent {', '.join(absent)}")
        if entry.beside is None:
            return
        rival = self.environments[entry.beside]
        drawn = ("domains", "variants", "single", "sampler")
        if rival.tuned_in or any(getattr(rival, name) != getattr(entry, name) for name in drawn):
            raise ValueError(f"{key}.beside: '{entry.beside}' has other environments, or is not tuned in")
        limits = ("most_features", "most_tiles")
        if self.number(entry.tuned_in) != self.number(entry.beside) or any(
            getattr(rival, name) != getattr(origin, name) for name in limits
        ):
            raise ValueError(
                f"{key}: '{entry.tuned_in}' and '{entry.beside}' are tuned among different configurations"
            )

    @property
    def carried(self) -> dict[str, tuple[str, str]]:
        """Labels where choices of another environment are tested -> that environment, and the rivals'."""
        entries = self.environments.items()
        return {label: (entry.tuned_in, entry.beside) for label, entry in entries if entry.tuned_in}

    def number(self, environment: str) -> int:
        """How many configurations are tuned among in one environment."""
        entry = self.environments[environment]
        if entry.tuned_in:
            return self.number(entry.tuned_in)
        number = entry.configurations or self.configurations
        return GRID if number == "all" else number

    def algorithms_in(self, environment: str) -> dict[str, Agent]:
        """The agents that run in one environment, by label."""
        return {
            label: agent
            for label, agent in self.algorithms.items()
            if agent.environments is None or environment in agent.environments
        }

    def blocks(self) -> dict[str, dict[str, dict[str, list[int]]]]:
        """Environment label -> TOGETHER -> name of a tuning job -> its number, as ``layout.Blocks``.

        There are none where choices of another environment are tested.
        """
        blocks = {}
        for label in self.environments:
            number = 0 if self.environments[label].tuned_in else self.number(label)
            parts = range(-(-number // self.configurations_per_job))
            blocks[label] = {TOGETHER: {f"part-{number}": [number] for number in parts}}
        return blocks

    def seeds(self, environment: str) -> dict[str, list[int]]:
        """Seeds of trials by job: one for all environments, or one for each trial in a single one."""
        if not self.environments[environment].single:
            return {"training": [self.seed], "evaluation": [self.seed]}
        first = self.seed + self.tuning
        return {
            "training": list(range(self.seed, first)),
            "evaluation": list(range(first, first + self.test)),
        }

    def plan(self, environment: str, meta: bool = False) -> "GeneralizedStudy":
        """What the trials in one environment depend on, and nothing else: what reruns them."""
        needed = dict.fromkeys([environment, self.environments[environment].tuned_in or environment])
        environments = {
            label: self.environments[label].model_copy(update={"title": None, "beside": None})
            for label in needed
        }
        agents = {
            label: agent.model_copy(update={"title": None, "beside": None, "environments": None})
            for label, agent in self.algorithms_in(environment).items()
        }
        kept = ("configurations", "configurations_per_job", "tuning", "test", "steps", "seed")
        return GeneralizedStudy(
            kind="generalized",
            name=self.name,
            title="",
            question="",
            environments=environments,
            algorithms=agents,
            meta=self.meta if meta else None,
            **{name: getattr(self, name) for name in kept},
        )

    def title_of(self, label: str) -> str:
        """How text and figures call an agent or environment."""
        entry = self.algorithms.get(label) or self.environments[label]
        return entry.title or label


def _member(name: str | None, known: Iterable[str], key: str) -> None:
    if name is not None and name not in known:
        raise ValueError(f"{key}: '{name}' is not one of {', '.join(known)}")
