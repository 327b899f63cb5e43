"""Arguments on the command line: KEY=VALUE as the nested mapping that a study would hold."""

import json
from collections.abc import Iterable
from typing import Any

import yaml

from seedbed.artifacts import SeedbedError


def nested(pairs: Iterable[str]) -> dict[str, Any]:
    """Arguments from "key=value"; a value is JSON or else YAML, and dots in a key lead into mappings.

    Raises:
        SeedbedError: no "=", an empty or repeated key, a key both with and without parts, or a value that
            cannot be read.
    """
    arguments: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        *path, last = key.split(".")
        if not (equals and all([*path, last])):
            raise SeedbedError(f"'{pair}' is no KEY=VALUE, such as horizon=64 or kwargs.g=9.8.")
        inner = arguments
        for part in path:
            inner = inner.setdefault(part, {})
            if not isinstance(inner, dict):
                raise SeedbedError(f"'{pair}': '{part}' already has a value. Give each argument once.")
        if last in inner:
            raise SeedbedError(f"'{pair}': '{key}' already has a value. Give each argument once.")
        inner[last] = _read(text, pair)
    return arguments


def _read(text: str, pair: str) -> Any:
    try:
        value = json.loads(text)  # first, since 1e-3 is a number to JSON and a text to YAML
    except json.JSONDecodeError:
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise SeedbedError(f"'{pair}': the value is neither JSON nor YAML: {error}") from None
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise SeedbedError(
            f"'{pair}': {value} is nothing that JSON has; give a number, text or list."
        ) from None
    return value
