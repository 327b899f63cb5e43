"""Write all tables of a generalized study as CSV, Markdown and LaTeX."""

from seedbed import job


def main(args):
    import json

    from seedbed.reporting.generalized_results import read_generalized_results
    from seedbed.reporting.generalized_tables import generalized_tables
    from seedbed.reporting.tables import write_tables
    from seedbed.study import StatisticsSettings

    settings = StatisticsSettings(**json.loads(args.settings))
    results = read_generalized_results(args.study, "results", settings)
    write_tables(generalized_tables(results), f"results/{args.study}/tables")


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--study", required=True, help="name of the study: its folder below results")
    parser.add_argument("--settings", required=True, help="settings of the statistics, as JSON")
    job.run(main, parser)
