"""Off-policy evaluation: log a behaviour policy, estimate what others earn, hold it against the simulator."""


rule log_behaviour:
    output:
        behaviour="results/{study}/off_policy/behaviour.parquet",
        events="results/{study}/off_policy/events.parquet",
    log:
        "results/logs/{study}/log_behaviour.log",
    conda:
        "../envs/training.yaml"
    params:
        plan=off_policy_plan,
        modules=lambda wildcards: off_policy_modules(wildcards.study),
        source=lambda wildcards: source("log_behaviour.py", *off_policy_modules(wildcards.study)),
    shell:
        "python workflow_scripts/log_behaviour.py --source {params.source} --modules {params.modules:q} "
        "--plan {params.plan:q} --behaviour {output.behaviour:q} --events {output.events:q} > {log:q} 2>&1"


rule evaluate_off_policy:
    input:
        behaviour="results/{study}/off_policy/behaviour.parquet",
    output:
        estimates="results/{study}/off_policy/estimates.parquet",
        overlap="results/{study}/off_policy/overlap.parquet",
        coverage="results/{study}/off_policy/coverage.parquet",
    log:
        "results/logs/{study}/evaluate_off_policy.log",
    conda:
        "../envs/training.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
        runtime=120,
    params:
        plan=off_policy_plan,
        settings=as_json(CONFIG.statistics.model_dump()),
        modules=lambda wildcards: off_policy_modules(wildcards.study),
        source=lambda wildcards: source("evaluate_off_policy.py", *off_policy_modules(wildcards.study)),
    shell:
        "python workflow_scripts/evaluate_off_policy.py --source {params.source} "
        "--modules {params.modules:q} --plan {params.plan:q} --settings {params.settings:q} "
        "--behaviour {input.behaviour:q} --estimates {output.estimates:q} --overlap {output.overlap:q} "
        "--coverage {output.coverage:q} > {log:q} 2>&1"
