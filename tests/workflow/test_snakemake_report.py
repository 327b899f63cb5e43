"""Snakemake's own report of the workflow."""

import pytest


@pytest.mark.slow
def test_snakemakes_own_report_holds_the_figures_with_their_captions(copy_of_finished):
    run = copy_of_finished.snakemake("--report", "overview.html")
    assert run.returncode == 0, run.stdout
    page = (copy_of_finished.folder / "overview.html").read_text()
    for text in ("learning_curves", "Final scores in the test episodes", "pairwise_tests"):
        assert text in page
