"""requirements.lock, envs/ and what is imported say the same."""

import ast
import importlib.metadata
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from seedbed.provenance import sources

ROOT = Path(__file__).resolve().parents[2]
STAGES = sorted(path.stem for path in (ROOT / "envs").glob("*.yaml"))


def pins(lines: list[str]) -> dict[str, str]:
    """Name -> version of each ``name==version``; anything else in a line is refused."""
    found = {}
    for line in lines:
        text = line.partition("#")[0].strip()
        if text:
            pin = re.fullmatch(r"([A-Za-z0-9_.-]+)==([A-Za-z0-9_.!]+)", text)
            assert pin, f"no pin: {line}"
            found[canonicalize_name(pin[1])] = pin[2]
    return found


def lock() -> dict[str, str]:
    return pins((ROOT / "requirements.lock").read_text().splitlines())


def conda(stage: str) -> dict[str, str]:
    dependencies = yaml.safe_load((ROOT / f"envs/{stage}.yaml").read_text())["dependencies"]
    return pins(dependencies[-1]["pip"])


def needs(name: str) -> set[str]:
    """The packages that an installed package cannot do without here."""
    requirements = [Requirement(text) for text in importlib.metadata.distribution(name).requires or []]
    return {
        canonicalize_name(r.name)
        for r in requirements
        if r.marker is None or r.marker.evaluate({"extra": ""})
    }


def test_the_lock_is_what_is_installed() -> None:
    installed = {name: importlib.metadata.version(name).partition("+")[0] for name in lock()}
    assert lock() == installed


@pytest.mark.parametrize("pinned", [lock(), *map(conda, STAGES)], ids=["lock", *STAGES])
def test_nothing_that_is_needed_is_left_to_chance(pinned: dict[str, str]) -> None:
    missing = {name: needs(name) - set(pinned) for name in pinned}
    assert {name: lacks for name, lacks in missing.items() if lacks} == {}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_has_the_locks_versions(stage: str) -> None:
    assert conda(stage).items() <= lock().items()


def can_do_without(node: ast.AST) -> bool:
    return isinstance(node, ast.Try) and any(
        "ImportError" in ast.dump(h.type) for h in node.handlers if h.type
    )


def needed_imports(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those inside a ``try`` that is ready for an ImportError."""
    for node in ast.iter_child_nodes(tree):
        if not can_do_without(node):
            yield node
            yield from needed_imports(node)


def imported_packages(files: list[Path]) -> set[str]:
    """Top-level names of modules that must be there, and are neither Python's own nor the project's."""
    modules = set()
    for file in files:
        for node in needed_imports(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Import):
                modules |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                modules.add(node.module.partition(".")[0])
    own = {"seedbed", "workflow_scripts", *(path.stem for path in (ROOT / "workflow_scripts").glob("*.py"))}
    return modules - set(sys.stdlib_module_names) - own


def distributions(modules: set[str]) -> set[str]:
    providers = importlib.metadata.packages_distributions()
    return {canonicalize_name(providers[module][0]) for module in modules if module in providers}


def test_every_imported_package_has_its_reason_in_the_lock() -> None:
    direct = (ROOT / "requirements.lock").read_text().partition("# What those need")[0]
    used = imported_packages([*(ROOT / "src").rglob("*.py"), *(ROOT / "workflow_scripts").glob("*.py")])
    assert distributions(used) <= set(pins(direct.splitlines()))
    assert used <= set(importlib.metadata.packages_distributions())


def rules_with_scripts() -> list[tuple[str, str, str]]:
    """(rule, script, stage) of every rule that runs a workflow script in a conda environment."""
    found = []
    for file in sorted((ROOT / "rules").glob("*.smk")):
        for text in re.split(r"^(?= *rule \w+:)", file.read_text(), flags=re.MULTILINE)[1:]:
            name = re.match(r" *rule (\w+)", text)[1]
            script = re.search(r"python workflow_scripts/(\w+\.py)", text)
            stage = re.search(r"envs/(\w+)\.yaml", text)
            if script:
                assert stage, f"rule {name} names no conda environment"
                found.append((name, script[1], stage[1]))
    return found


@pytest.mark.parametrize("rule, script, stage", rules_with_scripts())
def test_a_rules_environment_has_what_its_script_imports(rule: str, script: str, stage: str) -> None:
    files = [
        source.path
        for source in sources.closure(ROOT / "workflow_scripts" / script, ROOT / "src/seedbed")
        if source.name.endswith(".py")
    ]
    assert distributions(imported_packages(files)) <= set(conda(stage))


def test_every_direct_dependency_is_explained() -> None:
    direct = (ROOT / "requirements.lock").read_text().partition("# What those need")[0]
    documented = (ROOT / "docs/dependencies.md").read_text().lower()
    unexplained = [name for name in pins(direct.splitlines()) if f"**{name}**" not in documented]
    assert unexplained == []
