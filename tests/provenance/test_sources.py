"""The static reader must find every file a program executes, and its digest must know content only."""

import ast
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seedbed.artifacts import SeedbedError
from seedbed.provenance import sources
from seedbed.registry import ALGORITHMS, ENVIRONMENTS, METRICS

PROJECT = Path(__file__).parents[2]
PACKAGE = PROJECT / "src" / "seedbed"
SCRIPTS = sorted((PROJECT / "workflow_scripts").glob("*.py"))


def tree(root: Path, files: dict[str, str]) -> Path:
    """Write files below root and return root / "src" / "pack"."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / "src" / "pack"


def names(root: Path, files: dict[str, str], extra=(), entry="scripts/go.py") -> set[str]:
    package = tree(root, files)
    return {source.name for source in sources.closure(root / entry, package, extra)}


BASE = {"src/pack/__init__.py": "", "src/pack/a.py": "", "src/pack/b.py": ""}
SUB = {"src/pack/sub/__init__.py": "", "src/pack/sub/c.py": "", "src/pack/sub/d.py": ""}
ROOTED = {"go.py", "pack/__init__.py"}


@pytest.mark.parametrize(
    "statement, expected",
    [
        ("import pack", set()),
        ("import pack.a", {"pack/a.py"}),
        ("import os, pack.a as a, pack.b", {"pack/a.py", "pack/b.py"}),
        ("from pack import a", {"pack/a.py"}),
        ("from pack import nothing_of_the_kind", set()),
        ("from pack.a import value", {"pack/a.py"}),
        ("from pack.sub import c", {"pack/sub/__init__.py", "pack/sub/c.py"}),
        ("from pack.sub.c import value", {"pack/sub/__init__.py", "pack/sub/c.py"}),
        ("from pack.sub import *", {"pack/sub/__init__.py", "pack/sub/c.py", "pack/sub/d.py"}),
        ("def f():\n    from pack import a", {"pack/a.py"}),
        ("class C:\n  async def f(self):\n    with x:\n      import pack.a", {"pack/a.py"}),
        ("try:\n  import pack.a\nexcept E:\n  import pack.b\nelse:\n  import pack.sub", {
            "pack/a.py", "pack/b.py", "pack/sub/__init__.py"}),
        ("try:\n  pass\nfinally:\n  import pack.a", {"pack/a.py"}),
        ("match x:\n  case 1:\n    import pack.a", {"pack/a.py"}),
        ("for i in x:\n  pass\nelse:\n  import pack.a", {"pack/a.py"}),
        ("import importlib\nimportlib.import_module('pack.a')", {"pack/a.py"}),
        ("x = __import__('pack.a')", {"pack/a.py"}),
        ("import pack\nTEXT = 'import pack.a'  # import pack.b", set()),
        ("import pack\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n  import pack.a", set()),
        ("import pack\nif t.TYPE_CHECKING:\n  import pack.a\nelse:\n  import pack.b", {"pack/b.py"}),
        ("if not TYPE_CHECKING:\n  import pack.a\nelse:\n  import pack.b", {"pack/a.py"}),
        ("if TYPE_CHECKING or x:\n  import pack.a", {"pack/a.py"}),
    ],
)  # fmt: skip
def test_every_form_of_import(tmp_path, statement, expected):
    assert names(tmp_path, {**BASE, **SUB, "scripts/go.py": statement}) == ROOTED | expected


@pytest.mark.parametrize(
    "statement, expected",
    [
        ("from . import d", {"pack/sub/d.py"}),
        ("from .d import value", {"pack/sub/d.py"}),
        ("from .. import a", {"pack/a.py"}),
        ("from ..a import value", {"pack/a.py"}),
        ("from .... import beyond", set()),
    ],
)
def test_relative_imports(tmp_path, statement, expected):
    files = {**BASE, **SUB, "scripts/go.py": "import pack.sub.c", "src/pack/sub/c.py": statement}
    assert names(tmp_path, files) == ROOTED | {"pack/sub/__init__.py", "pack/sub/c.py"} | expected


def test_relative_import_in_a_package_file_starts_at_the_package(tmp_path):
    files = {
        **BASE,
        **SUB,
        "scripts/go.py": "import pack.sub",
        "src/pack/sub/__init__.py": "from .d import x",
    }
    assert names(tmp_path, files) == ROOTED | {"pack/sub/__init__.py", "pack/sub/d.py"}


def test_imports_are_followed_through_cycles_and_beside_the_script(tmp_path):
    files = {
        "src/pack/__init__.py": "",
        "src/pack/a.py": "from pack import b",
        "src/pack/b.py": "from pack import a\nimport numpy",
        "scripts/go.py": "import beside",
        "scripts/beside.py": "import pack.a",
        "scripts/other.py": "",
    }
    assert names(tmp_path, files) == ROOTED | {"beside.py", "pack/a.py", "pack/b.py"}


def test_a_module_of_the_package_is_an_entry_too(tmp_path):
    files = {**BASE, "src/pack/cli.py": "from . import a\nfrom .b import x"}
    expected = {"pack/cli.py", "pack/a.py", "pack/b.py", "pack/__init__.py"}
    assert names(tmp_path, files, entry="src/pack/cli.py") == expected | {"pack/__init__.py"}


def test_extra_modules_in_the_project_root(tmp_path):
    files = {
        **BASE,
        "scripts/go.py": "",
        "lab/agents.py": "from lab.nets import mlp\nfrom pack import a",  # lab is a namespace package
        "lab/nets.py": "import settings",
        "settings.py": "",
    }
    found = names(tmp_path, files, ["lab.agents:Agent", "pack.b"])
    assert found == ROOTED | {"lab/agents.py", "lab/nets.py", "settings.py", "pack/a.py", "pack/b.py"}


def test_extra_modules_on_the_python_path_bring_their_neighbours(tmp_path, monkeypatch):
    files = {**BASE, "scripts/go.py": "import pack"}
    tree(tmp_path / "lab", {"mylab_agents.py": "import mylab_nets", "mylab_nets.py": "import numpy"})
    monkeypatch.syspath_prepend(tmp_path / "lab")
    found = names(tmp_path / "project", files, ["mylab_agents:Agent"])
    assert found == ROOTED | {"mylab_agents.py", "mylab_nets.py"}


def test_of_an_installed_package_only_its_own_modules_count(tmp_path):
    found = names(tmp_path, {**BASE, "scripts/go.py": ""}, ["gymnasium.spaces.box:Box"])
    assert "gymnasium/spaces/box.py" in found
    assert {name.split("/")[0] for name in found} == {"go.py", "gymnasium"}


@pytest.mark.parametrize("module", ["no_such_module_anywhere", "pack.no_such", "sys", "no_such.at.all:X", ""])
def test_an_extra_module_that_is_no_file_is_named(tmp_path, module):
    with pytest.raises(SeedbedError, match="cannot be found"):
        names(tmp_path, {**BASE, "scripts/go.py": ""}, [module])


def test_a_missing_entry_and_invalid_python_are_named(tmp_path):
    with pytest.raises(SeedbedError, match=r"go\.py cannot be read"):
        names(tmp_path, BASE)
    with pytest.raises(SeedbedError, match=r"a\.py is not valid Python.*line 2"):
        names(tmp_path, {**BASE, "scripts/go.py": "import pack.a", "src/pack/a.py": "x = 1\ndef :\n"})


def test_nothing_is_executed(tmp_path):
    files = {**BASE, "scripts/go.py": "import pack.a", "src/pack/a.py": "raise RuntimeError('executed')"}
    assert names(tmp_path, files) == ROOTED | {"pack/a.py"}


FILES = {**BASE, "scripts/go.py": "import pack.a", "src/pack/a.py": "x = 1\n"}


def digest(root: Path) -> str:
    return sources.digest(sources.closure(root / "scripts/go.py", root / "src/pack"))


def test_the_digest_knows_content_and_names_only(tmp_path):
    first, second = tmp_path / "one", tmp_path / "two deeper/there"
    tree(first, FILES)
    tree(second, FILES)
    before = digest(first)
    assert digest(second) == before
    os.utime(first / "src/pack/a.py", (1, 1))
    (first / "src/pack/b.py").write_text("not imported")
    assert digest(first) == before
    (first / "src/pack/a.py").write_text("x = 2\n")
    changed = digest(first)
    assert changed != before
    (first / "src/pack/a.py").write_text("x = 1\n")
    assert digest(first) == before


def test_bytes_moved_from_one_file_to_the_next_change_the_digest(tmp_path):
    tree(tmp_path, {"a.py": "x", "b.py": "y"})
    a, b = (sources.Source(name, tmp_path / name) for name in ("a.py", "b.py"))
    before = sources.digest([a, b])
    assert sources.digest([b, a]) == before
    (tmp_path / "a.py").write_text("xy")
    (tmp_path / "b.py").write_text("")
    assert sources.digest([a, b]) != before


def test_check_refuses_a_source_edited_after_planning(tmp_path):
    package = tree(tmp_path, FILES)
    entry = tmp_path / "scripts/go.py"
    expected = sources.planned(entry, package)
    sources.check(entry, package, (), expected)
    (tmp_path / "src/pack/a.py").write_text("x = 3\n")
    assert sources.planned(entry, package) == expected  # one plan, one state of the sources
    with pytest.raises(SeedbedError, match=r"go\.py.*changed between planning and start.*run again"):
        sources.check(entry, package, (), expected)


def fastest(function) -> float:
    """CPU seconds of the fastest of five calls."""
    took = []
    for _ in range(5):
        start = time.process_time()
        function()
        took.append(time.process_time() - start)
    return min(took)


def test_sixty_files_cost_little_more_than_parsing_each_once(tmp_path):
    """Measured against parsing alone, as absolute times depend on the machine (0.05 to 0.1 s)."""
    body = "import numpy\nfrom pack import m{}\n" + "def f(x):\n    return [i + 1 for i in x if i > 2]\n" * 60
    files = {f"src/pack/m{i}.py": body.format((i + 1) % 60) for i in range(60)}
    package = tree(tmp_path, {**files, "src/pack/__init__.py": "", "scripts/go.py": "import pack.m0"})

    def read() -> None:
        assert len(sources.closure(tmp_path / "scripts/go.py", package)) == 62

    def read_anew() -> None:
        sources._PARSED.clear()
        read()

    parsing = fastest(lambda: [ast.parse(text) for text in files.values()])
    assert fastest(read_anew) < 2 * parsing
    assert fastest(read) < parsing / 2


def test_the_reader_itself_imports_no_third_party_package():
    code = "import sys, seedbed.provenance.sources; print(*{name.partition('.')[0] for name in sys.modules})"
    run = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True,
                         env={**os.environ, "PYTHONPATH": str(PROJECT / "src")})  # fmt: skip
    assert {name for name in run.stdout.split() if name not in sys.stdlib_module_names} == {
        "__main__",
        "seedbed",
    }


def test_there_are_programs():
    assert SCRIPTS, "workflow_scripts/ holds no program"


REGISTERED = sorted({place.partition(":")[0] for place in {**ENVIRONMENTS, **ALGORITHMS, **METRICS}.values()})


@pytest.fixture(scope="module")
def loaded(tmp_path_factory) -> dict[str, set[str]]:
    """What Python loads of the project for each program and each registered module, see loaded_files.py."""
    lazy = tmp_path_factory.mktemp("programs") / "lazy.py"
    lazy.write_text("def f():\n    from seedbed.provenance import sources\n")
    tasks = {path.name: {"program": str(path), "modules": []} for path in (*SCRIPTS, lazy)}
    tasks |= {module: {"program": None, "modules": [module]} for module in REGISTERED}
    run = subprocess.run(
        [sys.executable, Path(__file__).with_name("loaded_files.py"), PACKAGE, PROJECT / "workflow_scripts"],
        input=json.dumps(tasks),
        capture_output=True,
        text=True,
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT / "src"), "OMP_NUM_THREADS": "1"},
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def not_in_closure(files: list[str] | str, static: tuple[sources.Source, ...]) -> set[str]:
    assert not isinstance(files, str), files  # it failed, and this is why
    return {*map(os.path.realpath, files)} - {os.path.realpath(source.path) for source in static}


def test_what_each_program_loads_is_in_its_closure(loaded):
    missed = {
        path.name: not_in_closure(loaded[path.name], sources.closure(path, PACKAGE)) for path in SCRIPTS
    }
    assert missed == {path.name: set() for path in SCRIPTS}


def test_what_each_registered_name_loads_is_in_its_closure(loaded):
    entry = PACKAGE / "registry.py"
    missed = {
        name: not_in_closure(loaded[name], sources.closure(entry, PACKAGE, [name])) for name in REGISTERED
    }
    assert missed == {name: set() for name in REGISTERED}


def test_the_judge_of_loaded_files_sees_lazy_imports(loaded):
    """Otherwise the two tests above would hold for a reader that overlooks them."""
    expected = ("__init__.py", "provenance/__init__.py", "provenance/sources.py", "artifacts.py")
    assert not_in_closure(loaded["lazy.py"], ()) == {os.path.realpath(PACKAGE / name) for name in expected}


def test_no_program_hides_a_module_of_the_standard_library():
    """Python puts a program's folder first on its path: a statistics.py there would be imported by others."""
    assert not {script.stem for script in SCRIPTS} & sys.stdlib_module_names
