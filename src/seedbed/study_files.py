"""Reading studies and the configuration from their files: every wrong key is named, with its file."""

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from seedbed.artifacts import SeedbedError
from seedbed.generalized_study import GeneralizedStudy
from seedbed.study import Config, Study

M = TypeVar("M", bound=BaseModel)
AnyStudy = Study | GeneralizedStudy
KINDS: dict[str, type[AnyStudy]] = {"training": Study, "generalized": GeneralizedStudy}
"""What a study file can say under ``kind``; the first where it says nothing."""
_RESERVED = ("report", "provenance", "logs")


class StudyError(SeedbedError):
    """A study or the configuration is wrong; the message names file and key."""


def _merged(base: Any, over: Any) -> Any:
    if isinstance(base, dict) and isinstance(over, dict):
        return base | {key: _merged(base.get(key), value) for key, value in over.items()}
    return over


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        there = ", ".join(sorted(other.name for other in path.parent.glob("*.yaml"))) or "nothing"
        raise StudyError(f"{path} does not exist; {path.parent}/ has {there}.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise StudyError(f"{path} is not readable YAML: {error}") from None
    if not isinstance(document, dict):
        raise StudyError(f"{path} must be a YAML mapping of keys to values.")
    return document


def _messages(error: ValidationError, model: type[BaseModel]) -> Iterator[str]:
    for problem in error.errors():
        where = ".".join(str(part) for part in problem["loc"] if part != "[key]") or "the whole"
        message = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            known = _keys(model)
            close = difflib.get_close_matches(str(problem["loc"][-1]), known, n=1)
            message = "unknown key" + (f"; did you mean '{close[0]}'?" if close else "")
        elif problem["type"] not in ("missing", "value_error"):
            message += f" (got {problem['input']!r})"
        yield f"  {where}: {message}"


def _keys(model: type[BaseModel]) -> list[str]:
    """All keys that occur anywhere in a schema."""
    schema = model.model_json_schema()
    parts = [schema, *schema.get("$defs", {}).values()]
    return sorted({key for part in parts for key in part.get("properties", {})})


def _validated(model: type[M], document: Any, source: str) -> M:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise StudyError("\n".join([f"{source} is not valid:", *_messages(error, model)])) from None


def load_config(document: Mapping[str, Any], source: str = "config.yaml") -> Config:
    """Validate a configuration.

    Raises:
        StudyError: naming each wrong key.
    """
    return _validated(Config, dict(document), source)


def as_study(document: Mapping[str, Any]) -> AnyStudy:
    """The study in a resolved document's "study"."""
    return KINDS[document.get("kind", "training")].model_validate(document)


def load_study(path: str | Path, preset: str) -> AnyStudy:
    """Read a study file, lay one of its presets over it, and validate it.

    Raises:
        StudyError: no such file or preset, or keys that are wrong, each named.
    """
    path = Path(path)
    document = _read_yaml(path)
    presets = document.pop("presets", None) or {}
    if preset not in presets:
        raise StudyError(f"{path} has no preset '{preset}'; it has {', '.join(presets) or 'none'}.")
    kind = document.get("kind", "training")
    if kind not in KINDS:
        raise StudyError(f"{path}: kind is one of {', '.join(KINDS)}, got {kind!r}.")
    if kind == "training":
        document.pop("kind", None)
    study = _validated(KINDS[kind], _merged(document, presets[preset] or {}), f"{path} (preset {preset})")
    if study.name in _RESERVED:
        raise StudyError(
            f"{path}: a study cannot be called '{study.name}': results/ has a folder of that name."
        )
    if study.name != path.stem:
        raise StudyError(f"{path}: name is '{study.name}', but the file's name says '{path.stem}'.")
    return study


def load_studies(config: Config, folder: str | Path = "studies") -> tuple[Config, dict[str, AnyStudy]]:
    """The studies of a configuration by name, each before its companions; and the configuration naming all.

    Raises:
        StudyError: as ``load_study``.
    """
    studies: dict[str, AnyStudy] = {}
    waiting = list(config.studies)
    while waiting:
        name = waiting.pop(0)
        if name not in studies:
            studies[name] = load_study(Path(folder) / f"{name}.yaml", config.preset)
            waiting[:0] = getattr(studies[name], "companions", [])
    return config.model_copy(update={"studies": list(studies)}), studies
