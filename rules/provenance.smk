"""Provenance: what ran where, with which code and data, and the proof of it."""

from seedbed.provenance.code import code as code_version

PROVENANCE = "results/provenance"
RECORDS = expand(
    f"{PROVENANCE}/{{name}}",
    name=["hardware.json", "software.json", "code.json", "configuration.yaml", "seeds.json", "content.json"],
)


REPORT_INPUTS = [
    *(name for study in STUDIES for name in layout.study_files(study, BLOCKS[study])),
    *RECORDS,
]


rule record_machine:
    output:
        hardware=f"{PROVENANCE}/hardware.json",
        software=f"{PROVENANCE}/software.json",
    log:
        "results/logs/provenance/record_machine.log",
    conda:
        "../envs/training.yaml"
    params:
        source=source("record_machine.py"),
    shell:
        "python workflow_scripts/record_machine.py --source {params.source} "
        "--hardware {output.hardware:q} --software {output.software:q} > {log:q} 2>&1"


rule record_code:
    output:
        f"{PROVENANCE}/code.json",
    log:
        "results/logs/provenance/record_code.log",
    conda:
        "../envs/analysis.yaml"
    params:
        version=as_json(code_version(ROOT)),
        source=source("record_code.py"),
    shell:
        "python workflow_scripts/record_code.py --source {params.source} --version {params.version:q} "
        "--code {output:q} > {log:q} 2>&1"


rule record_configuration:
    input:
        expand("results/{study}/study.json", study=list(STUDIES)),
    output:
        configuration=f"{PROVENANCE}/configuration.yaml",
        seeds=f"{PROVENANCE}/seeds.json",
        content=f"{PROVENANCE}/content.json",
    log:
        "results/logs/provenance/record_configuration.log",
    conda:
        "../envs/analysis.yaml"
    params:
        settings=as_json(CONFIG.model_dump(mode="json")),
        source=source("record_configuration.py"),
    shell:
        "python workflow_scripts/record_configuration.py --source {params.source} "
        "--settings {params.settings:q} --studies {input:q} --configuration {output.configuration:q} "
        "--seeds {output.seeds:q} --content {output.content:q} > {log:q} 2>&1"


rule hash_report_inputs:
    input:
        REPORT_INPUTS,
        studies=expand("results/{study}/study.json", study=list(STUDIES)),
        records=RECORDS,
    output:
        f"{PROVENANCE}/report_inputs.sha256",
    log:
        "results/logs/provenance/hash_report_inputs.log",
    conda:
        "../envs/analysis.yaml"
    params:
        source=source("write_checksums.py"),
    shell:
        "python workflow_scripts/write_checksums.py --source {params.source} --studies {input.studies:q} "
        "--files {input.records:q} --checksums {output:q} > {log:q} 2>&1"
