"""Choose each agent's configurations by the tuning trials, and run the chosen ones' test trials."""

from seedbed import job


def main(args):
    import json

    from seedbed.artifacts import read_table, write_json, write_table
    from seedbed.generalized.study_trials import test, trial_settings
    from seedbed.generalized.trials import TRIAL_COLUMNS, gather
    from seedbed.generalized_study import GeneralizedStudy
    from seedbed.provenance.run_record import Stopwatch, run_record

    study = GeneralizedStudy.model_validate(json.loads(args.plan))
    watch = Stopwatch()
    tuning = gather(read_table(path, TRIAL_COLUMNS) for path in args.tuning)
    with watch.phase("evaluation"):
        picks, trials = test(study, args.environment, tuning)
    write_table(args.picks, picks, {})
    write_table(args.trials, trials, TRIAL_COLUMNS)
    settings = trial_settings(study, args.environment, "test", "evaluation")
    write_json(args.run, run_record("evaluation", settings, watch, steps=int(trials.steps.sum())))


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--plan", required=True, help="the study, as JSON")
    parser.add_argument("--environment", required=True, help="label of the environment")
    parser.add_argument("--tuning", required=True, nargs="+", help="input: all parts of the tuning trials")
    parser.add_argument("--picks", required=True, help="output: chosen configurations")
    parser.add_argument("--trials", required=True, help="output: one row per test trial")
    parser.add_argument("--run", required=True, help="output: run record, JSON")
    job.run(main, parser)
