"""Send three agents through series of environments of hidden families."""

from seedbed import job


def main(args):
    import json

    from seedbed.artifacts import read_table, write_json, write_table
    from seedbed.generalized.study_trials import META_COLUMNS, meta, trial_settings
    from seedbed.generalized.trials import TRIAL_COLUMNS, gather
    from seedbed.generalized_study import GeneralizedStudy
    from seedbed.provenance.run_record import Stopwatch, run_record

    study = GeneralizedStudy.model_validate(json.loads(args.plan))
    watch = Stopwatch()
    tuning = gather(read_table(path, TRIAL_COLUMNS) for path in args.tuning)
    with watch.phase("evaluation"):
        trials = meta(study, tuning)
    write_table(args.trials, trials, META_COLUMNS)
    settings = trial_settings(study, "meta", "series", "evaluation")
    write_json(args.run, run_record("evaluation", settings, watch, steps=len(trials) * study.steps))


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--plan", required=True, help="the study, as JSON")
    parser.add_argument("--tuning", required=True, nargs="+", help="input: tuning trials behind the agents")
    parser.add_argument("--trials", required=True, help="output: one row per agent, series and place")
    parser.add_argument("--run", required=True, help="output: run record, JSON")
    job.run(main, parser)
