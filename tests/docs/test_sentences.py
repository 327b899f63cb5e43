"""Pages of numbered sentences: each names tests, and these exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["evaluation-semantics", "metric-definitions"]


def sentences(page):
    """The numbered sentences of a page."""
    text = (ROOT / f"docs/{page}.md").read_text().split("\n## How to read")[0]
    return re.split(r"(?m)^(?=\d+\. )", text)[1:]


def names_of_tests(path):
    """Names of a file's tests as pytest has them, without parameters."""
    for node in ast.parse((ROOT / path).read_text()).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from (
                f"{node.name}::{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)
            )


@pytest.mark.parametrize("page", PAGES)
def test_each_sentence_of_the_page_names_tests_that_exist(page):
    assert len(sentences(page)) >= 20
    for number, sentence in enumerate(sentences(page), 1):
        assert sentence.startswith(f"{number}. ")
        named = re.findall(r"`(tests/\S+?\.py)::(\S+?)`", sentence)
        assert named, f"no test is named in: {sentence}"
        assert len(named) == sentence.count("tests/"), f"a test is named in another form in: {sentence}"
        for path, test in named:
            assert test.split("::")[-1].startswith("test_")
            assert test in set(names_of_tests(path)), f"{path} has no {test}"
