"""Train one algorithm on a block of seeds."""

from seedbed import job


def main(args):
    import json

    from seedbed.artifacts import EPISODE_COLUMNS, write_json, write_table
    from seedbed.provenance.run_record import Stopwatch, run_record
    from seedbed.registry import ALGORITHMS, ENVIRONMENTS, make
    from seedbed.settings import check_files
    from seedbed.training import DIAGNOSTIC_COLUMNS, CurvePlan, train

    settings = json.loads(args.settings)
    check_files(settings)
    environment, algorithm = settings["environment"], settings["algorithm"]
    watch = Stopwatch()
    dynamics = make(environment["environment"], environment["arguments"], ENVIRONMENTS, "environment")
    learner = make(algorithm["algorithm"], algorithm["arguments"], ALGORITHMS, "algorithm")
    curve = CurvePlan(**settings["curve"])
    with watch.phase("training"):
        run = train(learner, dynamics, settings["seeds"], algorithm["budget"], curve, watch.phase)
    episode_columns = EPISODE_COLUMNS | {"steps": "int64"}
    run.policy.save(args.policy)
    write_table(args.curve, run.curve, episode_columns)
    write_table(args.training, run.episodes, episode_columns)
    write_table(args.diagnostics, run.diagnostics, DIAGNOSTIC_COLUMNS)
    steps = algorithm["budget"] * len(settings["seeds"])
    record = run_record(
        "training", settings, watch, steps=steps, model_calls=run.model_calls, evaluation_steps=run.decisions,
        device=run.device,
    )  # fmt: skip
    write_json(args.run, record)


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--settings", required=True, help="what to train on which seeds, as JSON")
    parser.add_argument("--policy", required=True, help="output: policies, safetensors")
    parser.add_argument("--curve", required=True, help="output: episodes behind the learning curve, Parquet")
    parser.add_argument("--training", required=True, help="output: training episodes, Parquet")
    parser.add_argument("--diagnostics", required=True, help="output: losses and the like, Parquet")
    parser.add_argument("--run", required=True, help="output: run record, JSON")
    job.run(main, parser)
