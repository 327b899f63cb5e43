"""The house: a room imports only what stands below it, and packages import nothing by themselves."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src/seedbed"
FLOORS = (
    {"artifacts", "compiled", "seeding"},
    {"registry", "layout", "arguments", "contest_settings"},
    {"study"},
    {"generalized_study"},
    {"settings", "provenance", "study_files"},
    {"job", "environments"},
    {"algorithms"},
    {"evaluation"},
    {"training", "metrics", "auditing"},
    {"statistics", "resolution"},
    {"generalized"},
    {"figures", "evaluating", "off_policy"},
    {"reporting"},
    {"cli"},
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def room(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(node):
    """Rooms that a tree imports at run time."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        return
    names = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    for name in names:
        if name.startswith("seedbed."):
            yield name.split(".")[1]
    for child in ast.iter_child_nodes(node):
        yield from imported(child)


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_imports_point_down(path):
    tree = ast.parse(path.read_text())
    if path.name == "__init__.py":
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert {alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names} <= {
            "os"
        }
        return
    here = room(path)
    upwards = {there for there in imported(tree) if there != here and FLOOR[there] >= FLOOR[here]}
    assert upwards == set()


def test_files_are_one_room():
    long = {path.name: n for path in PACKAGE.rglob("*.py") if (n := len(path.read_text().splitlines())) > 400}
    assert long == {}
