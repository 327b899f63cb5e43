"""What a job is told: the part of a study that one training or evaluation needs, and nothing else.

A job reruns when its settings change, so a key that it does not read must not be among them.
"""

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedbed.artifacts import ArtifactError, read_json, sha256
from seedbed.layout import BLOCK, Blocks

if TYPE_CHECKING:
    from seedbed.study import Study


def training_settings(
    study: "Study", environment: str, algorithm: str, block: str, seeds: list[int]
) -> dict[str, Any]:
    """Settings of one training job, plain JSON.

    Where the algorithm reads files, "files" holds their SHA-256, so that a changed file trains again; null
    stands for a file that is not there.
    """
    curve = study.evaluation.curve
    read = {path: _checksum(path) for path in study.files(algorithm, environment, seeds)}
    files = {"files": read} if read else {}
    points = {
        "every": curve.every,
        "at": curve.at,
        "episodes": curve.reset_seeds or curve.episodes,
        "lanes": study.evaluation.lanes,
    }
    return _cell(study, environment, algorithm, block, seeds) | files | {"curve": points}


def _checksum(path: str) -> str | None:
    """SHA-256 of a file, None if it is not there; a file is read once as long as it stays the same."""
    if not Path(path).is_file():
        return None
    status = Path(path).stat()
    return _read_checksum(path, status.st_mtime_ns, status.st_size, status.st_ino)


@functools.cache
def _read_checksum(path: str, *state: int) -> str:
    return sha256(path)


def check_files(settings: dict[str, Any]) -> None:
    """Hold the files of a training job against the checksums it was planned with.

    Raises:
        ArtifactError: one has changed since.
    """
    for path, planned in settings.get("files", {}).items():
        if _checksum(path) != planned:
            raise ArtifactError(
                f"{path} changed between planning and start. Nothing was computed; run again."
            )


def evaluation_settings(
    study: "Study", environment: str, algorithm: str, block: str, seeds: list[int]
) -> dict[str, Any]:
    """Settings of one evaluation job, plain JSON."""
    test = study.evaluation.test
    return _cell(study, environment, algorithm, block, seeds) | {
        "episodes": test.reset_seeds or test.episodes,
        "lanes": study.evaluation.lanes,
        "forecast": study.evaluation.forecast and study.evaluation.forecast.model_dump(),
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
                    for file, checksum in expected.get("files", {}).items():
                        if checksum is None:  # gone since: what was read lies in policy.safetensors
                            expected["files"][file] = made.get("files", {}).get(file)
                    if made != expected:
                        other = sorted(key for key in expected if made.get(key) != expected[key])
                        raise ArtifactError(
                            f"{path} was made under other settings than the study's now "
                            f"({', '.join(other)}). Results and study must agree: ./run makes it anew."
                        )
