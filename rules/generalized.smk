"""Generalized environments: tuning trials in parts, then each choice and its test trials, then the series."""

PART = "results/{study}/{environment}/all/{part}"
TEST = "results/{study}/{environment}/all/test"


rule tune_generalized:
    output:
        trials=f"{PART}/trials.parquet",
        run=f"{PART}/run.json",
    log:
        f"results/logs/{PART.removeprefix('results/')}/tune.log",
    benchmark:
        f"results/logs/{PART.removeprefix('results/')}/tune.benchmark.tsv"
    wildcard_constraints:
        study="|".join(GENERALIZED) or NO_STUDY,
        part="part-[0-9]+",
    conda:
        "../envs/training.yaml"
    resources:
        mem_mb=trial_memory,
        runtime=lambda wildcards: STUDIES[wildcards.study].runtime,
    params:
        plan=trial_plan,
        number=lambda wildcards: wildcards.part.removeprefix("part-"),
        source=source("tune_generalized.py"),
    shell:
        "python workflow_scripts/tune_generalized.py --source {params.source} --plan {params.plan:q} "
        "--environment {wildcards.environment:q} --part {params.number} --trials {output.trials:q} "
        "--run {output.run:q} > {log:q} 2>&1"


rule evaluate_generalized:
    input:
        tuning=lambda wildcards: tuning_trials(wildcards.study, wildcards.environment),
    output:
        picks=f"{TEST}/picks.parquet",
        trials=f"{TEST}/trials.parquet",
        run=f"{TEST}/evaluation.json",
    log:
        f"results/logs/{TEST.removeprefix('results/')}/test.log",
    wildcard_constraints:
        study="|".join(GENERALIZED) or NO_STUDY,
    conda:
        "../envs/training.yaml"
    resources:
        mem_mb=trial_memory,
        runtime=lambda wildcards: STUDIES[wildcards.study].runtime,
    params:
        plan=trial_plan,
        source=source("evaluate_generalized.py"),
    shell:
        "python workflow_scripts/evaluate_generalized.py --source {params.source} --plan {params.plan:q} "
        "--environment {wildcards.environment:q} --tuning {input.tuning:q} --picks {output.picks:q} "
        "--trials {output.trials:q} --run {output.run:q} > {log:q} 2>&1"


rule run_series:
    input:
        tuning=lambda wildcards: tuning_trials(wildcards.study, STUDIES[wildcards.study].meta.environment),
    output:
        trials="results/{study}/meta/trials.parquet",
        run="results/{study}/meta/evaluation.json",
    log:
        "results/logs/{study}/meta.log",
    wildcard_constraints:
        study="|".join(GENERALIZED) or NO_STUDY,
    conda:
        "../envs/training.yaml"
    resources:
        mem_mb=trial_memory,
        runtime=lambda wildcards: STUDIES[wildcards.study].runtime,
    params:
        plan=meta_plan,
        source=source("run_series.py"),
    shell:
        "python workflow_scripts/run_series.py --source {params.source} --plan {params.plan:q} "
        "--tuning {input.tuning:q} --trials {output.trials:q} --run {output.run:q} > {log:q} 2>&1"
