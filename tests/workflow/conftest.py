"""A copy of the checkout with a small study, and Snakemake in it."""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


class Checkout:
    """A copy of this checkout, with the small study configured, or of another such copy."""

    def __init__(self, folder: Path, copy_of: "Checkout | None" = None, existing: bool = False):
        self.folder = folder
        if copy_of:
            shutil.copytree(copy_of.folder, folder)
        elif not existing:
            self._fill(folder)

    def _fill(self, folder: Path) -> None:
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True
        ).stdout.decode()
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        shutil.copy(Path(__file__).with_name("small.yaml"), folder / "studies/small.yaml")
        self.configure("preset: quick")
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "copy"]):
            identity = ["-c", "user.name=Tester", "-c", "user.email=tester@example.org"]
            subprocess.run(["git", *identity, *command], cwd=folder, check=True)

    def configure(self, *lines: str) -> None:
        """Write config.yaml."""
        statistics = "statistics: {draws: 1000}"
        text = "\n".join(["studies: [small]", statistics, *lines])
        (self.folder / "config.yaml").write_text(text + "\n")

    @property
    def environment(self) -> dict[str, str]:
        """Variables under which Snakemake finds this Python and the copy's package."""
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return os.environ | {"PATH": path, "PYTHONPATH": str(self.folder / "src")}

    def start(self, *arguments: str) -> subprocess.Popen:
        """Start Snakemake in a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--cores", "2", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def snakemake(self, *arguments: str) -> subprocess.CompletedProcess:
        """Run Snakemake to its end; its output is in ``stdout``."""
        process = self.start(*arguments)
        output, _ = process.communicate()
        return subprocess.CompletedProcess(arguments, process.returncode, output)

    def planned(self, *arguments: str) -> set[str]:
        """The jobs of a dry run, as "rule" or "rule algorithm"."""
        run = self.snakemake(*arguments, "-n", "--quiet", "host")
        assert run.returncode == 0, run.stdout
        jobs, rule = set(), None
        for line in run.stdout.splitlines():
            words = line.split()
            if words[:1] in (["rule"], ["localrule"]):
                rule = words[1].rstrip(":")
                jobs.add(rule)
            if words[:1] == ["wildcards:"] and "algorithm=" in line:
                algorithm = line.split("algorithm=")[1].split(",")[0]
                jobs.discard(rule)
                jobs.add(f"{rule} {algorithm}")
        return jobs

    def files(self, below: str = "results") -> dict[str, bytes]:
        """Relative name -> content of all files below a folder."""
        root = self.folder / below
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in root.rglob("*")
            if path.is_file()
        }


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A checkout in which the small study has run; not to be changed."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # of all workers: one of them runs the study, the others wait
    with open(shared / "finished.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = shared / "finished" / "a checkout"
        if folder.exists():
            return Checkout(folder, existing=True)
        checkout = Checkout(folder)
        run = checkout.snakemake()
        assert run.returncode == 0, run.stdout
        return checkout


@pytest.fixture
def checkout(tmp_path):
    """A fresh copy without results."""
    return Checkout(tmp_path / "checkout")


@pytest.fixture
def copy_of_finished(finished, tmp_path):
    """A copy with results, to be changed."""
    return Checkout(tmp_path / "copy", finished)
