"""The steps of a secret evaluation as command line and workflow call them."""

import sys
from argparse import Namespace

from seedbed.generalized import contest, contest_verification


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def seal(args: Namespace) -> int:
    """Print the commitment."""
    print(contest.seal(args.folder)["commitment"])
    return 0


def release_tuning(args: Namespace) -> int:
    contest.release_tuning(args.folder)
    return 0


def freeze(args: Namespace) -> int:
    """Print the agents' names."""
    for name in contest.freeze(args.folder, args.agents)["agents"]:
        print(name)
    return 0


def evaluate(args: Namespace) -> int:
    """Print a line per failure and per comparison."""
    results = contest.evaluate(args.folder, args.beacon, _say)
    for failure in results["failures"]:
        print(f"{failure['agent']} is out: it {failure['reason']} in environment {failure['position']}")
    for row in results["comparisons"]:
        verdict = f"{row['better']} is better" if row["better"] else "undecided"
        print(
            f"{row['agent_x']} against {row['agent_y']}: {row['wins']} wins, {row['losses']} losses, "
            f"{row['ties']} ties, p = {row['p_sign_holm']:.3g} (Holm): {verdict}"
        )
    return 0


def reveal(args: Namespace) -> int:
    contest.reveal(args.folder)
    return 0


def verify(args: Namespace) -> int:
    """Print what is wrong; 1 if something is."""
    result = contest_verification.verify(args.folder, None if args.reruns < 0 else args.reruns)
    for finding in result.findings:
        print(finding)
    verdict = f"{len(result.findings)} findings" if result.findings else "everything holds"
    _say(f"{verdict}; {len(result.rerun)} trials were run again")
    return int(bool(result.findings))


STEPS = {
    "seal": seal,
    "release_tuning": release_tuning,
    "freeze": freeze,
    "evaluate": evaluate,
    "reveal": reveal,
    "verify": verify,
}
