"""Write all tables of a study as CSV, Markdown and LaTeX."""

from seedbed import job


def main(args):
    import json

    from seedbed.reporting.study_results import read_study_results
    from seedbed.reporting.tables import tabulate
    from seedbed.study import StatisticsSettings

    settings = StatisticsSettings(**json.loads(args.settings))
    tabulate(read_study_results(args.study, "results", settings), f"results/{args.study}/tables")


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--study", required=True, help="name of the study: its folder below results")
    parser.add_argument("--settings", required=True, help="settings of the statistics, as JSON")
    job.run(main, parser)
