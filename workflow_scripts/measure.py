"""Turn the evaluation of a block of seeds into scores, and its run records into costs."""

from seedbed import job


def main(args):
    from seedbed.artifacts import (
        EPISODE_COLUMNS,
        SCORE_COLUMNS,
        STEP_COLUMNS,
        read_json,
        read_table,
        write_table,
    )
    from seedbed.metrics.base import CURVE_SCORE_COLUMNS, curve_scores, load_metrics, score
    from seedbed.provenance.costs import COST_COLUMNS, costs

    metrics = load_metrics(args.metrics).values()
    labels = (args.study, args.environment, args.algorithm)
    training, evaluation = read_json(args.training), read_json(args.evaluation)
    horizon = evaluation["horizon"]
    episodes = read_table(args.episodes, EPISODE_COLUMNS)
    steps = read_table(args.steps, STEP_COLUMNS)
    curve = read_table(args.curve, EPISODE_COLUMNS | {"steps": "int64"})
    scores = score(*labels, episodes, steps, metrics, horizon=horizon)
    write_table(args.scores, scores, SCORE_COLUMNS)
    write_table(
        args.curve_scores, curve_scores(*labels, curve, metrics, horizon=horizon), CURVE_SCORE_COLUMNS
    )
    write_table(args.costs, costs([training, evaluation]), COST_COLUMNS)


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--study", required=True, help="name of the study")
    parser.add_argument("--environment", required=True, help="label of the environment")
    parser.add_argument("--algorithm", required=True, help="label of the algorithm")
    parser.add_argument("--metrics", required=True, nargs="+", help="names of metric sets")
    parser.add_argument("--episodes", required=True, help="input: episode table")
    parser.add_argument("--steps", required=True, help="input: step table")
    parser.add_argument("--curve", required=True, help="input: episodes behind the learning curve")
    parser.add_argument("--training", required=True, help="input: run record of the training")
    parser.add_argument("--evaluation", required=True, help="input: run record of the evaluation")
    parser.add_argument("--scores", required=True, help="output: score table")
    parser.add_argument("--curve-scores", required=True, help="output: scores along training")
    parser.add_argument("--costs", required=True, help="output: cost table")
    job.run(main, parser)
