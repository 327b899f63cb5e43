"""Write the paper as Markdown, and the register that leads from its numbers back to their runs."""

from seedbed import job


def main(args):
    import json

    from seedbed.artifacts import read_json
    from seedbed.figures.names import figure_names
    from seedbed.reporting.generalized_results import read_generalized_results
    from seedbed.reporting.paper import write_paper
    from seedbed.reporting.study_results import read_study_results
    from seedbed.study import Config

    config = Config.model_validate(json.loads(args.settings))
    studies = []
    for name in config.studies:
        kind = read_json(f"results/{name}/study.json")["study"].get("kind")
        read = read_generalized_results if kind == "generalized" else read_study_results
        studies.append(read(name, "results", config.statistics))
    figures = {results.study.name: figure_names(results.study) for results in studies}
    write_paper(config.paper, studies, figures, "report", "results", args.checklist)


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--settings", required=True, help="the configuration, as JSON")
    parser.add_argument("--checklist", required=True, help="input: reproducibility checklist, JSON")
    job.run(main, parser)
