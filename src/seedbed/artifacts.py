"""Formats and atomic writing: Parquet tables, safetensors arrays, JSON and text.

Everything the pipeline writes goes through a temporary name beside its target and ``os.replace``, so a
killed job leaves either the old file or none. Equal content gives equal bytes. Nothing is ever pickled.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION = 1

SCORE_COLUMNS = {
    "study": "string",
    "environment": "string",
    "algorithm": "string",
    "seed": "int64",
    "policy_mode": "string",
    "metric": "string",
    "value": "float64",
    "episodes": "int64",
    "status": "string",
}
"""One value per training seed and metric. ``value`` is NaN exactly where ``status`` is not "ok"."""

EPISODE_COLUMNS = {
    "seed": "int64",
    "policy_mode": "string",
    "episode": "int64",
    "return": "float64",
    "length": "int64",
    "terminated": "bool",
    "truncated": "bool",
    "success": "bool",
}
"""One row per requested episode; an environment's final facts follow as ``final_<fact>``."""

STEP_COLUMNS = {
    "seed": "int64",
    "policy_mode": "string",
    "episode": "int64",
    "t": "int64",
    "action": "int64",
    "reward": "float64",
    "terminated": "bool",
    "truncated": "bool",
}
"""One row per environment step, t from 1; the environment's facts follow under their own names.

Where an action is an array, ``action`` is -1 and its entries follow as ``action_0``, ``action_1``, ...
"""


class SeedbedError(Exception):
    """An error that speaks to a person: what was wrong, where, what to do."""


class ArtifactError(SeedbedError):
    """A file is missing, damaged or of another kind than its name says."""


@contextlib.contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; on success it replaces ``path``, on failure it is removed.

    Raises:
        ArtifactError: the folder cannot be written.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise ArtifactError(
            f"Cannot write {path}: {error.strerror or error}. Check the folder's permissions and free space."
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any, sort_keys: bool = True) -> None:
    """Write JSON atomically, keys sorted unless their order means something; NaN is refused."""
    text = json.dumps(value, indent=2, sort_keys=sort_keys, allow_nan=False, ensure_ascii=False)
    write_text(path, text + "\n")


def read_json(path: str | Path) -> Any:
    """Read JSON.

    Raises:
        ArtifactError: the file is missing or not JSON.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing. Run the rule that makes it first.") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{path} is not readable JSON ({error}). Delete it and run again.") from None


def write_table(path: str | Path, table: "pd.DataFrame", columns: Mapping[str, str]) -> None:
    """Write a table as Parquet with the columns of a schema first, in order and of the schema's types.

    Args:
        path: target file.
        table: has at least ``columns``; further columns follow as they are.
        columns: name -> pandas type, such as ``SCORE_COLUMNS``.

    Raises:
        ArtifactError: a column of the schema is missing or cannot take its type.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    missing = [name for name in columns if name not in table]
    if missing:
        raise ArtifactError(f"{path}: the table lacks the columns {missing}; it has {list(table.columns)}.")
    try:
        ordered = table[[*columns, *(name for name in table if name not in columns)]].astype(dict(columns))
    except (TypeError, ValueError) as error:
        raise ArtifactError(f"{path}: a column does not fit its type in the schema: {error}") from None
    arrow = pa.Table.from_pandas(ordered, preserve_index=False)
    arrow = arrow.replace_schema_metadata({"seedbed_schema": str(SCHEMA_VERSION)})
    with atomic(path) as temporary:
        pq.write_table(arrow, temporary, compression="zstd", version="2.6")


def read_table(
    path: str | Path, columns: Mapping[str, str] | None = None, only: Collection[str] | None = None
) -> "pd.DataFrame":
    """Read a Parquet table and hold it against a schema.

    Args:
        path: source file.
        columns: required columns and types; None requires none.
        only: names of the columns to read, of those that are there; None reads all.

    Raises:
        ArtifactError: the file is missing, truncated, not Parquet, of another schema, or lacks a column.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        chosen = None if only is None else [name for name in pq.read_schema(path).names if name in only]
        arrow = pq.read_table(path, columns=chosen)
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing. Run the rule that makes it first.") from None
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise ArtifactError(
            f"{path} is damaged or not Parquet ({reason}). Delete it; the next run makes it anew."
        ) from None
    version = (arrow.schema.metadata or {}).get(b"seedbed_schema", b"none").decode()
    if version != str(SCHEMA_VERSION):
        raise ArtifactError(
            f"{path} has table schema {version}, Seedbed reads {SCHEMA_VERSION}. Delete it and run again."
        )
    table = arrow.to_pandas()
    missing = [name for name in columns or {} if name not in table]
    if missing:
        raise ArtifactError(f"{path} lacks the columns {missing}; it has {list(table.columns)}.")
    return table.astype(dict(columns)) if columns else table


def write_arrays(path: str | Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> None:
    """Write named arrays and one JSON document as safetensors.

    All metadata goes under one key: the format keeps several keys in no fixed order.
    """
    from safetensors.numpy import save

    document = json.dumps(metadata, sort_keys=True, allow_nan=False)
    content = save(
        {name: np.ascontiguousarray(arrays[name]) for name in sorted(arrays)}, {"seedbed": document}
    )
    with atomic(path) as temporary:
        temporary.write_bytes(content)  # save_file would let its owner alone read it


def read_arrays(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read what ``write_arrays`` wrote: arrays by name, and the metadata.

    Raises:
        ArtifactError: the file is missing, not safetensors, or not Seedbed's.
    """
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise ArtifactError(f"{path} is missing. Run the rule that makes it first.")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = json.loads((file.metadata() or {})["seedbed"])
            return {name: file.get_tensor(name) for name in file.keys()}, metadata  # noqa: SIM118
    except KeyError:
        raise ArtifactError(f"{path} is a safetensors file, but Seedbed did not write it.") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise ArtifactError(f"{path} is not a readable safetensors file ({error}).") from None


def sha256(path: str | Path) -> str:
    """SHA-256 of a file's bytes, hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
