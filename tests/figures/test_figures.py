"""Every figure, on usual and on ugly tables: nothing overlaps, is cut off or invented; bytes repeat."""

import dataclasses
import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from seedbed.figures.catalogue import FIGURES, draw
from seedbed.figures.names import GENERAL, OF_ENVIRONMENT, OF_METRIC_SET, figure_names, kind_of
from seedbed.figures.style import save, style
from seedbed.figures.tables import Tables

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cases(synthetic, usual):
    """Kind of tables -> (tables, study)."""
    tables, study = usual
    learners = {"rule_based": 0.3} | {f"learner_{k}": 0.08 * k for k in range(11)}
    many = synthetic.study(learners, seeds=3)
    ugly = synthetic.study(environments=("one", "two"), ugly=True, seeds=2)
    one = synthetic.study(seeds=1)
    nothing = {field.name: getattr(tables, field.name) for field in dataclasses.fields(tables)}
    nothing = {k: v.iloc[:0] if isinstance(v, pd.DataFrame) else v for k, v in nothing.items()}
    return {
        "usual": (tables, study),
        "twelve algorithms": (synthetic.tables(many, learners), many),
        "ugly titles": (synthetic.tables(ugly), ugly),
        "one seed": (synthetic.tables(one), one),
        "nobody masters": (synthetic.tables(one, dict.fromkeys(synthetic.SKILL, 0.0)), one),
        "no rows": (Tables(**nothing), study),
        "holes": (with_holes(tables), study),
    }


KINDS = ("twelve algorithms", "ugly titles", "nobody masters", "no rows", "holes")


def with_holes(tables):
    """Two seeds of PPO are missing, DQN has no value at all, curves and incidence have gaps."""
    scores, curves = tables.scores.copy(), tables.curves.copy()
    lost = (scores["algorithm"] == "ppo") & scores["seed"].isin([2, 5]) | (scores["algorithm"] == "dqn")
    scores.loc[lost, ["value", "status"]] = [np.nan, "crashed"]
    summary = tables.summary.copy()
    numbers = summary.select_dtypes("float").columns
    summary.loc[summary["algorithm"] == "dqn", numbers] = np.nan
    curves.loc[curves["steps"].isin([10_000, 15_000]), ["mean", "low", "high"]] = np.nan
    curves.loc[curves["steps"].isin([10_000, 15_000]), "n"] = 0
    comparisons = tables.comparisons.copy()
    comparisons.loc[0, ["d_av", "p_corrected"]] = np.nan
    comparisons.loc[0, ["decision", "note"]] = ["not testable", "not testable: no common seed"]
    return dataclasses.replace(tables, scores=scores, summary=summary, curves=curves, comparisons=comparisons)


def drawn_texts(figure, monkeypatch):
    """Every text that really is drawn, with its place in pixels."""
    seen, draw = [], Text.draw

    def record(self, renderer):
        if self.get_visible() and self.get_text().strip():
            seen.append((self.get_text(), self.get_window_extent(renderer)))
        return draw(self, renderer)

    with style(), monkeypatch.context() as patch:
        patch.setattr(Text, "draw", record)
        figure.canvas.draw()
    return seen


def assert_legible(figure, monkeypatch):
    texts = drawn_texts(figure, monkeypatch)
    page = figure.bbox
    assert texts
    for text, box in texts:
        inside = (box.x0 - page.x0, page.x1 - box.x1, box.y0 - page.y0, page.y1 - box.y1)
        assert min(inside) >= 0, f"{text!r} is cut off"
    for (one, a), (other, b) in itertools.combinations(texts, 2):
        across, down = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across <= 1 or down <= 1.5, f"{one!r} overlaps {other!r}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FIGURES)
def test_no_text_overlaps_another_or_leaves_the_page(cases, name, kind, monkeypatch):
    assert_legible(FIGURES[name](*cases[kind]), monkeypatch)


def test_the_figures_of_a_goal_study_are_legible_and_name_every_algorithm(walks, monkeypatch):
    tables, study, _ = walks
    assert figure_names(study) == (*GENERAL, "success_incidence", "trajectories")
    for name in figure_names(study):
        figure = draw(name, tables, study)
        assert_legible(figure, monkeypatch)
        if name != "pairwise_tests":
            assert {"walker", "random", "oracle"} <= set(words(figure, monkeypatch).split())


