"""Seedbed: from a written-down experiment to a paper. This file is the table of contents."""

from snakemake.utils import min_version

min_version("9.27")


configfile: "config.yaml"


include: "rules/common.smk"


# The target `report` builds from what is there: what trains and evaluates is left out.
if workflow.dag_settings.targets != {"report"}:

    include: "rules/train.smk"
    include: "rules/evaluate.smk"


include: "rules/metrics.smk"
include: "rules/stats.smk"
include: "rules/figures.smk"
include: "rules/report.smk"
include: "rules/provenance.smk"


rule all:
    default_target: True
    input:
        rules.report.input,
        rules.provenance.input,


onstart:
    hold_run_lock()
