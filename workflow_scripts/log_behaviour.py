"""Log episodes of a study's behaviour policy: steps with the probability of each action, and events."""

from seedbed import job


def main(args):
    import json

    from seedbed.artifacts import write_table
    from seedbed.off_policy.behaviour import data_sets, make_dynamics
    from seedbed.off_policy.log_table import BEHAVIOUR_COLUMNS, EVENT_COLUMNS, behaviour_table, event_table
    from seedbed.study import OffPolicyPlan

    plan = OffPolicyPlan.model_validate(json.loads(args.plan))
    (log,) = data_sets(plan, make_dynamics(plan), [0])
    steps = behaviour_table(log, seed=0)
    write_table(args.behaviour, steps, BEHAVIOUR_COLUMNS)
    write_table(args.events, event_table(steps), EVENT_COLUMNS)


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--plan", required=True, help="the study's section off_policy, as JSON")
    parser.add_argument("--behaviour", required=True, help="output: step table with probabilities")
    parser.add_argument("--events", required=True, help="output: event log")
    job.run(main, parser)
