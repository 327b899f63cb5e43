"""Draw the figures of each study."""

from seedbed.figures.names import followed, followed_steps, kind_of
from seedbed.reporting.result_list import figure_files


def drawing_modules(study):
    """Modules that draw.py loads by name: metrics, and environments whose trajectories are drawn."""
    environments = [STUDIES[study].environments[label] for label in followed(STUDIES[study])]
    return [*metric_modules(study), *sorted({module for entry in environments for module in entry.modules})]


for study in TRAINING.values():

    rule:
        name:
            f"draw_{study.name}"
        input:
            study=f"results/{study.name}/study.json",
            scores=f"results/{study.name}/scores.parquet",
            statistics=expand(f"results/{study.name}/statistics/{{name}}.parquet", name=layout.DRAWN),
            steps=followed_steps(study, BLOCKS[study.name]),
            style="report/seedbed.mplstyle",
        output:
            [
                (
                    report(
                        name,
                        caption=f"../report/captions/{kind_of(Path(name).stem)}.rst",
                        category=study.name,
                    )
                    if name.endswith(".svg")
                    else name
                )
                for name in figure_files(study)
            ],
        log:
            f"results/logs/{study.name}/draw.log",
        conda:
            "../envs/report.yaml"
        params:
            study=study.name,
            confidence=CONFIG.statistics.confidence,
            modules=drawing_modules(study.name),
            source=source("draw.py", *drawing_modules(study.name)),
        shell:
            "python workflow_scripts/draw.py --source {params.source} --modules {params.modules:q} "
            "--study {params.study:q} --confidence {params.confidence} > {log:q} 2>&1"
