"""Run one part of the tuning trials in one generalized environment."""

from seedbed import job


def main(args):
    import json

    from seedbed.artifacts import write_json, write_table
    from seedbed.generalized.study_trials import trial_settings, tune
    from seedbed.generalized.trials import TRIAL_COLUMNS
    from seedbed.generalized_study import GeneralizedStudy
    from seedbed.provenance.run_record import Stopwatch, run_record

    study = GeneralizedStudy.model_validate(json.loads(args.plan))
    watch = Stopwatch()
    with watch.phase("training"):
        trials = tune(study, args.environment, args.part)
    write_table(args.trials, trials, TRIAL_COLUMNS)
    settings = trial_settings(study, args.environment, f"part-{args.part}", "training")
    write_json(args.run, run_record("training", settings, watch, steps=int(trials.steps.sum())))


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--plan", required=True, help="the study, as JSON")
    parser.add_argument("--environment", required=True, help="label of the environment")
    parser.add_argument("--part", type=int, required=True, help="number of the part")
    parser.add_argument("--trials", required=True, help="output: one row per trial")
    parser.add_argument("--run", required=True, help="output: run record, JSON")
    job.run(main, parser)
