"""The report of a generalized study: tables, sentences, traces, figure."""

import dataclasses
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from seedbed.figures.box_plots import box_plots
from seedbed.figures.names import figure_names
from seedbed.figures.style import save, style
from seedbed.generalized_study import GeneralizedStudy
from seedbed.layout import generalized_tests
from seedbed.provenance.checklist import seed_plan
from seedbed.reporting.formatting import general
from seedbed.reporting.generalized_comparisons import verdict
from seedbed.reporting.generalized_results import read_generalized_results
from seedbed.reporting.generalized_section import generalized_limitations, pair_claims, reversals
from seedbed.reporting.generalized_tables import generalized_table_names, generalized_tables
from seedbed.reporting.paper import write_paper
from seedbed.reporting.result_list import result_list
from seedbed.reporting.tables import write_tables
from seedbed.reporting.trace import trace
from seedbed.study import PaperSettings, StatisticsSettings

ROOT = Path(__file__).parents[2]
SETTINGS = StatisticsSettings(draws=1000)


@pytest.fixture(scope="module")
def results(ran):
    return read_generalized_results("ranges", ran[0] / "results", SETTINGS)


@pytest.fixture(scope="module")
def paper(ran, results, tmp_path_factory):
    """The folder of results with the paper in it, and the paper's text without trace marks."""
    folder = tmp_path_factory.mktemp("written") / "results"
    shutil.copytree(ran[0] / "results", folder)
    figures = {"ranges": figure_names(results.study)}
    write_paper(PaperSettings(), [results], figures, ROOT / "report", folder)
    text = (folder / "report/paper.md").read_text()
    return folder, re.sub(r'\{trace="[^"]*"\}', "", text)


def row_of(results, **changes):
    """The row of A and C in one environment, with other numbers."""
    return results.comparison("car", "A", "C") | {"n": 5, "ties": 0} | changes


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"difference": 2.0, "p_student": 0.01, "wins": 5, "losses": 0, "p_sign": 0.01}, "A, in both"),
        ({"difference": -2.0, "p_student": 0.01, "wins": 0, "losses": 5, "p_sign": 0.01}, "C, in both"),
        ({"difference": 2.0, "p_student": 0.01, "p_sign": 0.2}, "A, in the mean only"),
        ({"p_student": 0.2, "wins": 0, "losses": 5, "p_sign": 0.01}, "C, in wins only"),
        (
            {"difference": 2.0, "p_student": 0.01, "wins": 0, "losses": 5, "p_sign": 0.01},
            "mean: A, wins: C",
        ),
        ({"p_student": 0.2, "p_sign": 0.2}, "undecided"),
        ({"p_student": np.nan, "p_sign": np.nan}, "undecided"),
        ({"ties": 5}, "equal everywhere"),
    ],
)
def test_the_verdict_follows_from_both_tests(results, changes, said):
    assert verdict(results, row_of(results, **changes), "A", "C") == said


def test_tables_are_those_that_are_named(results, tmp_path):
    tables = generalized_tables(results)
    assert list(tables) == generalized_table_names(results.study)
    assert {"single", "carried", "sensitivities", "series"} <= set(tables)
    write_tables(tables, tmp_path)
    values = pd.read_csv(tmp_path / "verdicts.csv")
    assert len(values) == 2 * 3 * 2  # environments, pairs, methods
    assert set(values.label) == {"car", "both"}
    varied = pd.read_csv(tmp_path / "sensitivities.csv")
    assert set(varied.label) == {"open", "car", "wide", "water"}
    assert set(varied[varied.label == "car"].agent_x) | set(varied[varied.label == "car"].agent_y) == {
        "A",
        "A_exact",
        "C",
    }
    bare = results.study.model_copy(
        update={
            "environments": {"car": results.study.environments["car"]},
            "algorithms": {name: results.study.algorithms[name] for name in "AB"},
            "meta": None,
        }
    )
    assert generalized_table_names(bare) == ["verdicts", "choices", "methods", "cost"]


