"""The verbs: ``seedbed VERB``. Each is a thin face on a function of the package, with the same arguments."""

import argparse
import functools
import json
import sys
from pathlib import Path

from seedbed.artifacts import SeedbedError

PAIRS = {"metavar": "KEY=VALUE", "action": "append", "default": []}
"""How an option that may be repeated takes arguments; see ``arguments.nested``."""


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


def evaluate(args: argparse.Namespace) -> int:
    """Evaluate one policy on a fixed set of episodes; print one line of JSON."""
    from seedbed.arguments import nested
    from seedbed.evaluating.run import Request, evaluate_policy
    from seedbed.evaluating.summary import describe

    given = {name: value for name, value in vars(args).items() if name != "function"}
    for name in ("policy_arguments", "environment_arguments"):
        given[name] = nested(given[name])
    summary = evaluate_policy(Request(**given))
    if "skipped" not in summary:
        print(describe(summary), file=sys.stderr)
    print(json.dumps(summary, allow_nan=False))
    return 0


def audit(args: argparse.Namespace) -> int:
    """Say which invariances of evaluation hold in an environment; exit with 1 if one does not."""
    from seedbed.arguments import nested
    from seedbed.auditing.audit import audit, document, line, verdict
    from seedbed.auditing.subject import Subject

    subject = Subject(args.environment, nested(args.environment_arguments), args.episodes)
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
    _evaluate_arguments(verb(evaluate))
    added = verb(audit)
    _environment_arguments(added)
    added.add_argument("--episodes", type=_positive, default=10, help="episodes to play, 10 by default")
    added.add_argument("--json", action="store_true", help="one line of JSON in place of the table")
    return parser


def _environment_arguments(parser: argparse.ArgumentParser) -> None:
    """An environment by its name and arguments, as in a study."""
    parser.add_argument(
        "--environment", required=True, help="registered name, Gymnasium id, or package.module:Name"
    )
    parser.add_argument(
        "--environment-argument",
        dest="environment_arguments",
        **PAIRS,
        help="value in JSON or YAML; a dot leads into a mapping: kwargs.g=9.8",
    )


def _evaluate_arguments(parser: argparse.ArgumentParser) -> None:
    """Those of ``evaluating.run.Request``, under the same names but for plurals."""
    add = parser.add_argument
    add("--policy", required=True, help="registered name, file, or package.module:Name")
    add("--policy-argument", dest="policy_arguments", **PAIRS, help="as for --environment-argument")
    _environment_arguments(parser)
    add("--episodes", type=int, default=100, help="number of episodes per seed (default: 100)")
    add("--seed", dest="seeds", type=int, nargs="+", help="training seeds (default: the file's, or else 0)")
    add("--seed-offset", type=int, default=0, help="number of the first episode (default: 0)")
    add("--reset-seeds", action="store_true", help="episode k is reset with the plain seed k")
    add("--lanes", type=int, default=1, help="episodes side by side, for speed alone (default: 1)")
    mode = parser.add_mutually_exclusive_group()
    add_mode = functools.partial(mode.add_argument, dest="mode", action="store_const")
    add_mode("--greedy", const="greedy", help="the likeliest or best action (default where the policy can)")
    add_mode("--sampled", const="sampled", help="actions as drawn in training")
    add("--max-steps", type=int, help="step limit in place of the environment's own")
    add("--device", choices=("cpu", "cuda", "auto"), default="cpu", help="of networks (default: cpu)")
    add("--optional-device", action="store_true", help='without a GPU print {"skipped": ...} and succeed')
    add("--output", type=Path, help="write the episode table (.parquet) or the printed line (.json)")
    add("--dump-trajectory", type=Path, help="write one line of JSON per step (.jsonl)")


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
