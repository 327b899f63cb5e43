"""Provenance: what ran where, with which code and data, and the proof of it."""

from seedbed.provenance.code import code as code_version

PROVENANCE = "results/provenance"
RECORDS = expand(
    f"{PROVENANCE}/{{name}}",
    name=["hardware.json", "software.json", "code.json", "configuration.yaml", "seeds.json", "content.json"],
)


REPORT_INPUTS = [
    *(name for study in STUDIES.values() for name in result_list(study, BLOCKS[study.name])),
    *RECORDS,
]
STUDY_DOCUMENTS = expand("results/{study}/study.json", study=list(STUDIES))


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
        STUDY_DOCUMENTS,
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
        studies=STUDY_DOCUMENTS,
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


rule write_checklist:
    input:
        "config.yaml",
        "requirements.lock",
        expand("studies/{study}.yaml", study=list(STUDIES)),
        REPORT_INPUTS,
        f"{PROVENANCE}/report_inputs.sha256",
        studies=STUDY_DOCUMENTS,
    output:
        checklist=f"{PROVENANCE}/checklist.json",
        page=f"{PROVENANCE}/checklist.md",
    log:
        "results/logs/provenance/write_checklist.log",
    conda:
        "../envs/analysis.yaml"
    params:
        records=["record_machine", "record_code", "record_configuration", "hash_report_inputs"],
        source=source("write_checklist.py"),
    shell:
        "python workflow_scripts/write_checklist.py --source {params.source} --studies {input.studies:q} "
        "--records {params.records} --checklist {output.checklist:q} --page {output.page:q} > {log:q} 2>&1"


rule write_checksums:
    input:
        REPORT_INPUTS,
        studies=STUDY_DOCUMENTS,
        files=[
            *RECORDS,
            *PAGES,
            *RENDERED,
            *expand(
                f"{PROVENANCE}/{{name}}", name=["report_inputs.sha256", "checklist.json", "checklist.md"]
            ),
        ],
    output:
        checksums=f"{PROVENANCE}/checksums.sha256",
        deterministic=f"{PROVENANCE}/deterministic.sha256",
    log:
        "results/logs/provenance/write_checksums.log",
    conda:
        "../envs/analysis.yaml"
    params:
        source=source("write_checksums.py"),
    shell:
        "python workflow_scripts/write_checksums.py --source {params.source} --studies {input.studies:q} "
        "--files {input.files:q} --checksums {output.checksums:q} --deterministic {output.deterministic:q} "
        "> {log:q} 2>&1"


rule provenance:
    input:
        rules.write_checksums.output,
        rules.write_checklist.output,
        REPORT_INPUTS,  # so that a result that was deleted is made again
