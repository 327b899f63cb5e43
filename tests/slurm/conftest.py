"""A real Slurm on this machine: one controller, one node of 8 CPUs and 2 GPUs, and no other service."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

NEEDED = ("slurmctld", "slurmd", "srun", "sbatch", "squeue", "scancel", "sinfo")

SLURM_CONF = """
ClusterName=seedbed
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0
MinJobAge=86400
ReturnToService=2
GresTypes=gpu
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=8000 Gres=gpu:2 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def write_configuration(folder: Path) -> None:
    host = socket.gethostname().split(".")[0]
    controller_port, node_port = free_ports(2)
    for name in ("state", "spool", "bin"):
        (folder / name).mkdir()
    (folder / "slurm.conf").write_text(
        SLURM_CONF.format(
            host=host,
            user=subprocess.check_output(["id", "-un"], text=True).strip(),
            controller_port=controller_port,
            node_port=node_port,
            folder=folder,
        )
    )
    # A GPU must be a character device; these are only counted.
    (folder / "gres.conf").write_text("Name=gpu File=/dev/null\nName=gpu File=/dev/zero\n")
    # The plugin starts each job's program with srun in an environment from which it removed SLURM_CONF.
    wrapper = folder / "bin/srun"
    wrapper.write_text(f'#!/bin/sh\nSLURM_CONF="{folder}/slurm.conf" exec "{shutil.which("srun")}" "$@"\n')
    wrapper.chmod(0o755)


def cluster_environment(folder: Path) -> dict[str, str]:
    """This process's variables, with this project's programs first in PATH and the cluster in SLURM_CONF."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith("SLURM")}
    path = [str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    return variables | {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": os.pathsep.join(path)}


def wait_until_idle(variables: dict[str, str], daemons: list[subprocess.Popen], folder: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        state = subprocess.run(["sinfo", "-h", "-o", "%T"], env=variables, capture_output=True, text=True)
        if state.stdout.strip() == "idle":
            return
        if any(daemon.poll() is not None for daemon in daemons):
            break
        time.sleep(0.2)
    logs = "".join((folder / f"{name}.log").read_text()[-2000:] for name in ("slurmctld", "slurmd"))
    pytest.fail(f"the test's Slurm did not start:\n{state.stdout}{state.stderr}{logs}")


@pytest.fixture(scope="session")
def slurm_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Environment variables for commands that shall see a running cluster."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        pytest.skip(
            f"Slurm is not installed here (no {', '.join(missing)}); on Debian: apt install slurm-wlm"
        )
    folder = tmp_path_factory.mktemp("slurm")
    write_configuration(folder)
    variables = cluster_environment(folder)
    daemons: list[subprocess.Popen] = []
    try:
        for command in (["slurmctld", "-D"], ["slurmd", "-D"]):
            output = open(folder / f"{command[0]}.out", "w")  # noqa: SIM115 (the daemon's, until it ends)
            daemons.append(subprocess.Popen(command, env=variables, stdout=output, stderr=output))
        wait_until_idle(variables, daemons, folder)
        yield variables
    finally:
        subprocess.run(["scancel", "--state=PENDING,RUNNING"], env=variables, capture_output=True)
        for daemon in reversed(daemons):  # these two and no other: a machine may have a Slurm of its own
            daemon.terminate()
            daemon.wait(timeout=30)
