"""The paper's text: complete for ordinary studies, honest for poor ones, literal with any user text."""

import html.parser
import re
import subprocess

import numpy as np
import pytest
from reporting_studies import (
    SETTINGS,
    TEMPLATES,
    draw_placeholders,
    made_up_scores,
    small_document,
    study_document,
    write_study,
)

from seedbed.artifacts import write_json
from seedbed.reporting.figure_list import caption_of
from seedbed.reporting.methods import seed_ranges, setting
from seedbed.reporting.paper import write_paper
from seedbed.reporting.render import html_of, latex_of, pdf_of
from seedbed.reporting.study_results import read_study_results
from seedbed.study import PaperSettings, Study

NASTY = r"a_b 50% $x$ #1 & <script>'x'</script> \par ~ ^ | {y} *c* [d] -- ... -5 \"q\" @e `f` &amp; end"


def written(results, documents, scores=None, paper=None, figures=None, checklist=None):
    """The paper of some studies, as text."""
    studies = []
    for document in documents:
        name = document["name"]
        write_study(results, document, None if scores is None else scores.get(name))
        studies.append(read_study_results(name, results, SETTINGS))
    write_paper(paper or PaperSettings(), studies, figures or {}, TEMPLATES, results, checklist)
    return (results / "report/paper.md").read_text(encoding="utf-8")


def bare(text):
    """Markdown without trace marks."""
    return re.sub(r'\{trace="[^"]*"\}', "", text)


def test_an_environment_with_fewer_seeds_says_so(tmp_path):
    document = study_document()
    document["environments"]["tiny"]["seeds"] = [0, 1, 2]
    text = bare(written(tmp_path, [document]))
    assert "In tiny interview only [0 to 2] of these seeds ran." in text
    assert re.search(r"There are 3.training seeds in tiny interview: standard deviations", text)
    assert "tiny interview lacks" not in text


def test_the_paper_has_all_parts(tmp_path):
    text = bare(written(tmp_path, [small_document()]))
    for heading in (
        "Introduction",
        "Methods",
        "Results",
        "Limitations",
        "Cost",
        "Hardware and software",
        "Reproducibility",
        "Appendix: hyper-parameters",
        "Appendix: all comparisons",
    ):
        assert f"# {heading} {{#" in text
    assert "**Key finding.** [In tiny interview, time to mastery" in text
    assert "learning\\_rate | [0.0003] | Adam's step size" in text
    assert "[8] seeds ([0 to 7])" in text
    assert "[200] further episodes per seed" in text
    assert "lack" not in text.split("# Limitations")[1].split("# Cost")[0]


def test_one_seed_is_said_to_carry_no_test(tmp_path):
    text = bare(written(tmp_path, [small_document(seeds=[3])]))
    assert "Each algorithm was trained on one seed ([3])." in text
    assert "no spread between seeds is known and nothing could be tested" in text
    assert "could not be compared: n = 1, needs at least 2" in text
    assert "is better than" not in text.replace("is better than Rule", "")


def test_all_censored_is_not_estimable_and_makes_no_claim(tmp_path):
    document = small_document()
    scores = made_up_scores(Study.model_validate(document))
    rows = scores.metric == "restricted_time_to_mastery"
    scores.loc[rows, ["value", "status"]] = [np.nan, "all censored: not reached"]
    text = bare(written(tmp_path, [document], {"interview": scores}))
    assert "not estimable" in text
    assert "not testable: PPO (no common seed with a score on both sides" in text
    assert "has no value of the primary metric for 8\u00a0seeds: all censored: not reached" in text


def test_what_is_primary_elsewhere_may_be_missing_here(tmp_path):
    document = study_document()
    document["statistics"]["primary"] = {"default": "restricted_time_to_mastery", "tiny": "return"}
    scores = made_up_scores(Study.model_validate(document))
    rows = (scores.metric == "restricted_time_to_mastery") & (scores.environment == "tiny")
    assert rows.any()
    scores.loc[rows, ["value", "status"]] = [np.nan, "all censored: not reached"]
    text = bare(written(tmp_path, [document], {"interview": scores}))
    assert "no value of the primary metric" not in text


def test_a_missing_algorithm_is_a_limitation(tmp_path):
    document = small_document()
    scores = made_up_scores(Study.model_validate(document))
    scores = scores[(scores.algorithm != "ppo") | (scores.seed < 6)]
    text = bare(written(tmp_path / "some", [document], {"interview": scores}))
    assert "PPO in tiny interview lacks 2\u00a0seeds (6, 7)." in text
    text = bare(written(tmp_path / "none", [document], {"interview": scores[scores.algorithm != "ppo"]}))
    assert "PPO in tiny interview lacks 8\u00a0seeds" in text
    assert "PPO | –^a^ |" in text
    assert "^a^\u00a0no scores." in text


