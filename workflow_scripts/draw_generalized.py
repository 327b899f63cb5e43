"""Draw all figures of a generalized study."""

from seedbed import job


def main(args):
    from pathlib import Path

    from seedbed.artifacts import read_json, read_table
    from seedbed.figures.box_plots import box_plots
    from seedbed.figures.style import save
    from seedbed.generalized_study import GeneralizedStudy

    folder = Path("results", args.study)
    study = GeneralizedStudy.model_validate(read_json(folder / "study.json")["study"])
    test = read_table(folder / "test.parquet")
    picks = read_table(folder / "statistics/picks.parquet")
    save(box_plots(test, picks, study), folder / "figures/box_plots")


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--study", required=True, help="name of the study: its folder below results")
    job.run(main, parser)
