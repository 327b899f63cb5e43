"""What the tests of the report share."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for reporting_studies, as tests are no package

from reporting_studies import SETTINGS, study_document, write_study

from seedbed.reporting.study_results import read_study_results


@pytest.fixture(scope="session")
def interview(tmp_path_factory):
    """The folder ``results`` of the made-up study, and what the report reads of it."""
    results = tmp_path_factory.mktemp("project") / "results"
    write_study(results, study_document())
    return results, read_study_results("interview", results, SETTINGS)