def test_the_paper_says_what_came_out_and_how(paper, results):
    _, text = paper
    for label in results.main:
        for claim in pair_claims(results, label):
            assert claim.text.split(":")[0].replace("&", r"\&") in text
    assert "both \\& more" in text
    abstract = text.split("---")[1]
    assert [abstract.count(f"car, A against {other}:") for other in "BC"] == [1, 1]
    assert "B against C" not in abstract
    wide = r"noise in \[0, 1\], scales in \[0.01, 100\] and shifts in \[−100, 100\]"
    assert f"- wide: mountain car, {wide}; [5] configurations." in text
    assert f"- narrow: mountain car, {wide}; tested with what was chosen in car." in text
    assert "wide, with what was chosen in car" in text
    assert "replacing" in text
    assert "Copeland" in text
    assert f"of the paper's {general(3024)} configurations" in text
    assert "{%" not in text
    assert "{{" not in text


def test_every_number_leads_back_to_trials(paper):
    folder, _ = paper
    steps = trace("ranges/claim/car/A/B", folder)
    assert [step.what for step in steps] == ["printed", "statistic", "trials", "trials"]
    assert steps[-1].values["trials"] == len(
        (table := pd.read_parquet(folder / "ranges/test.parquet"))[table.label == "car"]
    )
    carried = trace("ranges/carried/narrow/A/difference", folder)
    assert [step.what for step in carried] == ["printed", "statistic", "trials", "trials"]
    assert carried[2].values["trials"] == 2 * 5 * 3, "tuning trials of A in car and in wide"
    series = trace("ranges/series/chooses/difference", folder)
    assert series[-1].file == "ranges/meta/trials.parquet"
    assert trace("ranges/declared/study/tuning", folder)[-1].values == {"study/tuning": 3}


def test_a_reversal_between_the_methods_is_told(results):
    table = results.comparisons.copy()
    rows = (table.label == "both") & (table.agent_x == "B") & (table.agent_y == "B")
    table.loc[rows, ["configuration_x", "configuration_y"]] = [1, 2]
    changed = {"difference": -9.0, "p_student": 0.01, "wins": 5, "losses": 0, "p_sign": 0.01}
    table.loc[rows, list(changed)] = list(changed.values())
    told = reversals(dataclasses.replace(results, comparisons=table))
    said = next(claim.text for claim in told if claim.identity.endswith("reversal/both/B"))
    assert "the mean's choice has the better test mean; Copeland's choice wins more often (5 to 0" in said


@pytest.mark.parametrize(
    ("wins", "p_sign", "p_equivalence", "said"),
    [
        (0, 0.01, 0.001, "C is likelier to win; their means are equal within 5 % (p = 0.001)."),
        (0, 0.01, 0.2, "C is likelier to win; who has the higher expected score is undecided."),
        (3, 1.0, 0.001, "Neither is shown to be better; their means are equal within 5 % (p = 0.001)."),
        (
            3,
            1.0,
            0.2,
            "Neither is shown to be better; that their means are equal within 5 % (p = 0.200) is not",
        ),
    ],
)
def test_sentences_say_equal_only_where_it_is_shown(results, wins, p_sign, p_equivalence, said):
    table = results.comparisons.copy()
    rows = (table.label == "car") & (table.agent_x == "A") & (table.agent_y == "C")
    changed = {"wins": wins, "losses": 5 - wins, "ties": 0, "p_sign": p_sign, "p_student": 0.5}
    changed["p_equivalence"] = p_equivalence
    table.loc[rows, list(changed)] = list(changed.values())
    told = pair_claims(dataclasses.replace(results, comparisons=table), "car")
    text = next(claim.text for claim in told if claim.identity.endswith("car/A/C"))
    assert said in text.replace("\xa0", " ")


def test_a_hung_trial_is_a_limitation(results):
    picks = results.picks.copy()
    rows = (picks.label == "car") & (picks.agent == "B")
    picks.loc[rows, "without_episode"] = 2
    told = [claim.text for claim in generalized_limitations(dataclasses.replace(results, picks=picks))]
    assert any(text.startswith("B in car completed no episode in 2") for text in told)