def test_without_any_comparison_nothing_is_compared(tmp_path):
    document = small_document()
    del document["algorithms"]["ppo"]
    text = bare(written(tmp_path, [document]))
    assert "no algorithm was declared for comparison with the baseline" in text
    assert "No pair of algorithms was declared for comparison here." in text
    assert "There are no comparisons." in text


def test_several_studies_stand_side_by_side(tmp_path):
    first, second = small_document(), small_document(name="again", title="Again", seeds=[0, 1, 2])
    text = written(tmp_path, [first, second])
    assert "answers 2 questions" in text
    assert "{#interview-results}" in text
    assert "{#again-results}" in text
    identities = re.findall(r"\{#([^\s}]+)", text)
    assert len(identities) == len(set(identities))


def test_uncommitted_changes_and_hopeless_designs_are_limitations(tmp_path):
    from seedbed.artifacts import read_json

    write_study(tmp_path, small_document(seeds=[0, 1, 2]))
    path = tmp_path / "interview/tiny/ppo/seeds-0-2/run.json"
    record = read_json(path)
    record["code"]["dirty"] = True
    write_json(path, record)
    results = read_study_results("interview", tmp_path, SETTINGS)
    write_paper(PaperSettings(), [results], {}, TEMPLATES, tmp_path)
    text = (tmp_path / "report/paper.md").read_text()
    assert "changes that are not committed" in text
    assert "could not have been significant whatever the data: with n = 3 the smallest attainable p" in text


def test_external_environments_are_described_with_their_limitations(tmp_path):
    warning = "Equal reset seeds and actions gave different episodes."
    size = {"observation_shape": [3], "actions": "2 real numbers", "horizon": 90, "warnings": [warning]}
    write_study(tmp_path, small_document(), sizes=size)
    results = read_study_results("interview", tmp_path, SETTINGS)
    write_paper(PaperSettings(), [results], {}, TEMPLATES, tmp_path)
    text = " ".join(bare((tmp_path / "report/paper.md").read_text()).split())
    assert "an action is [2 real numbers], and an episode has at most [90] steps." in text
    assert warning in text.partition("# Limitations")[2]


def test_a_goal_study_says_what_success_is_how_rates_are_bounded_and_what_limits_it(tmp_path):
    document = study_document(
        name="walks",
        environments={"rooms": {"environment": "GoalGrid", "title": "four rooms"}},
        algorithms={
            "a2c": {"algorithm": "a2c", "title": "A2C", "budget": 400_000},
            "ppo": {"algorithm": "ppo", "title": "PPO", "budget": 200_000},
            "random": {"algorithm": "random", "role": "baseline", "title": "random"},
        },
        metrics=["episodes", "goal"],
        statistics={
            "baseline": "random",
            "primary": {"rooms": "success_rate"},
            "secondary": ["return", "steps_to_success", "optimality_ratio"],
        },
    )
    scores = made_up_scores(Study.model_validate(document))
    partial = scores.metric.isin(["steps_to_success", "optimality_ratio"]) & (scores.algorithm == "a2c")
    scores.loc[partial, "episodes"] = 150
    size = {
        "arguments": {"hold": 1, "map": "..#\n..+\n..#\n"},
        "observation_shape": [75],
        "actions": 5,
        "horizon": 128,
        "success": "the goal was held",
    }
    write_study(tmp_path, document, scores, sizes=size)
    results = read_study_results("walks", tmp_path, SETTINGS)
    write_paper(PaperSettings(), [results], {}, TEMPLATES, tmp_path)
    text = " ".join(bare((tmp_path / "report/paper.md").read_text()).split())
    assert "A grid world with walls and doors." in text
    assert "Distances are never seen. Arguments: hold = 1, map = a text of 3 lines." in text
    assert (
        "there are [5] actions, and an episode has at most [128] steps. Success: the goal was held." in text
    )
    assert "Rates are shares of episodes (success rate; truncation rate)." in text
    assert "Secondary metrics: return; steps to success, successful episodes; optimality ratio" in text
    limits = text.partition("# Limitations")[2].partition("# Cost")[0]
    assert "not trained for equally many environment steps: A2C for 400 000 and PPO for 200 000." in limits
    assert (
        "In four rooms, only a part of the test episodes enters steps to success and optimality ratio (on "
        "average over seeds 75.0 \\% for A2C), so algorithms are compared on different episodes there."
    ) in limits


