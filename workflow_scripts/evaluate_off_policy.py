"""Estimate what target policies earn from logged episodes, and hold the estimates against the simulator."""

from seedbed import job


def main(args):
    import json

    from seedbed.artifacts import read_table, write_table
    from seedbed.off_policy.behaviour import make_dynamics
    from seedbed.off_policy.log_table import BEHAVIOUR_COLUMNS, log_from_table
    from seedbed.off_policy.study_tables import (
        COVERAGE_COLUMNS,
        ESTIMATE_COLUMNS,
        OVERLAP_COLUMNS,
        off_policy_tables,
    )
    from seedbed.study import OffPolicyPlan, StatisticsSettings

    plan = OffPolicyPlan.model_validate(json.loads(args.plan))
    settings = StatisticsSettings(**json.loads(args.settings))
    steps = read_table(args.behaviour, BEHAVIOUR_COLUMNS)
    logged = log_from_table(steps, make_dynamics(plan).spec.horizon)
    estimates, overlap, coverage = off_policy_tables(plan, logged, settings)
    write_table(args.estimates, estimates, ESTIMATE_COLUMNS)
    write_table(args.overlap, overlap, OVERLAP_COLUMNS)
    write_table(args.coverage, coverage, COVERAGE_COLUMNS)


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--plan", required=True, help="the study's section off_policy, as JSON")
    parser.add_argument("--settings", required=True, help="settings of the statistics, as JSON")
    parser.add_argument("--behaviour", required=True, help="input: step table with probabilities")
    parser.add_argument("--estimates", required=True, help="output: estimates beside the truth")
    parser.add_argument("--overlap", required=True, help="output: weights and overlap by step")
    parser.add_argument("--coverage", required=True, help="output: bias, RMSE and coverage")
    job.run(main, parser)
