"""A secret evaluation, step by step. Nothing here is part of `all`: each step is asked for by name.

What is published stands. So outputs are never removed before a job (`update`), and edited sources repeat
nothing: a step that finds its files as they should be leaves them, and refuses otherwise.
"""

SECRET = CONFIG.secret.folder
PUBLIC = f"{SECRET}/public"


rule secret_seal:
    input:
        f"{SECRET}/sealed/contest.yaml",
    output:
        update(f"{PUBLIC}/commitment.json"),
    log:
        "results/logs/secret/seal.log",
    conda:
        "../envs/training.yaml"
    params:
        folder=lambda wildcards: SECRET,
    shell:
        "python workflow_scripts/secret.py seal {params.folder:q} > {log:q} 2>&1"


rule secret_release_tuning:
    input:
        f"{PUBLIC}/commitment.json",
    output:
        update(f"{PUBLIC}/tuning.json"),
    log:
        "results/logs/secret/release_tuning.log",
    conda:
        "../envs/training.yaml"
    params:
        folder=lambda wildcards: SECRET,
    shell:
        "python workflow_scripts/secret.py release_tuning {params.folder:q} > {log:q} 2>&1"


rule secret_freeze:
    input:
        f"{PUBLIC}/tuning.json",
    output:
        update(f"{PUBLIC}/freeze.json"),
    log:
        "results/logs/secret/freeze.log",
    conda:
        "../envs/training.yaml"
    params:
        folder=lambda wildcards: SECRET,
        agents=CONFIG.secret.agents,
    shell:
        "python workflow_scripts/secret.py freeze {params.folder:q} --agents {params.agents:q} > {log:q} 2>&1"


rule secret_evaluate:
    input:
        commitment=f"{PUBLIC}/commitment.json",
        freeze=f"{PUBLIC}/freeze.json",
    output:
        update(f"{PUBLIC}/results.json"),
    log:
        "results/logs/secret/evaluate.log",
    conda:
        "../envs/training.yaml"
    resources:
        runtime=2880,
    params:
        folder=lambda wildcards: SECRET,
        beacon=[] if CONFIG.secret.beacon is None else ["--beacon", CONFIG.secret.beacon],
    shell:
        "python workflow_scripts/secret.py evaluate {params.folder:q} {params.beacon:q} > {log:q} 2>&1"


rule secret_reveal:
    input:
        f"{PUBLIC}/results.json",
    output:
        update(f"{PUBLIC}/reveal.json"),
    log:
        "results/logs/secret/reveal.log",
    conda:
        "../envs/training.yaml"
    params:
        folder=lambda wildcards: SECRET,
    shell:
        "python workflow_scripts/secret.py reveal {params.folder:q} > {log:q} 2>&1"


rule secret_verify:
    input:  # what is there: to verify must not reveal
        [
            path
            for name in ("commitment", "tuning", "freeze", "results", "reveal")
            if Path(path := f"{PUBLIC}/{name}.json").exists()
        ],
    output:
        touch("results/secret/verified"),
    log:
        "results/logs/secret/verify.log",
    conda:
        "../envs/training.yaml"
    resources:
        runtime=2880,
    params:
        folder=lambda wildcards: SECRET,
        reruns=CONFIG.secret.reruns,
        source=source("secret.py"),
    shell:
        "python workflow_scripts/secret.py verify {params.folder:q} --source {params.source} "
        "--reruns {params.reruns} > {log:q} 2>&1"
