"""How a program of the workflow begins and ends: the same few manners for all of them."""

import argparse
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from seedbed.artifacts import SeedbedError
from seedbed.provenance import sources

ROOT = Path(__file__).parents[2]


def parser(description: str | None) -> argparse.ArgumentParser:
    """An argument parser with what every program takes."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--source", help="digest of the program's sources when the job was planned")
    arguments.add_argument(
        "--modules", nargs="*", default=[], help="modules that the study names, as package.module:Name"
    )
    return arguments


def run(main: Callable[[argparse.Namespace], None], arguments: argparse.ArgumentParser) -> None:
    """Parse the command line and run ``main`` with it, on one thread unless the environment says otherwise.

    The log begins with the command, so that a job can be repeated by hand from its log. Errors meant for a
    person end the program with their message and status 1; others keep their traceback.
    """
    given = arguments.parse_args()
    print("$", shlex.join(["python", *sys.argv]), flush=True)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    try:
        if given.source:
            sources.check(Path(sys.argv[0]).resolve(), ROOT / "src/seedbed", given.modules, given.source)
        main(given)
    except SeedbedError as error:
        print(f"Error: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    print("done", flush=True)
