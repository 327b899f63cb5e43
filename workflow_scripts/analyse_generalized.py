"""Put the trials of a generalized study together, and compute its statistics."""

from seedbed import job


def main(args):
    import json
    from pathlib import Path

    import pandas as pd

    from seedbed.artifacts import read_json, read_table, write_table
    from seedbed.generalized.study_tables import carried_table, comparison_table, meta_table, picks_table
    from seedbed.generalized.study_trials import DOCUMENT_COLUMNS, META_COLUMNS, documents_table
    from seedbed.generalized.trials import TRIAL_COLUMNS, gather
    from seedbed.generalized_study import GeneralizedStudy
    from seedbed.layout import block_files, generalized_meta, generalized_tests
    from seedbed.provenance.costs import COST_COLUMNS, costs
    from seedbed.study import StatisticsSettings

    study = GeneralizedStudy.model_validate(json.loads(args.plan))
    settings = StatisticsSettings(**json.loads(args.settings))
    drawn = {"seed": settings.seed, "draws": settings.draws, "confidence": settings.confidence}
    folder, blocks = Path("results", study.name), study.blocks()
    tuning, test, picks = {}, {}, {}
    for label in study.environments:
        if files := block_files(study.name, {label: blocks[label]}, "trials.parquet"):
            tuning[label] = gather(read_table(path, TRIAL_COLUMNS) for path in files)
        test[label] = read_table(folder / label / "all/test/trials.parquet", TRIAL_COLUMNS)
        picks[label] = read_table(folder / label / "all/test/picks.parquet")

    def together(tables):
        parts = [table.assign(label=label) for label, table in tables.items()]
        return pd.concat(parts, ignore_index=True)

    columns = {"label": "string"} | TRIAL_COLUMNS
    write_table(folder / "environments.parquet", documents_table(study), DOCUMENT_COLUMNS)
    write_table(folder / "tuning.parquet", together(tuning), columns)
    write_table(folder / "test.parquet", together(test), columns)
    chosen = [
        picks_table(label, picks[label], tuning[entry.tuned_in or label], test[label], settings.confidence)
        for label, entry in study.environments.items()
    ]
    write_table(folder / "statistics/picks.parquet", pd.concat(chosen, ignore_index=True), {})
    table = comparison_table(picks, test, margin=study.margin, **drawn)
    write_table(folder / "statistics/comparisons.parquet", table, {})
    if carried := study.carried:
        table = carried_table(carried, picks, test, margin=study.margin, **drawn)
        write_table(folder / "statistics/carried.parquet", table, {})
    records = [*block_files(study.name, blocks, "run.json"), *generalized_tests(study, "evaluation.json")]
    if study.meta:
        trials, record = generalized_meta(study)
        records.append(record)
        series = meta_table(read_table(trials, META_COLUMNS), **drawn)
        write_table(folder / "statistics/meta.parquet", series, {})
    write_table(folder / "costs.parquet", costs(map(read_json, records)), COST_COLUMNS)


if __name__ == "__main__":
    parser = job.parser(__doc__)
    parser.add_argument("--plan", required=True, help="the study, as JSON")
    parser.add_argument("--settings", required=True, help="settings of the statistics, as JSON")
    job.run(main, parser)