def words(figure, monkeypatch):
    return " ".join(" ".join(text.split()) for text, _ in drawn_texts(figure, monkeypatch))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("learning_curves", "no learning curve: nothing was evaluated while training"),
        ("bars", "no run"),
        ("pairwise_tests", "no pair was tested"),
        ("mastery_incidence", "no episodes"),
        ("success_incidence", "no episodes"),
        ("trajectories", "no episode was followed"),
        ("gain_by_modality", "no run"),
        ("difficulty_mix", "no run"),
        ("reliability", "no forecasts: no policy has a model of the environment"),
    ],
)
def test_empty_tables_say_so(cases, name, said, monkeypatch):
    assert said in words(FIGURES[name](*cases["no rows"]), monkeypatch)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("learning_curves", "One training seed: no band can be given."),
        ("bars", "One training seed: no interval can be given."),
        ("pairwise_tests", "not testable"),
        ("mastery_incidence", "One training seed: no band can be given."),
        ("success_incidence", "One training seed: no band can be given."),
        ("gain_by_modality", "one training seed; no interval can be given"),
        ("difficulty_mix", "over one training seed"),
        ("reliability", "One training seed: no interval can be given."),
    ],
)
def test_one_seed_has_no_interval_and_says_so(cases, name, said, monkeypatch):
    figure = FIGURES[name](*cases["one seed"])
    assert said in words(figure, monkeypatch)
    if name in ("learning_curves", "mastery_incidence", "success_incidence"):
        assert not any(band.get_paths() for axes in figure.axes for band in axes.collections)


def test_nobody_mastering_is_said(cases, monkeypatch):
    assert "no episode reached mastery" in words(
        FIGURES["mastery_incidence"](*cases["nobody masters"]), monkeypatch
    )


def test_what_is_missing_gives_its_reason_and_no_bar(cases, monkeypatch):
    tables, study = cases["holes"]
    figure = FIGURES["bars"](tables, study)
    text = words(figure, monkeypatch)
    assert "crashed" in text
    assert "6 of 8 seeds" in text
    assert "no question asked" in words(FIGURES["difficulty_mix"](tables, study), monkeypatch)
    for axes in figure.axes:  # a count must not run into the panel beside it
        for note in axes.texts:
            assert note.get_window_extent().x1 <= axes.get_window_extent().x1, note.get_text()
    bars = figure.axes[0].patches
    assert len(bars) == len(study.algorithms) - 1  # DQN's place stays empty
    assert all(np.isfinite(bar.get_width()) for bar in bars)


def test_a_pair_that_could_not_be_tested_shows_no_number(cases, monkeypatch):
    text = words(FIGURES["pairwise_tests"](*cases["holes"]), monkeypatch)
    assert "× not testable" in text
    assert "nan" not in text.lower()
    assert "Not testable: no common seed." in text


def test_bars_end_at_the_means_of_the_summary(usual):
    tables, study = usual
    axes = FIGURES["bars"](tables, study).axes[0]
    widths = {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bar in axes.patches}
    summary = tables.summary.set_index(["algorithm", "metric"])["mean"]
    assert widths[0] == summary["ppo", "restricted_time_to_mastery"]
    assert widths[3] == summary["rule_based", "restricted_time_to_mastery"]  # after three learners
    assert axes.get_xlim()[0] == 0


def test_curves_are_those_of_the_table_and_end_where_training_ended(usual):
    tables, study = usual
    axes = FIGURES["learning_curves"](tables, study).axes[0]
    rows = tables.curves[(tables.curves["algorithm"] == "dqn") & (tables.curves["metric"] == "return")]
    curves = [line for line in axes.lines if len(line.get_xdata()) == len(rows)]
    assert any(np.array_equal(line.get_ydata(), rows["mean"]) for line in curves)
    assert rows["steps"].max() == 30_000


