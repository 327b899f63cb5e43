"""Compute a study's statistics from its scores: intervals, comparisons, curves, incidence, reliability."""

from seedbed import job


def main(args):
    import json

    import pandas as pd

    from seedbed.artifacts import EPISODE_COLUMNS, SCORE_COLUMNS, read_json, read_table, write_table
    from seedbed.layout import block_files, forecast_files
    from seedbed.metrics.base import CURVE_SCORE_COLUMNS, load_metrics
    from seedbed.statistics.curves import CURVE_COLUMNS, band
    from seedbed.statistics.incidence import INCIDENCE_COLUMNS, incidence_table
    from seedbed.statistics.plan import comparisons, in_declared_mode, rates_of
    from seedbed.statistics.reliability import FORECAST_COLUMNS, RELIABILITY_COLUMNS, reliability_table
    from seedbed.statistics.sample_efficiency import EFFICIENCY_COLUMNS, sample_efficiency
    from seedbed.statistics.study_tables import summarise
    from seedbed.study import StatisticsSettings, Study

    settings = StatisticsSettings(**json.loads(args.settings))
    resolved = read_json(args.study)
    study = Study.model_validate(resolved["study"])
    scores = read_table(args.scores, SCORE_COLUMNS)
    metrics = load_metrics(study.metrics)
    rates = rates_of(metrics)
    write_table(args.summary, summarise(scores, settings.confidence, rates), {})
    write_table(args.comparisons, comparisons(scores, study, metrics, settings), {})
    curve = in_declared_mode(read_table(args.curve_scores, CURVE_SCORE_COLUMNS), study.statistics.policy_mode)
    write_table(args.curves, band(curve, settings.confidence, rates), CURVE_COLUMNS)
    plan = study.statistics.sample_efficiency
    better = metrics[plan.metric].better if plan else "none"
    efficiency = sample_efficiency(curve, plan, settings.confidence, better)
    write_table(args.sample_efficiency, efficiency, EFFICIENCY_COLUMNS)
    parts, reliable = [], [pd.DataFrame(columns=list(RELIABILITY_COLUMNS)).astype(RELIABILITY_COLUMNS)]
    for environment, algorithms in resolved["blocks"].items():
        horizon = resolved["environments"][environment]["horizon"]
        for algorithm, blocks in algorithms.items():
            divided = {environment: {algorithm: blocks}}
            files = block_files(study.name, divided, "episodes.parquet")
            episodes = pd.concat([read_table(path, EPISODE_COLUMNS) for path in files])
            parts.append(
                incidence_table(
                    environment, algorithm, episodes, horizon=horizon, confidence=settings.confidence
                )
            )
            steps = [read_table(path, only=FORECAST_COLUMNS) for path in forecast_files(study, divided)]
            if steps:
                cell = (environment, algorithm, episodes, pd.concat(steps))
                reliable.append(reliability_table(*cell, settings.confidence))
    write_table(args.reliability, pd.concat(reliable, ignore_index=True), RELIABILITY_COLUMNS)
    write_table(args.incidence, pd.concat(parts, ignore_index=True), INCIDENCE_COLUMNS)


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--settings", required=True, help="settings of the statistics, as JSON")
    parser.add_argument("--study", required=True, help="input: resolved study, JSON")
    parser.add_argument("--scores", required=True, help="input: score table")
    parser.add_argument("--curve-scores", required=True, help="input: scores along training")
    parser.add_argument("--summary", required=True, help="output: summary of each metric")
    parser.add_argument("--comparisons", required=True, help="output: comparisons of algorithms")
    parser.add_argument("--curves", required=True, help="output: learning curves with bands")
    parser.add_argument("--incidence", required=True, help="output: cumulative incidence over time")
    parser.add_argument(
        "--sample-efficiency", required=True, help="output: scores at budgets, steps to levels"
    )
    parser.add_argument("--reliability", required=True, help="output: predicted probabilities by bin")
    job.run(main, parser)
