"""Tables, paper, and the paper as LaTeX, PDF and web page."""

from seedbed.figures.names import figure_names
from seedbed.reporting.result_list import figure_files, result_list, table_files

STAGES = {
    name: {
        "policies": block_files(name, *layout.TRAINED),
        "episodes": block_files(name, *layout.EVALUATED),
        "scores": f"results/{name}/scores.parquet",
        "statistics": expand(f"results/{name}/statistics/{{part}}.parquet", part=layout.STATISTICS),
        **({"off_policy": layout.off_policy_files(study)} if study.off_policy else {}),
        "figures": figure_files(study),
        "tables": table_files(study),
    }
    for name, study in TRAINING.items()
}
STAGES |= {
    name: {
        "statistics": layout.generalized_analysis(study),
        "figures": figure_files(study),
        "tables": table_files(study),
    }
    for name, study in GENERALIZED.items()
}
TEMPLATES = [
    *expand("report/{name}.md", name=["paper", "methods", "generalized", "generalized_methods"]),
    "report/filters/paper.lua",
    *expand("report/templates/{name}", name=["page.html", "paper.tex", "paper.typ"]),
]
PAGES = expand("results/report/{name}", name=["paper.md", "trace.json"])
RENDERED = expand("results/report/{name}", name=["paper.tex", "paper.pdf", "index.html"])

for study in TRAINING.values():

    rule:
        name:
            f"tabulate_{study.name}"
        input:
            expand(f"results/{study.name}/{{name}}", name=layout.STUDY),
            expand(f"results/{study.name}/statistics/{{name}}.parquet", name=layout.STATISTICS),
            layout.off_policy_files(study),
        output:
            table_files(study),
        log:
            f"results/logs/{study.name}/tabulate.log",
        conda:
            "../envs/report.yaml"
        params:
            study=study.name,
            settings=as_json(CONFIG.statistics.model_dump()),
            modules=study_modules(study.name),
            source=source("tabulate.py", *study_modules(study.name)),
        shell:
            "python workflow_scripts/tabulate.py --source {params.source} --modules {params.modules:q} "
            "--study {params.study:q} --settings {params.settings:q} > {log:q} 2>&1"


rule write_paper:
    input:
        TEMPLATES,
        [name for study in STUDIES.values() for name in result_list(study, BLOCKS[study.name])],
        expand(
            "report/captions/{name}.rst",
            name=sorted({kind_of(n) for s in STUDIES.values() for n in figure_names(s)}),
        ),
        checklist="results/provenance/checklist.json",
    output:
        PAGES,
    log:
        "results/logs/report/write_paper.log",
    conda:
        "../envs/report.yaml"
    params:
        settings=as_json(CONFIG.model_dump(mode="json")),
        modules=sorted({name for study in STUDIES for name in study_modules(study)}),
        source=source("write_paper.py", *sorted({n for s in STUDIES for n in study_modules(s)})),
    shell:
        "python workflow_scripts/write_paper.py --source {params.source} --modules {params.modules:q} "
        "--settings {params.settings:q} --checklist {input.checklist:q} > {log:q} 2>&1"


rule render:
    input:
        TEMPLATES,
        [name for study in STUDIES.values() for name in figure_files(study)],
        paper="results/report/paper.md",
    output:
        RENDERED,
    log:
        "results/logs/report/render.log",
    conda:
        "../envs/report.yaml"
    params:
        source=source("render.py"),
    shell:
        "python workflow_scripts/render.py --source {params.source} --paper {input.paper:q} > {log:q} 2>&1"


rule report:
    input:
        PAGES,
        RENDERED,
