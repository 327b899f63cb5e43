"""What config.yaml says of a secret evaluation."""

from pydantic import BaseModel, ConfigDict, Field


class SecretContest(BaseModel):
    """A secret evaluation whose steps are targets: secret_seal to secret_verify."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    folder: str = Field(description="Folder of the contest, with sealed/contest.yaml.")
    agents: list[str] = Field([], description="Folders of the agents that take part.")
    beacon: str | None = Field(None, description="The public value that the sealed plan asks for.")
    reruns: int = Field(5, ge=-1, description="Trials that secret_verify repeats; -1 for all.")
