"""One step of a secret evaluation."""

from pathlib import Path

from seedbed import job


def main(args):
    from seedbed.generalized.steps import STEPS

    if STEPS[args.step](args):
        raise SystemExit(1)


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("step", help="a key of STEPS")
    parser.add_argument("folder", type=Path, help="of the contest")
    parser.add_argument("--agents", nargs="*", default=[], help="folders of the agents, for freeze")
    parser.add_argument("--beacon", help="public value, for evaluate")
    parser.add_argument("--reruns", type=int, default=5, help="trials to repeat, for verify; -1 for all")
    job.run(main, parser)
