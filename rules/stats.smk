"""Analyse: intervals, tests, curves and incidence, on the score table of a study."""


rule analyse:
    input:
        study="results/{study}/study.json",
        scores="results/{study}/scores.parquet",
        curve_scores="results/{study}/curve_scores.parquet",
        episodes=lambda wildcards: block_files(wildcards.study, "episodes.parquet"),
        steps=lambda wildcards: layout.forecast_files(STUDIES[wildcards.study], BLOCKS[wildcards.study]),
    output:
        **{name: f"results/{{study}}/statistics/{name}.parquet" for name in layout.STATISTICS},
    log:
        "results/logs/{study}/analyse.log",
    conda:
        "../envs/analysis.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
        runtime=60,
    params:
        settings=as_json(CONFIG.statistics.model_dump()),
        modules=lambda wildcards: metric_modules(wildcards.study),
        source=lambda wildcards: source("analyse.py", *metric_modules(wildcards.study)),
    shell:
        "python workflow_scripts/analyse.py --source {params.source} --modules {params.modules:q} "
        "--settings {params.settings:q} --study {input.study:q} --scores {input.scores:q} "
        "--curve-scores {input.curve_scores:q} --summary {output.summary:q} "
        "--comparisons {output.comparisons:q} --curves {output.curves:q} --incidence {output.incidence:q} "
        "--sample-efficiency {output.sample_efficiency:q} --reliability {output.reliability:q} > {log:q} 2>&1"