def test_diverged_trials_are_a_limitation(results):
    picks = results.picks.copy()
    picks[["diverged", "test_diverged"]] = 0.0, 0
    told = [claim.text for claim in generalized_limitations(dataclasses.replace(results, picks=picks))]
    assert not any("finite" in text for text in told)
    picks.loc[(picks.label == "car") & (picks.agent == "B"), ["diverged", "test_diverged"]] = 0.125, 2
    told = [claim.text for claim in generalized_limitations(dataclasses.replace(results, picks=picks))]
    said = next(text for text in told if "finite" in text).replace("\xa0", " ")
    assert said.startswith(
        "In car, errors ceased to be finite in 0.0 % of A's, 12.5 % of B's and 0.0 % of C's"
    )
    assert "and in 2 test trials;" in said


def test_a_study_without_samples_says_nothing_of_them(results):
    study = GeneralizedStudy.model_validate(
        results.study.model_dump() | {"configurations": "all", "tuning": 25, "test": 100, "steps": 70_000}
    )
    told = " ".join(
        claim.text for claim in generalized_limitations(dataclasses.replace(results, study=study))
    )
    assert "drawn at random" not in told
    assert "the paper has 25" not in told


def test_the_plan_of_seeds_is_what_the_run_records_say(ran):
    project, study = ran
    cells = {cell["environment"]: cell for cell in seed_plan([study])["ranges"]["cells"]}
    assert cells["car"]["jobs"] == {"training": [0], "evaluation": [0]}
    assert cells["alone"]["jobs"]["training"] == [0, 1, 2]
    assert [name for name in generalized_tests(study) if not (project / name).exists()] == []
    assert {Path(name).name for name in result_list(study, study.blocks())} >= {
        "verdicts.csv",
        "box_plots.pdf",
        "run.json",
        "tuning.parquet",
    }


def texts_of(figure, monkeypatch):
    seen, draw = [], Text.draw

    def record(self, renderer):
        if self.get_visible() and self.get_text().strip():
            seen.append((self.get_text(), self.get_window_extent(renderer)))
        return draw(self, renderer)

    with style(), monkeypatch.context() as patch:
        patch.setattr(Text, "draw", record)
        figure.canvas.draw()
    return seen


@pytest.mark.parametrize("title", ["A", "an agent whose name goes on and on, $5 & more"])
def test_box_plots_are_legible_and_count_what_lies_beyond(ran, results, title, monkeypatch):
    test = pd.read_parquet(ran[0] / "results/ranges/test.parquet")
    hung = (test.label == "car") & (test.agent == "B") & (test.position == 0)
    test.loc[hung, "score"] = -69_999.0
    document = results.study.model_dump()
    document["algorithms"]["A"]["title"] = title
    figure = box_plots(test, results.picks, GeneralizedStudy.model_validate(document))
    texts = texts_of(figure, monkeypatch)
    assert any(text == "↓ 1" for text, _ in texts)
    page = figure.bbox
    for number, (text, box) in enumerate(texts):
        assert min(box.x0, page.x1 - box.x1, box.y0, page.y1 - box.y1) >= 0, text
        for other, place in texts[number + 1 :]:
            across, down = min(box.x1, place.x1) - max(box.x0, place.x0), 0
            down = min(box.y1, place.y1) - max(box.y0, place.y0)
            assert across <= 1 or down <= 1.5, f"{text!r} overlaps {other!r}"


def test_box_plots_have_the_same_bytes_again_and_empty_ones_say_so(ran, results, tmp_path, monkeypatch):
    test = pd.read_parquet(ran[0] / "results/ranges/test.parquet")
    once = [path.read_bytes() for path in save(box_plots(test, results.picks, results.study), tmp_path / "a")]
    again = [
        path.read_bytes() for path in save(box_plots(test, results.picks, results.study), tmp_path / "b")
    ]
    assert once == again
    empty = texts_of(box_plots(test.iloc[:0], results.picks, results.study), monkeypatch)
    assert "no test scores" in [text for text, _ in empty]
