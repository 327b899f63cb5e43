"""Files: atomic, deterministic, and refused with words when they are not what they should be."""

import json
import os

import numpy as np
import pandas as pd
import pytest

from seedbed.artifacts import (
    SCORE_COLUMNS,
    ArtifactError,
    atomic,
    read_arrays,
    read_json,
    read_table,
    sha256,
    write_arrays,
    write_json,
    write_table,
)


@pytest.fixture
def scores():
    return pd.DataFrame(
        {
            "study": ["a", "a"],
            "environment": "e",
            "algorithm": "x",
            "seed": [0, 1],
            "policy_mode": "greedy",
            "metric": "return",
            "value": [1.5, np.nan],
            "episodes": [200, 0],
            "status": ["ok", "no episode"],
        }
    )


def test_table_round_trip_and_equal_bytes(tmp_path, scores):
    for name in ("one", "two"):
        write_table(tmp_path / name, scores[scores.columns[::-1]], SCORE_COLUMNS)
    assert sha256(tmp_path / "one") == sha256(tmp_path / "two")
    again = read_table(tmp_path / "one", SCORE_COLUMNS)
    assert list(again) == list(SCORE_COLUMNS)
    pd.testing.assert_frame_equal(again, scores.astype(SCORE_COLUMNS))


def test_table_without_a_column_is_refused(tmp_path, scores):
    with pytest.raises(ArtifactError, match="lacks the columns \\['value'\\]"):
        write_table(tmp_path / "t", scores.drop(columns="value"), SCORE_COLUMNS)
    with pytest.raises(ArtifactError, match="does not fit"):
        write_table(tmp_path / "t", scores.assign(seed="many"), SCORE_COLUMNS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kept", [0, 4, 100, -20])
def test_truncated_parquet_is_named(tmp_path, scores, kept):
    path = tmp_path / "scores.parquet"
    write_table(path, scores, SCORE_COLUMNS)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ArtifactError, match=r"scores\.parquet is damaged or not Parquet.*Delete it"):
        read_table(path, SCORE_COLUMNS)


def test_missing_files_are_named(tmp_path):
    for read in (read_table, read_json, read_arrays):
        with pytest.raises(ArtifactError, match=r"nowhere is missing"):
            read(tmp_path / "nowhere")


def test_foreign_parquet_is_refused(tmp_path, scores):
    scores.to_parquet(tmp_path / "foreign.parquet")
    with pytest.raises(ArtifactError, match="table schema none"):
        read_table(tmp_path / "foreign.parquet")


def test_all_kinds_of_files_have_the_same_permissions(tmp_path, scores):
    write_arrays(tmp_path / "arrays", {"a": np.zeros(3)}, {})
    write_json(tmp_path / "json", {})
    write_table(tmp_path / "table", scores.iloc[:0], dict.fromkeys(scores, "string"))
    (tmp_path / "plain").write_text("")
    assert len({path.stat().st_mode for path in tmp_path.iterdir()}) == 1


def test_arrays_round_trip_with_equal_bytes(tmp_path):
    arrays = {"b": np.arange(6.0).reshape(2, 3), "a": np.array([True])}
    metadata = {"policy": "Q", "seeds": [1, 2], "note": "ä"}
    for name in ("one", "two"):
        write_arrays(tmp_path / name, dict(reversed(arrays.items())) if name == "two" else arrays, metadata)
    assert sha256(tmp_path / "one") == sha256(tmp_path / "two")
    again, document = read_arrays(tmp_path / "one")
    assert document == metadata
    assert all(np.array_equal(again[name], arrays[name]) for name in arrays)


def test_what_is_not_safetensors_is_refused(tmp_path):
    (tmp_path / "pickle").write_bytes(b"\x80\x04\x95cos\nsystem\n")
    with pytest.raises(ArtifactError, match="not a readable safetensors"):
        read_arrays(tmp_path / "pickle")
    from safetensors.numpy import save_file

    save_file({"x": np.ones(1)}, tmp_path / "foreign")
    with pytest.raises(ArtifactError, match="did not write it"):
        read_arrays(tmp_path / "foreign")


def test_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "x.json"
    write_json(path, {"a": 1})

    def fail_halfway():
        with atomic(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_halfway()
    assert read_json(path) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_json_has_no_nan(tmp_path):
    with pytest.raises(ValueError):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "y.json").write_text("{")
    with pytest.raises(ArtifactError, match="not readable JSON"):
        read_json(tmp_path / "y.json")


def test_unwritable_folder_is_named(tmp_path):
    """A file where a folder should be is refused to root as well."""
    (tmp_path / "results").write_text("a file")
    with pytest.raises(ArtifactError, match=r"Cannot write .*results/x\.json.*permissions"):
        write_json(tmp_path / "results" / "x.json", {})


def test_json_is_stable_text(tmp_path):
    write_json(tmp_path / "x.json", {"b": 1, "a": [1.5, None]})
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": [1.5, None], "b": 1}
    assert (tmp_path / "x.json").read_text().index('"a"') < (tmp_path / "x.json").read_text().index('"b"')
    assert os.listdir(tmp_path) == ["x.json"]


def test_only_the_columns_asked_for_are_read_and_the_schema_still_counts(tmp_path, scores):
    write_table(tmp_path / "t", scores, SCORE_COLUMNS)
    assert list(read_table(tmp_path / "t", only=("value", "seed", "not there"))) == ["seed", "value"]
    with pytest.raises(ArtifactError, match="is missing"):
        read_table(tmp_path / "none", only=("value",))
    with pytest.raises(ArtifactError, match="lacks the columns"):
        read_table(tmp_path / "t", SCORE_COLUMNS, only=("value",))
    scores.to_parquet(tmp_path / "foreign")
    with pytest.raises(ArtifactError, match="has table schema none"):
        read_table(tmp_path / "foreign", only=("value",))
