"""Which source files a program consists of, read from its import statements, and one digest over them.

A rule takes the digest as a parameter, so an edited file makes again what it takes part in and nothing else.
The Snakefile imports this module at every parse: standard library only, and nothing it reads is executed.
"""

import ast
import functools
import hashlib
import importlib.machinery
import importlib.util
import os
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple


class Source(NamedTuple):
    """One file of a program.

    Args:
        name: path below the folder it was found in, with "/"; the same in every checkout.
        path: where it lies now.
    """

    name: str
    path: Path


class _Import(NamedTuple):
    """One import: dots before the module, the module ("" if none), the names asked of it."""

    level: int
    module: str
    names: tuple[str, ...]


class _Root(NamedTuple):
    """A folder whose modules are the project's or the user's own, and the top-level names found in it."""

    folder: Path
    names: frozenset[str]


def _root(folder: Path, only: str | None = None) -> _Root:
    listed = os.listdir(folder) if folder.is_dir() else ()
    names = frozenset(name.partition(".")[0] for name in listed)
    return _Root(folder, names & {only} if only else names)


def closure(entry: str | Path, package_root: str | Path, extra: Iterable[str] = ()) -> tuple[Source, ...]:
    """The project's and the user's own files that a program may import, itself included, sorted.

    Imports count wherever they stand, inside functions too, except below ``if TYPE_CHECKING``. The
    ``__init__`` files of packages count. Modules named at run time are followed only if the name is a
    literal; name the others in ``extra``. A module is looked for beside the entry, beside the package and
    in the project root; one of ``extra`` also on the Python path, and then its neighbours count as own.

    Args:
        entry: the program, or a module of the package.
        package_root: the folder of the package, such as ``src/seedbed``.
        extra: further modules, as "package.module" or "package.module:Name".

    Raises:
        SeedbedError: a file is missing or is not valid Python, or a module of ``extra`` cannot be found.
    """
    entry, package = Path(entry).absolute(), Path(package_root).absolute()
    inside = package in entry.parents
    folders = [] if inside else [entry.parent]
    roots = [_root(folder) for folder in (*folders, package.parent, package.parent.parent)]
    start = entry.relative_to(package.parent).as_posix() if inside else entry.name
    waiting = [(start, str(entry))]
    for name in extra:
        module = name.partition(":")[0]
        found = _find(module, roots)
        if not found:
            roots.append(_installed_root(module))
            found = _find(module, roots)
        if not found or _dotted(found[-1][0]) != module:
            raise _error(
                f"The module '{module}' that the study names cannot be found as a file. Put it into the "
                f"project's folder or on the Python path (PYTHONPATH)."
            )
        waiting += found
    asked: set[str] = set()
    sources: dict[str, Source] = {}
    while waiting:
        name, path = waiting.pop()
        if path in sources:
            continue
        sources[path] = source = Source(name, Path(path))
        if not name.endswith(".py"):
            continue
        dotted = "" if source.path == entry and not inside else _dotted(name)
        parent = dotted if name.endswith("/__init__.py") else dotted.rpartition(".")[0]
        for wanted in _names(_imports(source.path, _read(source.path)), parent, roots):
            if wanted not in asked:
                asked.add(wanted)
                waiting += _find(wanted, roots)
    return tuple(sorted(sources.values()))


def digest(sources: Sequence[Source]) -> str:
    """SHA-256, hexadecimal, over the sources' names and bytes; neither order, place nor age of a file counts.

    Raises:
        SeedbedError: a file is missing.
    """
    entries = sorted(
        f"{source.name!r} {hashlib.sha256(_read(source.path)).hexdigest()}" for source in sources
    )
    return hashlib.sha256("\n".join(entries).encode()).hexdigest()


@functools.cache
def planned(entry: str | Path, package_root: str | Path, extra: tuple[str, ...] = ()) -> str:
    """The digest of a program's closure, read once per process: all jobs of one plan see the same sources."""
    return digest(closure(entry, package_root, extra))


def check(entry: str | Path, package_root: str | Path, extra: Iterable[str], expected: str) -> None:
    """Hold the sources as they are now against the digest a job was planned with.

    Raises:
        SeedbedError: they differ, or ``closure`` fails.
    """
    if digest(closure(entry, package_root, extra)) != expected:
        raise _error(
            f"The source of {Path(entry).name} or of a module it uses changed between planning and start. "
            f"Nothing was computed; run again."
        )


def _error(message: str) -> Exception:
    # artifacts imports numpy, which a Snakefile need not wait for
    from seedbed.artifacts import SeedbedError

    return SeedbedError(message)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _error(f"The source file {path} cannot be read: {error.strerror}.") from None


def _dotted(name: str) -> str:
    """The module name of a file name: a/b/__init__.py -> a.b, a/c.cpython-311.so -> a.c."""
    folder, _, file = name.rpartition("/")
    stem = file.partition(".")[0]
    return ".".join(part for part in (*folder.split("/"), "" if stem == "__init__" else stem) if part)