def test_the_checklist_shows_what_is_missing(tmp_path):
    path = tmp_path / "provenance/checklist.json"
    items = [
        {
            "item": "Code version",
            "ticked": False,
            "missing": ["the checkout has changes", "b"],
            "note": "",
            "evidence": {},
        },
        {
            "item": "Complete logs",
            "ticked": True,
            "missing": [],
            "note": "3 logs",
            "evidence": {"a.log": "f" * 64},
        },
    ]
    write_json(path, items)
    text = bare(written(tmp_path, [small_document()], checklist=path))
    assert "| Code version | no | missing: the checkout has changes and 1 more |  |" in text
    assert "| Complete logs | yes | 3 logs | [a.log ffffffffffff] |" in text


def test_the_text_is_the_same_every_time(tmp_path):
    assert written(tmp_path / "a", [small_document()]) == written(tmp_path / "b", [small_document()])


class Text(html.parser.HTMLParser):
    """The text of a page, and the tags of its scripts."""

    def __init__(self):
        super().__init__()
        self.text, self.scripts = "", 0

    def handle_starttag(self, tag, attributes):
        self.scripts += tag == "script"

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def nasty(tmp_path_factory):
    """A paper in which every text of the user is full of signs."""
    results = tmp_path_factory.mktemp("nasty") / "results"
    document = small_document(title=NASTY, question=NASTY)
    document["environments"]["tiny"]["title"] = NASTY
    document["algorithms"]["ppo"]["title"] = NASTY
    document["algorithms"]["ppo"]["arguments_in"] = {}
    scores = made_up_scores(Study.model_validate(document), {("tiny", "ppo", 1, "return")})
    scores.loc[scores.status != "ok", "status"] = NASTY
    draw_placeholders(results, "interview", ["learning_curves"])
    paper = PaperSettings(title=NASTY, authors=[NASTY, "B. Writer"])
    written(results, [document], {"interview": scores}, paper, {"interview": ["learning_curves"]})
    return results / "report/paper.md"


def joined(text):
    """Text as a reader takes it: runs of white space and line breaks are one blank."""
    return re.sub(r"\s+", " ", text)


def test_user_text_is_literal_in_html(nasty):
    page = Text()
    page.feed(html_of(nasty, TEMPLATES))
    assert joined(page.text).count(NASTY) > 20
    assert page.scripts == 0


def test_user_text_is_literal_in_markdown_and_latex(nasty):
    from seedbed.reporting.render import READER, _pandoc_path

    for text, reader in (
        (nasty.read_text(encoding="utf-8"), READER),
        (latex_of(nasty, TEMPLATES), "latex-smart"),
    ):
        text = text.replace(r"\textbar{}", "|")  # which pandoc writes, but does not read
        run = subprocess.run(
            [_pandoc_path(), f"--from={reader}", "--to=plain", "--wrap=none", "--columns=100000"],
            input=text,
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        assert joined(run.stdout.replace("\u00a0", " ")).count(NASTY) > 15


def test_user_text_is_literal_in_pdf(nasty, tmp_path):
    import shutil

    data = pdf_of(nasty, TEMPLATES)
    assert data.startswith(b"%PDF")
    if not shutil.which("pdftotext"):
        pytest.skip("pdftotext (poppler-utils) is not installed, so the PDF's text cannot be read")
    (tmp_path / "paper.pdf").write_bytes(data)
    run = subprocess.run(["pdftotext", "-raw", tmp_path / "paper.pdf", "-"], capture_output=True, check=True)
    squeezed = re.sub(r"\s+", "", run.stdout.decode())
    assert squeezed.count(re.sub(r"\s+", "", NASTY)) > 10


def test_captions_come_from_their_files(tmp_path):
    (tmp_path / "curves.rst").write_text("Mean over **seeds** of\nthe ``return``; *pointwise* bands.\n")
    assert caption_of("curves", tmp_path) == "Mean over seeds of the return; pointwise bands."
    assert caption_of("curves_tiny", tmp_path) == "Mean over seeds of the return; pointwise bands."
    assert caption_of("gain_by_modality", tmp_path) == "gain by modality"


def test_settings_and_seeds_in_words():
    assert seed_ranges([0, 1, 2, 7, 9, 10]) == "0 to 2, 7 and 9 to 10"
    assert [setting(v) for v in (True, None, 3e-4, [128, 128], "a", [])] == [
        "yes",
        "none",
        "0.0003",
        "128, 128",
        "a",
        "none",
    ]
