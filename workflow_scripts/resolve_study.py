"""Construct all that a study names before anything is trained, and write the resolved study."""

from seedbed import job


def main(args):
    import json

    from seedbed.artifacts import write_json
    from seedbed.study import Study
    from seedbed.study_files import as_study

    study = as_study(json.loads(args.settings))
    if isinstance(study, Study):
        from seedbed.resolution import resolve

        resolved = resolve(study, args.seeds_per_job)
    else:
        from seedbed.generalized.study_trials import resolve_generalized

        resolved = resolve_generalized(study)
    if args.study:
        write_json(args.study, resolved, sort_keys=False)  # tables follow the study's order


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--settings", required=True, help="the study, as JSON")
    parser.add_argument("--seeds-per-job", type=int, required=True, help="seeds that share a job")
    parser.add_argument("--study", help="output: resolved study, JSON; without it, only check")
    job.run(main, parser)
