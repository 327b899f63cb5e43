"""Record the machine and the software of this environment."""

from seedbed import job


def main(args):
    from seedbed.artifacts import write_json
    from seedbed.provenance.machine import hardware, software

    write_json(args.hardware, hardware())
    write_json(args.software, software(torch=True))


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--hardware", required=True, help="output: JSON")
    parser.add_argument("--software", required=True, help="output: JSON")
    job.run(main, parser)
