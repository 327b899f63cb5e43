"""Tables: every mean has its spread, every gap its reason, and each form says the same."""

import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from reporting_studies import RUN, SETTINGS, made_up_scores, small_document, study_document, write_study

from seedbed.reporting.layout import NAMES, Cell, Row, Table, to_csv, to_latex, to_markdown, widths
from seedbed.reporting.machines import machines_text
from seedbed.reporting.metric_tables import ABREAST, not_worse_than_best, panels
from seedbed.reporting.study_results import read_study_results
from seedbed.reporting.tables import study_tables, table_names, tabulate
from seedbed.reporting.trace import Register
from seedbed.study import Study


def read(results, document, scores=None):
    study = write_study(results, document, scores)
    return read_study_results(study.name, results, SETTINGS)


def cells(table):
    return [
        (row, key, cell)
        for row in table.rows
        if len(row.cells) > 1
        for key, cell in zip(table.keys, row.cells, strict=True)
    ]


def spreadless_means(tables):
    """Cells that print a mean of the summary without SD or interval, unless a note says there is none."""
    return [
        (table.name, row.key, key)
        for table in tables
        for row, key, cell in cells(table)
        if any("mean" in source.columns for source in cell.sources if "summary" in source.table)
        and not re.search(r"±.(\d|<)|\[.*\]", cell.plain)
        and not cell.note
    ]


def test_names_are_known_before_any_result(interview):
    _, results = interview
    assert list(study_tables(results)) == table_names(results.study)


def test_no_table_has_a_mean_without_its_spread(interview):
    _, results = interview
    tables = study_tables(results).values()
    assert spreadless_means(tables) == []
    assert sum(len(cells(table)) for table in tables) > 1000


def test_the_scan_finds_a_bare_mean(interview):
    _, results = interview
    main = study_tables(results)["main_default"]
    cell = main.rows[0].cells[1]
    bare = Row("bare", (Cell("x"), Cell("83.1", sources=cell.sources), *main.rows[0].cells[2:]))
    table = Table("t", "", main.header, main.keys, main.align, (bare,), (), main.values)
    assert spreadless_means([table]) == [("t", "bare", main.keys[1])]


def test_main_table_shows_the_summary_and_nothing_else(interview):
    _, results = interview
    table = study_tables(results)["main_default"]
    assert table.keys == (
        "algorithm",
        "restricted_time_to_mastery",
        "return",
        "post_content_gain",
        "blueprint_adherence",
        "return-sd",
    )
    row = results.summary_row("default", "ppo", "restricted_time_to_mastery")
    cell = next(row for row in table.rows if row.key == "ppo").cells[1]
    assert cell.text.startswith(f"{row['mean']:.1f}\u00a0±\u00a0{row['sd']:.1f}")
    assert cell.below == f"{row['median']:.1f}\u00a0[{row['q25']:.1f},\u00a0{row['q75']:.1f}]"
    assert "n = 8\u00a0seeds" in table.caption


def test_references_stand_below_a_rule_without_stars(interview):
    _, results = interview
    rows = study_tables(results)["main_default"].rows
    keys = [row.key for row in rows]
    line = keys.index("references")
    assert keys[:line] == results.tested("default")
    assert len(keys) - line - 1 == 9
    assert not any("*" in cell.text for row in rows[line + 1 :] for cell in row.cells)
    assert not any(cell.bold for row in rows[line + 1 :] for cell in row.cells)


def test_stars_follow_the_corrected_p(interview):
    _, results = interview
    table = study_tables(results)["main_default"]
    for row in results.family("default", "primary") + results.family("default", "secondary"):
        if row["metric"] not in table.keys:
            continue
        found = next(line for line in table.rows if line.key == row["algorithm_a"])
        text = found.cells[table.keys.index(row["metric"])].text
        expected = sum(row["p_corrected"] <= level for level in (0.05, 0.01, 0.001))
        assert text.count("*") == expected


def test_bold_marks_the_best_and_what_no_test_puts_below_it(interview):
    _, results = interview
    for environment in results.study.environments:
        best = min(
            results.tested(environment),
            key=lambda label: results.summary_row(environment, label, "restricted_time_to_mastery")["mean"],
        )
        kept = not_worse_than_best(results, environment)
        assert best in kept
        for row in results.family(environment, "pairs"):
            if best in (row["algorithm_a"], row["algorithm_b"]):
                other = row["algorithm_b"] if row["algorithm_a"] == best else row["algorithm_a"]
                assert (other in kept) == (row["decision"] == "undecided")


