"""Tick the reproducibility checklist from the evidence that is there."""

from seedbed import job


def main(args):
    from pathlib import Path

    from seedbed.artifacts import read_json, write_json, write_text
    from seedbed.layout import block_files, generalized_logs, generalized_tests, logs
    from seedbed.provenance.checklist import Evidence, as_json, as_markdown, checklist
    from seedbed.study import Study
    from seedbed.study_files import as_study

    provenance = Path("results/provenance")
    runs, written = [], [f"results/logs/provenance/{name}.log" for name in args.records]
    for path in args.studies:
        resolved = read_json(path)
        study = as_study(resolved["study"])
        if isinstance(study, Study):
            runs += block_files(study.name, resolved["blocks"], "run.json", "evaluation.json")
            written += logs(study.name, resolved["blocks"], bool(study.off_policy))
        else:
            runs += block_files(study.name, resolved["blocks"], "run.json")
            runs += generalized_tests(study, "evaluation.json")
            written += generalized_logs(study)
    evidence = Evidence(
        root=job.ROOT,
        seeds=provenance / "seeds.json",
        runs=tuple(map(Path, runs)),
        configuration=provenance / "configuration.yaml",
        studies=(
            Path("config.yaml"),
            *(Path(f"studies/{Path(path).parent.name}.yaml") for path in args.studies),
        ),
        lock=Path("requirements.lock"),
        software=provenance / "software.json",
        content=provenance / "content.json",
        checksums=provenance / "report_inputs.sha256",
        code=provenance / "code.json",
        hardware=provenance / "hardware.json",
        logs=tuple(map(Path, written)),
    )
    items = checklist(evidence)
    write_json(args.checklist, as_json(items))
    write_text(args.page, as_markdown(items))


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--studies", required=True, nargs="+", help="input: resolved studies, JSON")
    parser.add_argument("--records", required=True, nargs="+", help="rules that record provenance")
    parser.add_argument("--checklist", required=True, help="output: JSON")
    parser.add_argument("--page", required=True, help="output: Markdown")
    job.run(main, parser)
