"""Seedbed: from a written-down experiment to a paper. This file is the table of contents."""

import sys

from snakemake.utils import min_version

min_version("9.27")


configfile: "config.yaml"


include: "rules/common.smk"


# The target `report` builds from what is there: what trains and evaluates is left out.
TRAINS = "report" not in sys.argv[1:]
if TRAINS:

    include: "rules/train.smk"
    include: "rules/evaluate.smk"
    include: "rules/off_policy.smk"
    include: "rules/generalized.smk"


if CONFIG.secret:

    include: "rules/secret.smk"


include: "rules/metrics.smk"
include: "rules/stats.smk"
include: "rules/figures.smk"
include: "rules/generalized_report.smk"
include: "rules/report.smk"
include: "rules/provenance.smk"


# Targets by study and stage: interview_policies, interview_scores, ...
for study, stages in STAGES.items():
    for stage, files in stages.items():

        rule:
            name:
                f"{study}_{stage}"
            input:
                files,


rule all:
    default_target: True
    input:
        rules.report.input,
        rules.provenance.input,


onstart:
    hold_run_lock()
    if TRAINS:
        check_studies()
