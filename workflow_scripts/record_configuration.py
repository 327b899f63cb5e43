"""Record the resolved configuration, all seeds, and the checksums of the environments' fixed content."""

from seedbed import job


def main(args):
    import json

    import yaml

    from seedbed.artifacts import read_json, write_json, write_text
    from seedbed.provenance.checklist import seed_plan
    from seedbed.study_files import as_study

    resolved = {document["study"]["name"]: document for document in map(read_json, args.studies)}
    studies = [as_study(document["study"]) for document in resolved.values()]
    configuration = {"configuration": json.loads(args.settings), "studies": resolved}
    write_text(args.configuration, yaml.safe_dump(configuration, sort_keys=False, allow_unicode=True))
    write_json(args.seeds, seed_plan(studies))
    content = {
        name: {label: sizes["content"] for label, sizes in document["environments"].items()}
        for name, document in resolved.items()
    }
    write_json(args.content, content)


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--settings", required=True, help="the configuration, as JSON")
    parser.add_argument("--studies", required=True, nargs="+", help="input: resolved studies, JSON")
    parser.add_argument("--configuration", required=True, help="output: resolved configuration, YAML")
    parser.add_argument("--seeds", required=True, help="output: seeds and cells, JSON")
    parser.add_argument("--content", required=True, help="output: checksums of fixed content, JSON")
    job.run(main, parser)
