"""Rendering: numbered, complete, self-contained, the same bytes everywhere."""

import builtins
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from reporting_studies import SETTINGS, TEMPLATES, draw_placeholders, small_document, write_study

from seedbed.reporting import formatting
from seedbed.reporting.paper import write_paper
from seedbed.reporting.render import _MEANINGS, OUTPUTS, pdf_of, render
from seedbed.reporting.study_results import ReportError, read_study_results
from seedbed.study import PaperSettings


def project(results):
    """A rendered paper with two figures."""
    write_study(results, small_document())
    draw_placeholders(results, "interview", ["learning_curves", "bars"])
    studies = [read_study_results("interview", results, SETTINGS)]
    figures = {"interview": ["learning_curves", "bars"]}
    write_paper(PaperSettings(title="A title", authors=["A. Writer"]), studies, figures, TEMPLATES, results)
    render(results / "report/paper.md", TEMPLATES)
    return results / "report"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return project(tmp_path_factory.mktemp("one") / "results")


def test_all_forms_are_there_and_nothing_else(report):
    expected = {"paper.md", "trace.json", *OUTPUTS}
    assert {path.name for path in report.iterdir()} == expected


def test_equal_sources_give_equal_bytes_in_another_folder(report, tmp_path):
    other = tmp_path / "somewhere else/results"
    shutil.copytree(report.parent, other)
    for name in OUTPUTS:
        (other / "report" / name).unlink()
    render(other / "report/paper.md", TEMPLATES)
    for name in OUTPUTS:
        assert (other / "report" / name).read_bytes() == (report / name).read_bytes(), name


def test_a_groups_heading_stands_again_on_the_next_page(tmp_path, monkeypatch):
    import typst

    rows = [f"| [*{name}*]{{.group}} | |\n" + "| row | 1 |\n" * 60 for name in ("Alpha", "Beta")]
    paper = tmp_path / "results/report/paper.md"
    paper.parent.mkdir(parents=True)
    paper.write_text("| a | b |\n| :--- | ---: |\n" + "".join(rows) + "\n: Long. {#tbl-long}\n")
    sources, compile = [], typst.compile

    def recorded(source, **arguments):
        sources.append(source.read_text())
        return compile(source, **arguments)

    monkeypatch.setattr(typst, "compile", recorded)
    (tmp_path / "paper.pdf").write_bytes(pdf_of(paper, TEMPLATES))
    assert sources[0].count("table.header(level: 2, table.cell(colspan: 2") == 2
    if not shutil.which("pdftotext"):
        pytest.skip("pdftotext (poppler-utils) is not installed, so the PDF's text cannot be read")
    run = subprocess.run(["pdftotext", tmp_path / "paper.pdf", "-"], capture_output=True, check=True)
    pages = run.stdout.decode().split("\f")[:-1]
    assert len(pages) > 2
    assert all("Alpha" in page or "Beta" in page for page in pages)


def test_latex_has_a_meaning_for_every_character_of_our_own_text():
    files = [
        *TEMPLATES.glob("*.md"),
        *TEMPLATES.glob("captions/*.rst"),
        *Path(formatting.__file__).parent.glob("*.py"),
    ]
    known = set("–’…")  # to LaTeX itself
    used = {
        character for file in files for character in file.read_text(encoding="utf-8") if ord(character) > 127
    }
    assert used - known - set(_MEANINGS) == set()


def test_the_page_needs_nothing_else(report):
    page = (report / "index.html").read_text(encoding="utf-8")
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', page)
    assert "@import" not in page
    assert not re.findall(r"url\((?!data:|#|'#)", page)
    assert "<script" not in page
    assert page.count("<svg") + page.count("data:image/svg") >= 2


def test_tables_and_figures_are_numbered_and_referred_to(report):
    page = (report / "index.html").read_text(encoding="utf-8")
    tables = re.findall(r"<caption>\s*<strong>Table (\d+)\.</strong>", page)
    assert [int(number) for number in tables] == list(range(1, len(tables) + 1))
    assert len(tables) == page.count("<table")
    assert re.findall(r"<figcaption[^>]*>\s*<strong>Figure (\d+)\.</strong>", page) == ["1", "2"]
    assert re.search(r'<a href="#tbl-interview-pairs_tiny"[^>]*>Table\u00a0\d+</a>', page)
    source = (report / "paper.tex").read_text(encoding="utf-8")
    assert source.count(r"\caption{") == len(tables) + 2
    assert r"\hyperref[tbl-interview-pairs_tiny]{Table" in source


def test_traces_are_anchors_in_html_and_absent_elsewhere(report):
    page = (report / "index.html").read_text(encoding="utf-8")
    identity = "interview/main_tiny/ppo/return"
    assert f'id="{identity}" class="traced" title="{identity}"' in page
    anchors = re.findall(r'\sid="([^"]+)"', page)
    assert len(anchors) == len(set(anchors))
    assert identity not in (report / "paper.tex").read_text(encoding="utf-8")


def test_latex_takes_figures_as_pdf_and_rules_from_booktabs(report):
    source = (report / "paper.tex").read_text(encoding="utf-8")
    assert "../interview/figures/bars.pdf" in source
    assert r"\toprule" in source
    assert r"\multicolumn{6}{@{}l@{}}{{\emph{References, not tested}}}\\" in source


def test_latex_compiles(report, tmp_path):
    if not shutil.which("latexmk"):
        pytest.skip("latexmk (TeX Live) is not installed, so paper.tex cannot be compiled")
    run = subprocess.run(
        ["latexmk", "-pdf", "-interaction=nonstopmode", "-halt-on-error", f"-outdir={tmp_path}", "paper.tex"],
        cwd=report,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    assert run.returncode == 0, run.stdout[-3000:]
    log = (tmp_path / "paper.log").read_text(errors="replace")
    assert "undefined" not in log
    assert "Missing character" not in log
    wide = [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)]
    assert max(wide, default=0) < 20


def test_a_missing_figure_is_named(report, tmp_path):
    copy = tmp_path / "results"
    shutil.copytree(report.parent, copy)
    (copy / "interview/figures/bars.svg").unlink()
    (copy / "report/index.html").unlink()
    with pytest.raises(ReportError, match=r"bars\.svg"):
        render(copy / "report/paper.md", TEMPLATES)
    assert not (copy / "report/index.html").exists()


def test_a_missing_paper_is_named(tmp_path):
    with pytest.raises(ReportError, match=r"paper\.md is missing"):
        render(tmp_path / "paper.md", TEMPLATES)


@pytest.mark.parametrize(
    ("module", "advice"), [("pypandoc", "pip install pypandoc_binary"), ("typst", "pip install typst")]
)
def test_a_missing_tool_is_named_with_how_to_get_it(report, monkeypatch, module, advice):
    real = builtins.__import__

    def without(name, *arguments, **options):
        if name == module:
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ReportError, match=advice):
        render(report / "paper.md", TEMPLATES)
