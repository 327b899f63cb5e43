"""Put the scores and costs of all blocks of a study into one table each."""

from seedbed import job


def main(args):
    import pandas as pd

    from seedbed.artifacts import SCORE_COLUMNS, read_json, read_table, write_table
    from seedbed.layout import block_files
    from seedbed.metrics.base import CURVE_SCORE_COLUMNS, collect, load_metrics
    from seedbed.provenance.costs import COST_COLUMNS
    from seedbed.settings import check_runs
    from seedbed.study import Study

    resolved = read_json(args.study)
    check_runs(Study.model_validate(resolved["study"]), resolved["blocks"])

    def tables(name, columns):
        files = block_files(resolved["study"]["name"], resolved["blocks"], name)
        return [read_table(path, columns) for path in files]

    metrics = load_metrics(resolved["study"]["metrics"]).values()
    scores = collect(tables("scores.parquet", SCORE_COLUMNS), metrics)
    curve_scores = collect(tables("curve_scores.parquet", CURVE_SCORE_COLUMNS), metrics)
    costs = pd.concat(tables("costs.parquet", COST_COLUMNS), ignore_index=True)
    write_table(args.scores, scores, SCORE_COLUMNS)
    write_table(args.curve_scores, curve_scores, CURVE_SCORE_COLUMNS)
    write_table(args.costs, costs, COST_COLUMNS)


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--study", required=True, help="input: resolved study, JSON")
    parser.add_argument("--scores", required=True, help="output: score table")
    parser.add_argument("--curve-scores", required=True, help="output: scores along training")
    parser.add_argument("--costs", required=True, help="output: cost table")
    job.run(main, parser)