@pytest.mark.parametrize(("better", "sign"), [("lower", "▼"), ("higher", "▲")])
def test_decisions_point_to_the_better_one_whichever_direction_is_better(usual, better, sign, monkeypatch):
    """Rule-based (the row) against PPO (the column), a smaller value in the row's disfavour or favour."""
    tables, study = usual
    row = tables.comparisons[
        (tables.comparisons["algorithm_a"] == "rule_based") & (tables.comparisons["algorithm_b"] == "ppo")
    ].copy()
    row["better_is"] = better
    row["d_av"] = 1.5  # rule-based has the larger value
    row["decision"] = "a better" if better == "higher" else "b better"
    row["p_corrected"] = 0.0004
    text = words(FIGURES["pairwise_tests"](dataclasses.replace(tables, comparisons=row), study), monkeypatch)
    effect = "+1.50" if better == "higher" else "−1.50"
    assert f"{sign} {effect} p < .001" in text


def test_titles_with_signs_stand_as_they_are(cases, monkeypatch, synthetic):
    text = words(FIGURES["difficulty_mix"](*cases["ugly titles"]), monkeypatch)
    assert "Costs $5 & 100%_of <b>x</b> $y^2$" in text


def test_saving_twice_gives_the_same_bytes_and_leaves_nothing_else(usual, tmp_path):
    for name in ("difficulty_mix", "pairwise_tests"):
        first = save(FIGURES[name](*usual), tmp_path / "a" / name)
        second = save(FIGURES[name](*usual), tmp_path / "b" / name)
        assert [path.suffix for path in first] == [".pdf", ".svg", ".png"]
        for one, other in zip(first, second, strict=True):
            assert one.read_bytes() == other.read_bytes()
    assert len(list((tmp_path / "a").iterdir())) == 6


def test_another_process_gives_the_same_bytes_and_never_loads_pyplot(usual, tmp_path):
    tables, study = usual
    for field in dataclasses.fields(tables):
        value = getattr(tables, field.name)
        if isinstance(value, pd.DataFrame):
            value.to_parquet(tmp_path / f"{field.name}.parquet")
    (tmp_path / "study.json").write_text(study.model_dump_json())
    program = f"""
import sys, pathlib, pandas as pd
import matplotlib; matplotlib.rcParams["font.size"] = 30; matplotlib.rcParams["axes.grid"] = False
from seedbed.study import Study
from seedbed.figures.catalogue import FIGURES
from seedbed.figures.style import save
from seedbed.figures.tables import Tables
folder = pathlib.Path({str(tmp_path)!r})
names = ("scores", "summary", "comparisons", "curves", "incidence", "reliability")
tables = Tables(*(pd.read_parquet(folder / (name + ".parquet")) for name in names))
study = Study.model_validate_json((folder / "study.json").read_text())
save(FIGURES["mastery_incidence"](tables, study), folder / "there")
assert "matplotlib.pyplot" not in sys.modules
"""
    environment = os.environ | {
        "PYTHONHASHSEED": "77",
        "PYTHONPATH": str(ROOT / "src"),
        "MPLBACKEND": "agg",
        "TZ": "Asia/Tokyo",
    }
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, cwd=tmp_path)
    for here in save(FIGURES["mastery_incidence"](tables, study), tmp_path / "here"):
        assert here.read_bytes() == here.with_stem("there").read_bytes(), here.suffix


def test_files_hold_no_date_and_embed_their_fonts(usual, tmp_path):
    pdf, svg, png = save(FIGURES["pairwise_tests"](*usual), tmp_path / "x")
    assert b"CreationDate" not in pdf.read_bytes()
    assert b"/Type3" not in pdf.read_bytes()
    assert b"dc:date" not in svg.read_bytes()
    assert b"Seedbed" in png.read_bytes()


def test_drawing_leaves_the_users_settings_alone(usual):
    import matplotlib

    before = dict(matplotlib.rcParams)
    FIGURES["pairwise_tests"](*usual)
    assert dict(matplotlib.rcParams) == before


def test_names_match_the_catalogue_and_every_figure_has_a_caption(usual):
    _, study = usual
    known = (*GENERAL, *itertools.chain(*OF_METRIC_SET.values(), *OF_ENVIRONMENT.values()))
    assert sorted(known) == sorted(FIGURES)
    assert figure_names(study) == GENERAL + OF_METRIC_SET["interview"]
    captions = {path.stem: path.read_text() for path in (ROOT / "report" / "captions").glob("*.rst")}
    assert set(FIGURES) <= set(captions)
    assert all(text.strip() for text in captions.values())