def _names(imports: Iterable[_Import], parent: str, roots: list[_Root]) -> Iterator[str]:
    """Absolute names of everything that may be a module; ``from a import b`` gives a and a.b."""
    for level, module, names in imports:
        if level:
            above = parent.split(".")
            base = ".".join([*above[: len(above) - level + 1], *([module] if module else [])])
        else:
            base = module
        yield base
        for name in names:
            if name == "*":  # may import every submodule that __all__ names
                yield from _submodules(base, roots)
            else:
                yield f"{base}.{name}"


def _submodules(package: str, roots: list[_Root]) -> Iterator[str]:
    found = _find(package, roots)
    if found and found[-1][0].endswith("/__init__.py"):
        for name in os.listdir(os.path.dirname(found[-1][1])):
            yield f"{package}.{name.partition('.')[0]}"


def _find(module: str, roots: list[_Root]) -> list[tuple[str, str]]:
    """Name and path of each file that importing a module executes, outermost first; [] if it is not ours."""
    parts = module.split(".")
    for root in roots:
        if parts[0] in root.names and (found := _find_below(str(root.folder), parts)):
            return [(name, f"{root.folder}/{name}") for name in found]
    return []


_SUFFIXES = (".py", *importlib.machinery.EXTENSION_SUFFIXES)


def _find_below(root: str, parts: list[str]) -> list[str]:
    """Files of the longest part of a module's name that exists below a folder, relative to it.

    Folders without ``__init__.py`` are namespace packages: they lead on, but settle nothing by themselves.
    Strings and os.path instead of pathlib, as most of a plan's reading time is spent here.
    """
    found = []
    name = ""
    for part in parts:
        name = f"{name}/{part}" if name else part
        if os.path.isfile(f"{root}/{name}/__init__.py"):
            found.append(f"{name}/__init__.py")
            continue
        file = next((name + end for end in _SUFFIXES if os.path.isfile(f"{root}/{name}{end}")), None)
        if file:
            found.append(file)
            break
        if not os.path.isdir(f"{root}/{name}"):
            break
    return found


def _installed_root(module: str) -> _Root:
    """The folder on the Python path that holds a module; of a folder of installed packages only this one."""
    top = module.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)  # a name without dots is looked for, not imported
    except (ImportError, ValueError):
        spec = None
    places = list(spec.submodule_search_locations or ()) if spec else []
    if spec and not places and spec.has_location and spec.origin:
        places = [spec.origin]
    if not places:
        return _Root(Path(), frozenset())
    folder = Path(places[0]).absolute().parent
    installed = {Path(sysconfig.get_path(key)) for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    alone = folder in installed or folder.name in ("site-packages", "dist-packages")
    return _root(folder, only=top if alone else None)


_PARSED: dict[tuple[Path, bytes], tuple[_Import, ...]] = {}


def _imports(path: Path, code: bytes) -> tuple[_Import, ...]:
    """The imports of one file; parsed once per content, as many rules share most files."""
    key = (path, hashlib.sha256(code).digest())
    if key not in _PARSED:
        try:
            tree = ast.parse(code, filename=str(path))
        except (SyntaxError, ValueError) as error:
            raise _error(f"{path} is not valid Python: {error}. Correct it first.") from None
        found = list(_statements(tree.body))
        if b"import_module" in code or b"__import__" in code:
            found += _literal_calls(tree)
        _PARSED[key] = tuple(found)
    return _PARSED[key]


def _statements(body: list[ast.stmt]) -> Iterator[_Import]:
    """Import statements at any depth, without walking expressions, which hold none."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (_Import(0, alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield _Import(node.level, node.module or "", tuple(alias.name for alias in node.names))
        elif isinstance(node, ast.If) and _is_type_checking(node.test):
            yield from _statements(node.orelse)
        elif (
            isinstance(node, ast.If)
            and isinstance(node.test, ast.UnaryOp)
            and isinstance(node.test.op, ast.Not)
            and _is_type_checking(node.test.operand)
        ):
            yield from _statements(node.body)
        else:
            for field in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, field, ()))
            for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                yield from _statements(part.body)


def _is_type_checking(test: ast.expr) -> bool:
    return getattr(test, "id", getattr(test, "attr", None)) == "TYPE_CHECKING"


def _literal_calls(tree: ast.AST) -> Iterator[_Import]:
    """``import_module("a.b")`` and ``__import__("a.b")``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            called = getattr(node.func, "id", getattr(node.func, "attr", None))
            value = getattr(node.args[0], "value", None)
            if called in ("import_module", "__import__") and isinstance(value, str):
                stripped = value.lstrip(".")
                yield _Import(len(value) - len(stripped), stripped, ())
