"""Train: one job per environment, algorithm and block of seeds.

Training takes no input from `resolve_study`, not even an ancient one: where a job is due to run, Snakemake does
not look at what else changed in the jobs behind it, and an ancient input does not make them run. So every study
is checked in `onstart` instead.
"""


rule resolve_study:
    output:
        study="results/{study}/study.json",
    log:
        "results/logs/{study}/resolve_study.log",
    wildcard_constraints:
        study="|".join(STUDIES),
    conda:
        "../envs/training.yaml"
    params:
        settings=lambda wildcards: STUDIES[wildcards.study].model_dump_json(),
        seeds_per_job=CONFIG.seeds_per_job,
        modules=lambda wildcards: study_modules(wildcards.study),
        source=lambda wildcards: source("resolve_study.py", *study_modules(wildcards.study)),
    shell:
        "python workflow_scripts/resolve_study.py --source {params.source} --modules {params.modules:q} "
        "--settings {params.settings:q} --seeds-per-job {params.seeds_per_job} --study {output.study:q} > {log:q} 2>&1"


rule train:
    output:
        policy=f"{BLOCK}/policy.safetensors",
        curve=f"{BLOCK}/curve.parquet",
        training=f"{BLOCK}/training.parquet",
        diagnostics=f"{BLOCK}/diagnostics.parquet",
        run=f"{BLOCK}/run.json",
    log:
        f"{BLOCK_LOG}/train.log",
    benchmark:
        f"{BLOCK_LOG}/train.benchmark.tsv"
    conda:
        "../envs/training.yaml"
    threads: lambda wildcards: STUDIES[wildcards.study].algorithms[wildcards.algorithm].threads
    resources:
        gpu=training_resource("gpu"),
        mem_mb=training_resource("mem_mb"),
        runtime=training_resource("runtime"),
    params:
        settings=lambda wildcards: block_settings(training_settings, wildcards),
        modules=block_modules,
        source=lambda wildcards: source("train.py", *block_modules(wildcards)),
    shell:
        "python workflow_scripts/train.py --source {params.source} --modules {params.modules:q} "
        "--settings {params.settings:q} --policy {output.policy:q} --curve {output.curve:q} "
        "--training {output.training:q} --diagnostics {output.diagnostics:q} --run {output.run:q} "
        "> {log:q} 2>&1"