def test_several_environments_have_one_figure_each(cases):
    tables, study = cases["ugly titles"]
    names = figure_names(study)
    assert names[:3] == ("learning_curves-one", "learning_curves-two", "bars-one")
    assert {kind_of(name) for name in names} == {*GENERAL, *OF_METRIC_SET["interview"]}
    assert len(draw("learning_curves-two", tables, study).axes) == 2
    assert len(draw("pairwise_tests", tables, study).axes) == 4
    with pytest.raises(KeyError):
        draw("bars-three", tables, study)


@pytest.mark.parametrize("name", ["bars", "difficulty_mix"])
def test_a_figure_of_one_environment_counts_the_seeds_that_run_there(cases, synthetic, name, monkeypatch):
    tables, study = cases["usual"]
    entry = study.environments["default"]
    few = entry.model_copy(update={"seeds": [0, 1, 2]})
    alone = study.model_copy(update={"environments": {"default": few}})
    beside = study.model_copy(update={"environments": {"default": few, "other": entry}})
    assert "n = 3" in words(draw(name, tables, alone), monkeypatch)
    assert "n = 3" in words(draw(f"{name}-default", tables, beside), monkeypatch)
    assert "n = 8" in words(draw(name, tables, study), monkeypatch)


def test_reliability_shows_the_bins_of_learners_with_a_model_alone(cases, monkeypatch):
    tables, study = cases["usual"]
    study = study.model_copy(update={"metrics": [*study.metrics, "model"]})
    assert figure_names(study)[-1] == "reliability"
    figure = draw("reliability", tables, study)
    text = words(figure, monkeypatch)
    assert "PETS" in text
    assert "n = 7 to 8 training seeds of a bin" in text
    assert not {"PPO", "DQN", "rule-based", "random"} & set(text.split())
    for axes, event in zip(figure.axes, ("outcome", "success"), strict=True):
        rows = tables.reliability[tables.reliability["event"] == event]
        (points,) = axes.collections
        np.testing.assert_array_equal(points.get_offsets(), rows[["predicted", "observed"]])
        np.testing.assert_allclose(
            points.get_sizes() / points.get_sizes().sum(), rows["count"] / sum(rows["count"])
        )
        whiskers = [line.get_ydata() for line in axes.lines if len(set(line.get_xdata())) == 1]
        for bounds in zip(rows["low"], rows["high"], strict=True):
            assert any(tuple(ends) == bounds for ends in whiskers)
        assert f"bins of {rows['count'].min()} to {rows['count'].max()}" in text


def test_reliability_says_where_one_event_is_not_foretold(cases, monkeypatch):
    tables, study = cases["usual"]
    outcomes = tables.reliability[tables.reliability["event"] == "outcome"]
    figure = FIGURES["reliability"](dataclasses.replace(tables, reliability=outcomes), study)
    assert "no forecasts of it" in words(figure, monkeypatch)
    assert_legible(figure, monkeypatch)


def test_a_gap_in_a_curve_is_not_bridged(cases):
    tables, study = cases["holes"]
    axes = FIGURES["learning_curves"](tables, study).axes[0]
    rows = tables.curves[(tables.curves["algorithm"] == "ppo") & (tables.curves["metric"] == "return")]
    curves = [np.asarray(line.get_ydata(), float) for line in axes.lines]
    assert any(np.array_equal(curve, rows["mean"], equal_nan=True) for curve in curves)
    assert rows["mean"].isna().sum() == 2


def test_a_study_without_interview_metrics_has_the_general_figures_only(usual, monkeypatch):
    tables, study = usual
    plan = study.statistics.model_copy(
        update={"primary": {"default": "return"}, "secondary": ["success_rate"]}
    )
    general = study.model_copy(update={"metrics": ["episodes"], "statistics": plan})
    assert figure_names(general) == GENERAL
    for name in figure_names(general):
        assert "nan" not in words(FIGURES[name](tables, general), monkeypatch).split()
