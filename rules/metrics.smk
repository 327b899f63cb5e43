"""Measure: one score per seed and metric, and what it cost; then all scores of a study in one table."""


rule measure:
    input:
        episodes=f"{BLOCK}/episodes.parquet",
        steps=f"{BLOCK}/steps.parquet",
        curve=f"{BLOCK}/curve.parquet",
        training=f"{BLOCK}/run.json",
        evaluation=f"{BLOCK}/evaluation.json",
    output:
        scores=f"{BLOCK}/scores.parquet",
        curve_scores=f"{BLOCK}/curve_scores.parquet",
        costs=f"{BLOCK}/costs.parquet",
    log:
        f"{BLOCK_LOG}/measure.log",
    conda:
        "../envs/analysis.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=30,
    params:
        metrics=lambda wildcards: STUDIES[wildcards.study].metrics,
        modules=lambda wildcards: metric_modules(wildcards.study),
        source=lambda wildcards: source("measure.py", *metric_modules(wildcards.study)),
    shell:
        "python workflow_scripts/measure.py --source {params.source} --modules {params.modules:q} "
        "--study {wildcards.study:q} --environment {wildcards.environment:q} "
        "--algorithm {wildcards.algorithm:q} --metrics {params.metrics:q} --episodes {input.episodes:q} "
        "--steps {input.steps:q} --curve {input.curve:q} --training {input.training:q} --evaluation {input.evaluation:q} "
        "--scores {output.scores:q} --curve-scores {output.curve_scores:q} --costs {output.costs:q} "
        "> {log:q} 2>&1"


rule collect_scores:
    input:
        study="results/{study}/study.json",
        blocks=lambda wildcards: block_files(wildcards.study, *layout.MEASURED),
    output:
        scores="results/{study}/scores.parquet",
        curve_scores="results/{study}/curve_scores.parquet",
        costs="results/{study}/costs.parquet",
    log:
        "results/logs/{study}/collect_scores.log",
    conda:
        "../envs/analysis.yaml"
    params:
        modules=lambda wildcards: metric_modules(wildcards.study),
        source=lambda wildcards: source("collect_scores.py", *metric_modules(wildcards.study)),
    shell:
        "python workflow_scripts/collect_scores.py --source {params.source} --modules {params.modules:q} "
        "--study {input.study:q} --scores {output.scores:q} --curve-scores {output.curve_scores:q} "
        "--costs {output.costs:q} > {log:q} 2>&1"
