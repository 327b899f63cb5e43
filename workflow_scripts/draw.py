"""Draw all figures of a study."""

from seedbed import job


def main(args):
    from pathlib import Path

    from seedbed.artifacts import SCORE_COLUMNS, read_json, read_table
    from seedbed.figures.catalogue import draw
    from seedbed.figures.names import figure_names
    from seedbed.figures.style import save
    from seedbed.figures.tables import Tables
    from seedbed.figures.walks import read_walks
    from seedbed.layout import DRAWN
    from seedbed.study import Study

    folder = Path("results", args.study)
    resolved = read_json(folder / "study.json")
    study = Study.model_validate(resolved["study"])
    statistics = {name: read_table(folder / f"statistics/{name}.parquet") for name in DRAWN}
    scores = read_table(folder / "scores.parquet", SCORE_COLUMNS)
    walks = read_walks(study, resolved["blocks"])
    tables = Tables(scores=scores, **statistics, confidence=args.confidence, walks=walks)
    for name in figure_names(study):
        save(draw(name, tables, study), folder / "figures" / name)


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--study", required=True, help="name of the study: its folder below results")
    parser.add_argument("--confidence", type=float, required=True, help="level of the intervals")
    job.run(main, parser)
