"""What all stages share: the validated configuration, names of files, and digests of sources."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT / "src"))

from seedbed.artifacts import SeedbedError
from seedbed import layout
from seedbed.provenance import run_lock, sources
from seedbed.registry import METRICS, location
from seedbed.settings import evaluation_settings, training_settings
from seedbed.study import Study
from seedbed.study_files import load_config, load_studies

try:
    CONFIG, STUDIES = load_studies(load_config(config))
except SeedbedError as error:
    raise WorkflowError(str(error)) from None

# Two kinds of study: those that train policies, and those of generalized environments.
TRAINING = {name: study for name, study in STUDIES.items() if isinstance(study, Study)}
GENERALIZED = {name: study for name, study in STUDIES.items() if name not in TRAINING}
BLOCKS = {name: layout.blocks(study, CONFIG.seeds_per_job) for name, study in TRAINING.items()}
BLOCKS |= {name: study.blocks() for name, study in GENERALIZED.items()}
NO_STUDY = "(?!)"  # matches nothing
BLOCK = layout.BLOCK
BLOCK_LOG = BLOCK.replace("results/", "results/logs/", 1)


wildcard_constraints:
    study="|".join(TRAINING) or NO_STUDY,
    environment=r"[^/]+",
    algorithm=r"[^/]+",
    block=r"seeds?-[0-9]+(-[0-9]+)?",


shell.executable("bash")
# Children import the package of this checkout and stay on one thread, whatever the caller's shell says.
shell.prefix(
    f"set -euo pipefail; export PYTHONPATH={shlex.quote(f'{ROOT}/src:{ROOT}')} OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 "
    f"OPENBLAS_NUM_THREADS=1; "
)


def hold_run_lock():
    try:
        run_lock.hold(ROOT / ".snakemake/run.lock")
    except run_lock.RunInProgress as error:
        raise WorkflowError(str(error)) from None


def check_studies():
    """Construct all that the studies name, so that bad input fails before anything is trained."""
    for name, study in STUDIES.items():
        command = [
            "python",
            "workflow_scripts/resolve_study.py",
            "--settings",
            study.model_dump_json(),
        ]
        command += ["--seeds-per-job", str(CONFIG.seeds_per_job)]
        paths = {"PYTHONPATH": f"{ROOT}/src:{ROOT}"}
        checked = subprocess.run(command, env=os.environ | paths, capture_output=True, text=True)
        if checked.returncode:
            raise WorkflowError(checked.stderr.strip().removeprefix("Error: "))


def source(program, *modules):
    """Digest of a program's sources and of the modules that a study names: content decides what reruns."""
    try:
        return sources.planned(ROOT / "workflow_scripts" / program, ROOT / "src/seedbed", modules)
    except SeedbedError as error:
        raise WorkflowError(str(error)) from None


def as_json(value):
    return json.dumps(value, sort_keys=True)


def block_settings(settings, wildcards):
    """The settings of one block's job, as JSON."""
    cell = (wildcards.environment, wildcards.algorithm)
    seeds = BLOCKS[wildcards.study][cell[0]][cell[1]][wildcards.block]
    return as_json(settings(STUDIES[wildcards.study], *cell, wildcards.block, seeds))


def block_files(study, *names):
    """Those files of every block of a study."""
    return layout.block_files(study, BLOCKS[study], *names)


def block_modules(wildcards):
    """Modules of one cell's environment and algorithm."""
    study, environment = STUDIES[wildcards.study], wildcards.environment
    return [
        *study.environments[environment].modules,
        *study.modules(wildcards.algorithm, environment),
    ]


def metric_modules(study):
    return [location(name, METRICS, "metric set") for name in STUDIES[study].metrics]


def off_policy_modules(study):
    """Modules of the section off_policy."""
    return STUDIES[study].off_policy.modules if STUDIES[study].off_policy else []


def study_modules(study):
    """Modules of everything a study names."""
    if study in GENERALIZED:
        return []
    entries = STUDIES[study]
    cells = [(name, place) for place in entries.environments for name in entries.algorithms_in(place)]
    return [
        *sorted({module for e in entries.environments.values() for module in e.modules}),
        *sorted({module for cell in cells for module in entries.modules(*cell)}),
        *metric_modules(study),
        *off_policy_modules(study),
    ]


def training_resource(name):
    """A resource of a training job, as the study gives it for the algorithm; a repeated job gets more memory."""

    def resource(wildcards, attempt):
        amount = getattr(STUDIES[wildcards.study].algorithms[wildcards.algorithm], name)
        return amount * attempt if name == "mem_mb" else amount

    return resource


def off_policy_plan(wildcards):
    """The section off_policy of a study, as JSON."""
    return as_json(STUDIES[wildcards.study].off_policy.model_dump(mode="json"))


def trial_plan(wildcards):
    """What the trials of one environment of a generalized study need of it, as JSON."""
    return STUDIES[wildcards.study].plan(wildcards.environment).model_dump_json()


def meta_plan(wildcards):
    """The same for its series of environments."""
    study = STUDIES[wildcards.study]
    return study.plan(study.meta.environment, meta=True).model_dump_json()


def tuning_trials(study, environment):
    """The parts of the tuning trials by which an environment's configurations are chosen."""
    origin = STUDIES[study].environments[environment].tuned_in or environment
    return layout.block_files(study, {origin: BLOCKS[study][origin]}, "trials.parquet")


def trial_memory(wildcards, attempt):
    """Memory of a job of trials; a repeated job gets more."""
    return STUDIES[wildcards.study].mem_mb * attempt