def test_a_csv_file_has_full_precision(interview, tmp_path):
    _, results = interview
    tabulate(results, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{name}.{suffix}" for name in table_names(results.study) for suffix in ("csv", "md", "tex")
    }
    table = pd.read_csv(tmp_path / "main_default.csv")
    row = table[(table.algorithm == "ppo") & (table.metric == "return")].iloc[0]
    assert row["mean"] == results.summary_row("default", "ppo", "return")["mean"]
    assert "trace=" not in (tmp_path / "main_default.md").read_text()


def test_missing_values_have_a_reason(tmp_path):
    study = Study.model_validate(small_document())
    lost = {("tiny", "ppo", seed, "post_content_gain") for seed in study.seeds}
    lost |= {("tiny", "rule_based", 2, "blueprint_adherence")}
    table = study_tables(read(tmp_path, small_document(), made_up_scores(study, lost)))["main_tiny"]
    found = {(row.key, key): cell for row, key, cell in cells(table)}
    absent = found["ppo", "post_content_gain"]
    assert (absent.text, table.notes[ord(absent.note) - 97]) == ("–", "no question asked")
    partial = found["rule_based", "blueprint_adherence"]
    assert "1 of 8 seeds missing (2: no question asked)" in table.notes[ord(partial.note) - 97]


def test_all_censored_is_not_estimable(tmp_path):
    document = small_document()
    scores = made_up_scores(Study.model_validate(document))
    rows = scores.metric == "restricted_time_to_mastery"
    scores.loc[rows, ["value", "status"]] = [np.nan, "all censored: not reached"]
    results = read(tmp_path, document, scores)
    tables = study_tables(results)
    column = [row.cells[1].text for row in tables["main_tiny"].rows if len(row.cells) > 1]
    assert set(column) == {"not estimable"}
    assert not_worse_than_best(results, "tiny") == set()
    assert all(row.cells[-1].text == "not testable" for row in tables["pairs_tiny"].rows)
    assert all(row.cells[2].text == "–" for row in tables["pairs_tiny"].rows)


def test_one_seed_has_no_spread_no_stars_and_no_bold(tmp_path):
    tables = study_tables(read(tmp_path, small_document(seeds=[0])))
    assert spreadless_means(tables.values()) == []
    main = tables["main_tiny"]
    assert not any(cell.bold or "*" in cell.text for _, _, cell in cells(main))
    assert "one seed, so no SD" in main.notes


def test_more_algorithms_than_fit_make_further_panels_equally_full(interview):
    _, results = interview
    names, groups = table_names(results.study), panels(results.study, "default")
    made = [name for name in names if name.startswith("secondary_default")]
    assert made == ["secondary_default", *(f"secondary_default_{n + 2}" for n in range(len(groups) - 1))]
    together = [label for group in groups for label in group]
    assert sorted(together) == sorted(results.study.algorithms_in("default"))
    assert max(map(len, groups)) <= ABREAST < len(together)
    assert max(map(len, groups)) - min(map(len, groups)) <= len(groups) - 1


def plain_table(text):
    return Table(
        "t",
        text,
        (text, "b"),
        ("a", "b"),
        "lr",
        (Row("g", (Cell(text),)), Row("r", (Cell(text, bold=True, note="a"), Cell("1", "[0, 2]")))),
        (text,),
        pd.DataFrame({"a": [text], "b": [1 / 3]}),
    )


def test_latex_has_booktabs_rules_and_escapes():
    text = to_latex(plain_table("50% of a_b & c"))
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == 1
    assert r"\textbf{50\% of a\_b \& c}\textsuperscript{a} & 1 \\" in text
    assert r"\caption{50\% of a\_b \& c}" in text
    assert not re.search(r"(?<!\\)[%_]", text.replace("\\%", "").replace("\\_", ""))


def test_latex_tables_compile(interview, tmp_path):
    if not shutil.which("pdflatex"):
        pytest.skip("pdflatex (TeX Live) is not installed, so the tables cannot be compiled")
    _, results = interview
    tables = [*study_tables(results).values(), plain_table(r"a_b 50% $x$ #1 & <t> \par {y} ~ ^ | [d] \"q\"")]
    packages = r"\usepackage[T1]{fontenc}\usepackage{lmodern,textcomp,booktabs,array,longtable}"
    body = r"\clearpage ".join(to_latex(table) for table in tables)
    text = rf"\documentclass{{article}}{packages}\begin{{document}}{body}\end{{document}}"
    (tmp_path / "tables.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", errors="replace")
    assert run.returncode == 0, run.stdout[-3000:]
    assert "too large" not in run.stdout  # a float that is cut off


