"""Record the version of the code: commit, and what was not committed."""

from seedbed import job


def main(args):
    import json

    from seedbed.artifacts import write_json

    write_json(args.code, json.loads(args.version))


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--version", required=True, help="the version when the run was planned, JSON")
    parser.add_argument("--code", required=True, help="output: JSON")
    job.run(main, parser)
