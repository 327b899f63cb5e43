"""The methods of a study, from its resolved document: what ran, with which settings, what was declared."""

import importlib
import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seedbed.artifacts import SeedbedError
from seedbed.registry import ALGORITHMS, ENVIRONMENTS, load, location
from seedbed.reporting.formatting import NO_BREAK, Markdown, general, listed, one_line, several
from seedbed.reporting.layout import Cell, Row, Table
from seedbed.reporting.study_results import ROLES, StudyResults
from seedbed.reporting.trace import Register, Source

if TYPE_CHECKING:
    import pandas as pd

    from seedbed.reporting.generalized_results import GeneralizedResults


@dataclass(frozen=True)
class Declared:
    """Reads numbers from the resolved study into the text, each with its trace id.

    Args:
        results: of the study.
        register: of the paper.
    """

    results: "StudyResults | GeneralizedResults"
    register: Register

    def value(self, key: str) -> Any:
        """The value at a path such as ``study/evaluation/test/episodes``."""
        found: Any = self.results.resolved
        for part in key.split("/"):
            found = found[int(part)] if isinstance(found, list) else found[part]
        return found

    def __call__(self, key: str) -> Markdown:
        """The value as Markdown."""
        return self._marked(key, key, setting(self.value(key)))

    def count(self, key: str) -> Markdown:
        """How many there are."""
        return self._marked(f"{key}/count", key, general(len(self.value(key))))

    def ranges(self, key: str) -> Markdown:
        """Seeds as ranges: ``0 to 7``."""
        return self._marked(f"{key}/ranges", key, seed_ranges(self.value(key)))

    def _marked(self, identity: str, key: str, text: str) -> Markdown:
        name = self.results.study.name
        source = Source(f"{name}/study.json", {"key": key})
        return self.register.mark(f"{name}/declared/{identity}", text, (source,))


def seed_ranges(seeds: list[int]) -> str:
    """Seeds as ranges: ``0 to 7 and 12``."""
    runs: list[list[int]] = []
    for seed in sorted(seeds):
        if runs and seed == runs[-1][1] + 1:
            runs[-1][1] = seed
        else:
            runs.append([seed, seed])
    return listed([str(low) if low == high else f"{low} to {high}" for low, high in runs])


def setting(value: Any) -> str:
    """A setting as plain text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, int | float):
        return general(value, 6)
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, list | tuple):
        return ", ".join(setting(part) for part in value) or "none"
    return one_line(json.dumps(value, sort_keys=True))


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """``preset = default, horizon = 140``; of a text of several lines only how many."""

    def text(value: Any) -> str:
        lines = value.strip().count("\n") + 1 if isinstance(value, str) else 1
        return setting(value) if lines == 1 else f"a text of {several(lines, 'line')}"

    return ", ".join(f"{name}{NO_BREAK}={NO_BREAK}{text(value)}" for name, value in arguments.items())


def about(name: str, registry: Mapping[str, str], kind: str) -> str:
    """What an environment or algorithm says of itself: the first sentence of its documentation.

    That is its class's, or its module's where the class only lists hyper-parameters; "" if it
    cannot be imported.
    """
    try:
        made = load(name, dict(registry), kind)
    except (SeedbedError, ImportError):
        return ""
    module = importlib.import_module(location(name, dict(registry), kind).partition(":")[0])
    own = one_line((made.__doc__ or "").replace("``", ""))
    text = own if own and not own.startswith("Hyper-parameters") else one_line(module.__doc__ or "")
    return re.split(r"(?<!\bal)\.\s(?!\d)", text)[0].rstrip(".") + "." if text else ""


def prose(name: str, registry: Mapping[str, str], kind: str) -> str:
    """All that a class's documentation tells before it lists arguments; "" if it cannot be imported."""
    try:
        text = inspect.cleandoc(load(name, dict(registry), kind).__doc__ or "")
    except (SeedbedError, ImportError):
        return ""
    told = re.split(r"^(?:\w+:$|[^\n]*\n-{3,}$)", text, maxsplit=1, flags=re.MULTILINE)[0]
    return one_line(told.replace("``", ""))


def descriptions(algorithm: str) -> dict[str, str]:
    """Hyper-parameter -> what it means, from the fields of its dataclass; {} if that cannot be imported."""
    try:
        made = load(algorithm, ALGORITHMS, "algorithm")
    except (SeedbedError, ImportError):
        return {}
    fields = getattr(made, "__pydantic_fields__", {})
    return {name: one_line(field.description or "") for name, field in fields.items()}


