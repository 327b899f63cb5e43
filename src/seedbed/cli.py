"""The verbs: ``seedbed VERB``. Each is a thin face on a function of the package, with the same arguments."""

import argparse
import json
import sys
from pathlib import Path

from seedbed.artifacts import SeedbedError


def trace(args: argparse.Namespace) -> int:
    """Print the way from a number in the paper back to its runs."""
    from seedbed.reporting.trace import trace

    for step in trace(args.id, args.results):
        print(step)
    return 0


def verify(args: argparse.Namespace) -> int:
    """Hold all results against their checksums; exit with 1 if one differs."""
    from seedbed.provenance.checksums import read_checksums, verify

    problems = verify(args.checksums, args.root)
    for problem in problems:
        print(problem.message)
    count = len(read_checksums(args.checksums))
    verdict = (
        f"{len(problems)} of {count} files differ"
        if problems
        else f"all {count} files are as their checksums say"
    )
    print(verdict, file=sys.stderr)
    return int(bool(problems))


def schema(args: argparse.Namespace) -> int:
    """Print the JSON schema of config.yaml, for editors."""
    from seedbed.study import Config

    print(json.dumps(Config.model_json_schema(), indent=2))
    return 0


def audit(args: argparse.Namespace) -> int:
    """Say which invariances of evaluation hold in an environment; exit with 1 if one does not."""
    from seedbed.auditing.audit import audit, document, line, verdict
    from seedbed.auditing.subject import Subject, parsed

    subject = Subject(args.environment, parsed(args.environment_argument), args.episodes)
    findings = []
    for finding in audit(subject):
        findings.append(finding)
        if not args.json:
            print(line(finding), flush=True)
    if args.json:
        print(json.dumps(document(subject, findings), allow_nan=False))
    print(verdict(findings), file=sys.stderr)
    return int(any(finding.holds is False for finding in findings))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="seedbed", description=__doc__)
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    def verb(function) -> argparse.ArgumentParser:
        added = verbs.add_parser(function.__name__, help=function.__doc__, description=function.__doc__)
        added.set_defaults(function=function)
        return added

    added = verb(trace)
    added.add_argument("id", help="trace id, as the report's page shows it")
    added.add_argument("--results", type=Path, default=Path("results"), help="folder of results")
    added = verb(verify)
    added.add_argument("--checksums", type=Path, default=Path("results/provenance/checksums.sha256"))
    added.add_argument("--root", type=Path, default=Path(), help="folder that the paths start from")
    verb(schema)
    added = verb(audit)
    added.add_argument(
        "--environment",
        required=True,
        help="registered name, Gymnasium id, or package.module:Name of your own",
    )
    added.add_argument(
        "--environment-argument",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an argument of it, as in a study; the value is YAML, a dot leads inside: kwargs.g=9.8",
    )
    added.add_argument("--episodes", type=_positive, default=10, help="episodes to play, 10 by default")
    added.add_argument("--json", action="store_true", help="one line of JSON in place of the table")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def main() -> None:
    """Entry point of ``seedbed``."""
    args = _parser().parse_args()
    sys.path.append(str(Path.cwd()))  # a user's own modules, as for the workflow's jobs
    try:
        status = args.function(args)
    except SeedbedError as error:
        print(f"Error: {error}", file=sys.stderr)
        status = 1
    raise SystemExit(status)


if __name__ == "__main__":
    main()