def test_csv_and_markdown_of_the_same_table():
    table = plain_table("a|b")
    assert to_csv(table) == f"a,b\na|b,{1 / 3!r}\n"
    text = to_markdown(table, "s")
    assert "| **a\\|b**^a^ | 1<br>[\\[0, 2\\]]{.below} |" in text
    assert "{#tbl-s-t}" in text


def test_cells_without_sources_get_no_trace():
    register = Register()
    to_markdown(plain_table("x"), "s", register)
    assert register.entries == {}


def test_wide_tables_wrap_and_narrow_ones_do_not(interview):
    _, results = interview
    assert widths(plain_table("x")) is None
    for table in study_tables(results).values():
        shares = widths(table)
        assert shares is None or len(shares) == len(table.header)
    row = Row("r", (Cell("Post-content gain, PPT (mastery)"), *[Cell("not estimable")] * 8))
    table = Table(
        "t", "", ("Metric", *"abcdefgh"), ("m", *"abcdefgh"), "l" + 8 * "r", (row,), (), pd.DataFrame()
    )
    assert widths(table) == [NAMES, *[len("estimable") + 2] * 8]


def test_a_row_must_fit_its_table():
    with pytest.raises(ValueError, match="row r has 3 cells"):
        Table("t", "", ("a", "b"), ("a", "b"), "lr", (Row("r", (Cell("1"),) * 3),), (), pd.DataFrame())


def test_two_environments_have_two_main_tables():
    names = table_names(Study.model_validate(study_document()))
    assert [name for name in names if name.startswith("main")] == ["main_default", "main_tiny"]


def efficient_document(floor="rule_based", ceiling="random"):
    """In the made-up curves, random is the better of the two."""
    document = small_document()
    plan = {"floor": floor, "ceiling": ceiling, "budgets": [2000, 10_000, 30_000]}
    document["statistics"]["sample_efficiency"] = plan | {"also": ["restricted_time_to_mastery"]}
    return document


def test_without_a_scale_the_table_says_why_instead_of_numbers(tmp_path):
    table = study_tables(read(tmp_path, efficient_document("random", "rule_based")))["efficiency_tiny"]
    row = next(row for row in table.rows if row.key == "normalised_return/ppo")
    assert {cell.text for cell in row.cells[1:]} == {"–"}
    assert "8 of 8 seeds missing (random and rule_based give no scale)" in table.notes


def test_the_table_of_sample_efficiency_says_what_the_statistics_say(tmp_path):
    results = read(tmp_path, efficient_document())
    table = study_tables(results)["efficiency_tiny"]
    assert list(study_tables(results)) == table_names(results.study)
    assert [row.key for row in table.rows if len(row.cells) > 1] == [
        "return/ppo",
        "restricted_time_to_mastery/ppo",
        "normalised_return/ppo",
    ]
    assert table.keys == ("algorithm", "at-2000", "at-10000", "area", "to-0.8", "to-0.9")  # 30,000: by nobody
    rows = {(row["metric"], row["quantity"], row["at"]): row for row in results.efficiency.to_dict("records")}
    by_key = {
        row.key: dict(zip(table.keys, row.cells, strict=True)) for row in table.rows if len(row.cells) > 1
    }
    shown = by_key["return/ppo"]["at-2000"]
    assert shown.text == f"{rows['return', 'budget', 2000.0]['estimate']:.1f}"
    assert [source.table for source in shown.sources] == ["interview/statistics/sample_efficiency.parquet"]
    assert by_key["return/ppo"]["to-0.8"].plain == ""
    level = by_key["normalised_return/ppo"]["to-0.8"]
    assert level.below == f"{int(rows['normalised_return', 'level', 0.8]['reached'])} of 8 seeds"
    assert "trained for" not in " ".join(table.notes)


def test_a_study_without_a_plan_for_sample_efficiency_has_no_such_table(tmp_path):
    results = read(tmp_path, small_document())
    assert not any(name.startswith("efficiency") for name in table_names(results.study))


def test_sample_efficiency_enters_the_paper_and_can_be_traced(tmp_path):
    results = read(tmp_path, efficient_document())
    register = Register()
    text = to_markdown(study_tables(results)["efficiency_tiny"], "interview", register)
    assert "Sample efficiency in tiny interview" in text
    assert "interview/efficiency_tiny/return/ppo/at-2000" in register.entries


def test_a_job_whose_networks_were_trained_on_a_gpu_is_told_apart():
    place = {"study": "s", "environment": "e", "algorithm": "a", "block": "seed-0"}
    runs = [RUN | place | {"device": device} for device in (None, {"used": "cpu"}, {"used": "cuda"})]
    rows = [row for row in machines_text([*runs, RUN | place], Register()).splitlines() if "2.00GHz" in row]
    assert ["networks trained on the GPU" in row for row in rows] == [False, True]
