"""Evaluate policies on the test episodes."""


rule evaluate_policies:
    input:
        policy=f"{BLOCK}/policy.safetensors",
    output:
        episodes=f"{BLOCK}/episodes.parquet",
        steps=f"{BLOCK}/steps.parquet",
        run=f"{BLOCK}/evaluation.json",
    log:
        f"{BLOCK_LOG}/evaluate.log",
    benchmark:
        f"{BLOCK_LOG}/evaluate.benchmark.tsv"
    conda:
        "../envs/training.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=60,
    params:
        settings=lambda wildcards: block_settings(evaluation_settings, wildcards),
        modules=block_modules,
        source=lambda wildcards: source("evaluate.py", *block_modules(wildcards)),
    shell:
        "python workflow_scripts/evaluate.py --source {params.source} --modules {params.modules:q} "
        "--settings {params.settings:q} --policy {input.policy:q} --episodes {output.episodes:q} "
        "--steps {output.steps:q} --run {output.run:q} > {log:q} 2>&1"
