"""Write the SHA-256 of all that was made of some studies, in the format of sha256sum."""

from seedbed import job


def main(args):
    from seedbed.artifacts import read_json
    from seedbed.provenance.checksums import write_checksums, write_deterministic
    from seedbed.reporting.result_list import result_list
    from seedbed.study_files import as_study

    files = list(args.files)
    for path in args.studies:
        resolved = read_json(path)
        files += result_list(as_study(resolved["study"]), resolved["blocks"])
    write_checksums(args.checksums, files, job.ROOT)
    if args.deterministic:
        write_deterministic(args.deterministic, args.checksums)


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--studies", required=True, nargs="+", help="input: resolved studies, JSON")
    parser.add_argument("--files", required=True, nargs="*", help="further files")
    parser.add_argument("--checksums", required=True, help="output: one line per file")
    parser.add_argument("--deterministic", help="output: the lines that must be equal on a rerun")
    job.run(main, parser)
