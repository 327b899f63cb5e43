"""Statistics, figures and tables of generalized environments."""

from seedbed.figures.names import kind_of
from seedbed.reporting.result_list import figure_files, table_files

for study in GENERALIZED.values():

    rule:
        name:
            f"analyse_{study.name}"
        input:
            layout.block_files(study.name, BLOCKS[study.name], *layout.TUNED),
            layout.generalized_tests(study, *layout.TESTED),
            layout.generalized_meta(study),
        output:
            layout.generalized_analysis(study),
        log:
            f"results/logs/{study.name}/analyse_generalized.log",
        conda:
            "../envs/analysis.yaml"
        resources:
            mem_mb=lambda wildcards, attempt: 4000 * attempt,
            runtime=60,
        params:
            plan=study.model_dump_json(),
            settings=as_json(CONFIG.statistics.model_dump()),
            source=source("analyse_generalized.py"),
        shell:
            "python workflow_scripts/analyse_generalized.py --source {params.source} --plan {params.plan:q} "
            "--settings {params.settings:q} > {log:q} 2>&1"

    rule:
        name:
            f"draw_{study.name}"
        input:
            layout.generalized_analysis(study),
            f"results/{study.name}/study.json",
            "report/seedbed.mplstyle",
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
            source=source("draw_generalized.py"),
        shell:
            "python workflow_scripts/draw_generalized.py --source {params.source} --study {params.study:q} "
            "> {log:q} 2>&1"

    rule:
        name:
            f"tabulate_{study.name}"
        input:
            layout.generalized_analysis(study),
            f"results/{study.name}/study.json",
        output:
            table_files(study),
        log:
            f"results/logs/{study.name}/tabulate.log",
        conda:
            "../envs/report.yaml"
        params:
            study=study.name,
            settings=as_json(CONFIG.statistics.model_dump()),
            source=source("tabulate_generalized.py"),
        shell:
            "python workflow_scripts/tabulate_generalized.py --source {params.source} "
            "--study {params.study:q} --settings {params.settings:q} > {log:q} 2>&1"
