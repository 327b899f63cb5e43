"""A program for test_sources.py: which of the project's files does Python load for each given program?

Its arguments are the folders of the project's modules. It reads JSON from standard input:
{label: {"program": path or null, "modules": [...]}}; writes {label: [files]}.
Each program runs with --help in a child process. Then every import inside a function of a loaded module is
carried out as well: found in the bytecode, so that this file and the reader it judges share no method.
"""

import contextlib
import dis
import importlib
import io
import json
import os
import runpy
import sys
from pathlib import Path
from types import CodeType

# Only for speed: imported once here, and shared by all children.
for heavy in ("torch", "pandas", "scipy.stats", "matplotlib.pyplot", "pyarrow.parquet", "gymnasium"):
    with contextlib.suppress(ImportError):
        importlib.import_module(heavy)


def inner_imports(code: CodeType, outermost: bool = True):
    """(name, names asked of it, level) of each import inside a function."""
    if not outermost:
        constants = []
        for instruction in dis.get_instructions(code):
            if instruction.opname == "IMPORT_NAME":
                level, fromlist = constants[-2:]
                yield instruction.argval, fromlist or (), level
            elif instruction.opname.startswith("LOAD_CONST") or instruction.opname == "LOAD_SMALL_INT":
                constants.append(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from inner_imports(constant, False)


def own_modules(roots: list[str]) -> dict[str, object]:
    files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    return {name: sys.modules[name] for name, file in files.items() if file and file.startswith(tuple(roots))}


def loaded(program: str | None, modules: list[str], roots: list[str]) -> list[str]:
    """Files below roots that Python has loaded in the end."""
    seen: set[str] = set()
    if program:
        sys.path.insert(0, str(Path(program).parent))
        sys.argv = [program, "--help"]
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                runpy.run_path(program, run_name="__main__")
            except SystemExit as end:
                if end.code:
                    raise
        follow(compile(Path(program).read_bytes(), program, "exec"), {"__package__": ""})
    for module in modules:
        importlib.import_module(module)
    while fresh := {name: module for name, module in own_modules(roots).items() if name not in seen}:
        for name, module in fresh.items():
            seen.add(name)
            if module.__file__.endswith(".py"):
                follow(compile(Path(module.__file__).read_bytes(), module.__file__, "exec"), vars(module))
    return sorted({module.__file__ for module in own_modules(roots).values()})


def follow(code: CodeType, scope: dict) -> None:
    for name, names, level in inner_imports(code):
        if level or name.partition(".")[0] == "seedbed":
            __import__(name, scope, {}, names, level)


def main() -> None:
    roots = [folder + os.sep for folder in sys.argv[1:]]
    answers = {}
    for label, task in json.load(sys.stdin).items():
        read, write = os.pipe()
        if not (child := os.fork()):
            status = 1
            with contextlib.suppress(BaseException), os.fdopen(write, "w") as pipe:
                try:
                    json.dump(loaded(task["program"], task["modules"], roots), pipe)
                    status = 0
                except BaseException as error:
                    json.dump(f"{type(error).__name__}: {error}", pipe)
            os._exit(status)
        os.close(write)
        with os.fdopen(read) as pipe:
            answers[label] = json.load(pipe)
        os.waitpid(child, 0)
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
