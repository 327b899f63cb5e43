"""Evaluate the policies of a block of seeds on the test episodes, in each of their modes."""

from seedbed import job


def main(args):
    import json

    import pandas as pd

    from seedbed.artifacts import EPISODE_COLUMNS, STEP_COLUMNS, write_json, write_table
    from seedbed.evaluation import evaluate
    from seedbed.provenance.run_record import Stopwatch, run_record
    from seedbed.registry import ALGORITHMS, ENVIRONMENTS, load, make
    from seedbed.seeding import Purpose

    settings = json.loads(args.settings)
    environment, episodes = settings["environment"], settings["episodes"]
    watch = Stopwatch()
    dynamics = make(environment["environment"], environment["arguments"], ENVIRONMENTS, "environment")
    algorithm = load(settings["algorithm"]["algorithm"], ALGORITHMS, "algorithm")
    policy = algorithm.policy_class.load(args.policy, dynamics)
    tables, decisions = [], 0
    for mode in policy.modes:
        acting, played = policy.in_mode(mode), (dynamics, Purpose.TEST, episodes)
        with watch.phase("evaluation"):
            run = evaluate(acting, *played, lanes=settings["lanes"], log_steps=True)
        decisions += run.decisions
        if settings["forecast"] and hasattr(acting, "add_forecasts"):
            with watch.phase("forecasts"):
                tables.append(acting.add_forecasts(*played, run.episodes, run.steps, **settings["forecast"]))
        else:
            tables.append((run.episodes, run.steps))
    order = ["seed", "policy_mode", "episode"]
    table = pd.concat([table for table, _ in tables]).sort_values(order, kind="stable")
    steps = pd.concat([steps for _, steps in tables]).sort_values([*order, "t"], kind="stable")
    write_table(args.episodes, table, EPISODE_COLUMNS)
    write_table(args.steps, steps, STEP_COLUMNS)
    record = run_record(
        "evaluation", settings, watch, steps=decisions, model_calls=decisions * policy.model_calls
    )
    write_json(args.run, record | {"horizon": dynamics.spec.horizon})


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--settings", required=True, help="what to evaluate on which episodes, as JSON")
    parser.add_argument("--policy", required=True, help="input: policies, safetensors")
    parser.add_argument("--episodes", required=True, help="output: episode table, Parquet")
    parser.add_argument("--steps", required=True, help="output: step table, Parquet")
    parser.add_argument("--run", required=True, help="output: run record, JSON")
    job.run(main, parser)
