"""What a job is told: the part of a study that one training or evaluation needs, and nothing else.

A job reruns when its settings change, so a key that it does not read must not be among them.
"""

from typing import TYPE_CHECKING, Any

from seedbed.artifacts import ArtifactError, read_json
from seedbed.layout import BLOCK, Blocks

if TYPE_CHECKING:
    from seedbed.study import Study


def training_settings(
    study: "Study", environment: str, algorithm: str, block: str, seeds: list[int]
) -> dict[str, Any]:
    """Settings of one training job, plain JSON."""
    curve = study.evaluation.curve
    return _cell(study, environment, algorithm, block, seeds) | {
        "curve": {
            "every": curve.every,
            "episodes": curve.reset_seeds or curve.episodes,
            "lanes": study.evaluation.lanes,
        }
    }


def evaluation_settings(
    study: "Study", environment: str, algorithm: str, block: str, seeds: list[int]
) -> dict[str, Any]:
    """Settings of one evaluation job, plain JSON."""
    test = study.evaluation.test
    return _cell(study, environment, algorithm, block, seeds) | {
        "episodes": test.reset_seeds or test.episodes,
        "lanes": study.evaluation.lanes,
    }


def _cell(study: "Study", environment: str, algorithm: str, block: str, seeds: list[int]) -> dict[str, Any]:
    place, entry = study.environments[environment], study.algorithms[algorithm]
    return {
        "study": study.name,
        "environment": {
            "label": environment,
            "environment": place.environment,
            "arguments": place.arguments,
        },
        "algorithm": {
            "label": algorithm,
            "algorithm": entry.algorithm,
            "arguments": study.arguments(algorithm, environment),
            "budget": entry.budget,
        },
        "block": block,
        "seeds": seeds,
    }


def check_runs(study: "Study", divided: Blocks) -> None:
    """Hold each block's run records against the study.

    Raises:
        ArtifactError: a block was trained or evaluated under other settings than the study's; names it.
    """
    for environment, algorithms in divided.items():
        for algorithm, blocks in algorithms.items():
            for block, seeds in blocks.items():
                folder = BLOCK.format(
                    study=study.name, environment=environment, algorithm=algorithm, block=block
                )
                for name, settings in (("run", training_settings), ("evaluation", evaluation_settings)):
                    path = f"{folder}/{name}.json"
                    expected = settings(study, environment, algorithm, block, seeds)
                    made = read_json(path)["configuration"]
                    if made != expected:
                        other = sorted(key for key in expected if made.get(key) != expected[key])
                        raise ArtifactError(
                            f"{path} was made under other settings than the study's now "
                            f"({', '.join(other)}). Results and study must agree: ./run makes it anew."
                        )
