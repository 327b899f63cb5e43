"""The Slurm profile on a real Slurm: submission, failure, GPUs and memory, with a small workflow."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def workflow(tmp_path: Path) -> Path:
    """A folder as the checkout is: both profiles where snakemake looks for them."""
    for name in ("slurm", "profiles"):
        shutil.copytree(ROOT / name, tmp_path / name)
    return tmp_path


def snakemake(workflow: Path, variables: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The README's command; only the waiting between two looks at a job is shortened."""
    quick = ["--slurm-init-seconds-before-status-checks", "6", "--latency-wait", "5"]
    return subprocess.run(
        ["snakemake", "--cores", "8", "--profile", "slurm", *quick, *arguments],
        cwd=workflow,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )


def job_state(variables: dict[str, str], job: str) -> str:
    command = ["scontrol", "show", "job", job]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout


def test_jobs_are_submitted_and_finish(workflow: Path, slurm_cluster: dict[str, str]) -> None:
    (workflow / "Snakefile").write_text("""
rule all:
    input: expand("{seed}.txt", seed=[0, 1])
rule train:
    output: "{seed}.txt"
    log: "logs/{seed}.log"
    shell: "echo $SLURM_JOB_ID > {output} 2> {log}"
""")
    result = snakemake(workflow, slurm_cluster)
    assert result.returncode == 0, result.stdout
    jobs = {(workflow / f"{seed}.txt").read_text().strip() for seed in (0, 1)}
    assert len(jobs) == 2  # one Slurm job each
    for job in jobs:
        state = job_state(slurm_cluster, job)
        assert "JobState=COMPLETED" in state
        assert "mem=2000M" in state  # the profile's default
        assert "TimeLimit=01:00:00" in state
    again = snakemake(workflow, slurm_cluster, "-n")
    assert "Nothing to be done" in again.stdout


def test_a_failure_is_retried_with_more_memory_and_names_its_logs(
    workflow: Path, slurm_cluster: dict[str, str]
) -> None:
    (workflow / "Snakefile").write_text("""
rule all:
    input: "bad.txt", "good.txt"
rule train:
    output: "bad.txt"
    log: "logs/bad.log"
    shell: "echo $SLURM_JOB_ID >> jobs; echo 'the reason' > {log}; exit 3"
rule other:
    output: "good.txt"
    shell: "touch {output}"
""")
    result = snakemake(workflow, slurm_cluster)
    assert result.returncode == 1
    jobs = (workflow / "jobs").read_text().split()
    memory = [re.search(r"mem=(\w+)", job_state(slurm_cluster, job)).group(1) for job in jobs]
    assert memory == ["2000M", "4000M", "6000M"]
    assert "log: logs/bad.log" in result.stdout
    assert "the reason" in result.stdout  # the log itself is shown
    slurm_log = re.search(r"/\S*slurm_logs/rule_train\S*\.log", result.stdout)
    assert slurm_log, result.stdout
    assert Path(slurm_log.group()).exists()
    assert (workflow / "good.txt").exists()  # keep-going: the others are made


def test_a_job_gets_the_gpus_it_asks_for(workflow: Path, slurm_cluster: dict[str, str]) -> None:
    """Three jobs of one GPU on two GPUs: two at a time, none waiting for the default profile's one."""
    (workflow / "Snakefile").write_text("""
rule all:
    input: expand("{seed}.json", seed=[0, 1, 2])
rule train:
    output: "{seed}.json"
    resources: gpu=1, mem_mb=100
    shell:
        "start=$(date +%s.%N); sleep 4; "
        "echo '{{\\"gpu\\": \\"'$CUDA_VISIBLE_DEVICES'\\", \\"job\\": \\"'$SLURM_JOB_ID'\\", "
        "\\"start\\": '$start', \\"end\\": '$(date +%s.%N)'}}' > {output}"
""")
    result = snakemake(workflow, slurm_cluster)
    assert result.returncode == 0, result.stdout
    jobs = [json.loads((workflow / f"{seed}.json").read_text()) for seed in range(3)]
    assert {job["gpu"] for job in jobs} <= {"0", "1"}
    for job in jobs:
        assert "TresPerJob=gres:gpu:1" in job_state(slurm_cluster, job["job"])
    jobs.sort(key=lambda job: job["start"])
    assert jobs[1]["start"] < jobs[0]["end"]  # two at once
    assert jobs[0]["gpu"] != jobs[1]["gpu"]
    assert jobs[2]["start"] > min(jobs[0]["end"], jobs[1]["end"])  # the third waited for a GPU


def test_a_study_runs_on_slurm(tmp_path: Path, slurm_cluster: dict[str, str]) -> None:
    """The real rules: each training is a Slurm job with what its study asks for."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    for name in filter(lambda name: (ROOT / name).is_file(), listed):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "tests/workflow/small.yaml", tmp_path / "studies/small.yaml")
    (tmp_path / "config.yaml").write_text("studies: [small]\npreset: one_seed\n")
    variables = slurm_cluster | {"PYTHONPATH": str(tmp_path / "src")}
    run = snakemake(tmp_path, variables, "small_scores")
    assert run.returncode == 0, run.stdout
    assert (tmp_path / "results/small/scores.parquet").is_file()
    jobs = re.findall(r"Job \d+ has been submitted with SLURM jobid (\d+)", run.stdout)
    assert len(jobs) >= 13
    asked = [job_state(variables, job) for job in jobs]
    assert all("JobState=COMPLETED" in state for state in asked)
    training = [state for state in asked if "TimeLimit=04:00:00" in state]
    assert len(training) == 4
    assert all(re.search(r"mem=2000M|MinMemoryNode=2000M", state) for state in training)