def environments_text(results: StudyResults) -> list[dict[str, Any]]:
    """One entry per environment: label, title, class name, its documentation (told once), arguments."""
    entries, told = [], {}
    for label, entry in results.study.environments.items():
        title = one_line(results.study.title_of(label))
        names = [entry.environment, entry.arguments.get("environment")]  # what a distribution is over
        about = [prose(name, ENVIRONMENTS, "environment") for name in names if isinstance(name, str)]
        text = " ".join(filter(None, about))
        entries.append(
            {
                "label": label,
                "title": title,
                "name": entry.environment,
                "about": f"As {told[text]}." if text in told else text,
                "arguments": arguments_text(
                    results.resolved["environments"][label].get("arguments", entry.arguments)
                ),
            }
        )
        if text:
            told.setdefault(text, title)
    return entries


def algorithms_table(results: StudyResults) -> Table:
    """One row per algorithm: what it is, its role and its budget."""
    import pandas as pd

    rows, values = [], []
    entries = results.study.algorithms
    for label in sorted(entries, key=lambda label: ROLES.index(entries[label].role)):
        entry = entries[label]
        source = Source(f"{results.study.name}/study.json", {"key": f"study/algorithms/{label}/budget"})
        words = about(entry.algorithm, ALGORITHMS, "algorithm").rstrip(".")
        if entry.arguments:
            words += f" ({arguments_text(entry.arguments)})"
        budget = Cell(general(entry.budget), sources=(source,)) if entry.budget else Cell("no training")
        cells = (Cell(one_line(results.study.title_of(label))), Cell(entry.role), budget, Cell(words))
        rows.append(Row(label, cells))
        values.append(
            {"algorithm": label, "name": entry.algorithm, "role": entry.role, "budget": entry.budget}
        )
    return Table(
        name="algorithms",
        caption=(
            "Algorithms. Budget: environment steps per training seed. Learners are tested against the "
            "baseline and against each other; references stand beside them and are not tested."
        ),
        header=("Algorithm", "Role", "Budget (steps)", "What it is"),
        keys=("algorithm", "role", "budget", "about"),
        align="llrl",
        rows=tuple(rows),
        notes=(),
        values=pd.DataFrame(values, columns=["algorithm", "name", "role", "budget"]),
    )


def hyperparameter_tables(results: StudyResults) -> list[Table]:
    """Every hyper-parameter of every algorithm that has any; one table per distinct setting."""
    tables = []
    for label in results.study.algorithms:
        settings = {
            environment: algorithms[label]
            for environment, algorithms in results.resolved["algorithms"].items()
            if algorithms.get(label)
        }
        distinct: dict[str, list[str]] = {}
        for environment, values in settings.items():
            distinct.setdefault(json.dumps(values, sort_keys=True), []).append(environment)
        for environments in distinct.values():
            tables.append(_hyperparameters(results, label, environments, everywhere=len(distinct) == 1))
    return tables


def _hyperparameters(results: StudyResults, label: str, environments: list[str], everywhere: bool) -> Table:
    study = results.study
    values = results.resolved["algorithms"][environments[0]][label]
    meaning = descriptions(study.algorithms[label].algorithm)
    changed = study.arguments(label, environments[0])
    rows = []
    for name, value in values.items():
        key = f"algorithms/{environments[0]}/{label}/{name}"
        text = setting(value) + (" (set by the study)" if name in changed else "")
        cell = Cell(text, sources=(Source(f"{study.name}/study.json", {"key": key}),))
        cells = (Cell(name), cell, Cell(meaning.get(name, "")))
        rows.append(Row(name, cells if any(meaning.values()) else cells[:2]))
    columns = 3 if any(meaning.values()) else 2
    where = listed([one_line(study.title_of(environment)) for environment in environments])
    return Table(
        name=f"hyperparameters_{label}" + ("" if everywhere else f"_{environments[0]}"),
        caption=f"Hyper-parameters of {one_line(study.title_of(label))}"
        + ("" if everywhere else f" in {where}")
        + ".",
        header=("Hyper-parameter", "Value", "Meaning")[:columns],
        keys=("name", "value", "meaning")[:columns],
        align="l" * columns,
        rows=tuple(rows),
        notes=(),
        values=_frame(values),
    )


def _frame(values: Mapping[str, Any]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame({"name": list(values), "value": [setting(value) for value in values.values()]})
