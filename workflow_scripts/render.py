"""Turn the paper into LaTeX, PDF and a web page."""

from seedbed import job


def main(args):
    from seedbed.reporting.render import render

    render(args.paper, "report")


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--paper", required=True, help="input: the paper, Markdown")
    job.run(main, parser)
