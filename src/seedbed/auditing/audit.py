"""The audit of an environment: its checks in their order, what rests on what, and the report for people."""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from seedbed.auditing import contract, invariances
from seedbed.auditing.subject import Finding, Subject
from seedbed.evaluation import EvaluationError


class Check(NamedTuple):
    """One question to an environment."""

    name: str
    look: Callable[[Subject], Finding]
    rests_on: tuple[str, ...] = ()
    """Checks without which this one says nothing; where one does not hold, this one is not judged."""
    single: bool = True
    """Whether it looks at one environment at a time."""


_PLAYED = ("episodes",)
_EVALUATED = ("episodes", "finite numbers", "success")
_REPEATED = (*_EVALUATED, "equal seeds", "global generators")
_SEEDED = (*_REPEATED, "earlier episodes")

CHECKS = (
    Check("episodes", contract.episodes, single=False),
    Check("finite numbers", contract.finite_numbers, _PLAYED),
    Check("observation space", contract.observation_space, _PLAYED),
    Check("rewards and flags", contract.rewards_and_flags, _PLAYED),
    Check("returned arrays", contract.returned_arrays, _PLAYED),
    Check("success", contract.success, _PLAYED),
    Check("gymnasium checker", contract.gymnasium_checker, _PLAYED),
    Check("equal seeds", invariances.equal_seeds, _EVALUATED, single=False),
    Check("global generators", invariances.global_random, (*_EVALUATED, "equal seeds"), single=False),
    Check("earlier episodes", invariances.earlier_episodes, _REPEATED),
    Check("distinct seeds", invariances.distinct_seeds, _SEEDED),
    Check("step limit", contract.step_limit, _SEEDED),
    Check("lanes", invariances.lanes, _SEEDED, single=False),
    Check("processes", invariances.processes, _SEEDED),
    Check("autoreset modes", invariances.autoreset_modes, (*_SEEDED, "returned arrays", "lanes")),
    Check("fresh process", invariances.fresh_process, _SEEDED, single=False),
    Check("bias probe", invariances.bias_probe, _SEEDED, single=False),
)
"""In the order in which they are made."""


def audit(subject: Subject, checks: Sequence[Check] = CHECKS) -> Iterator[Finding]:
    """Make all checks, one finding after the other.

    Raises:
        SeedbedError: the environment cannot be made.
    """
    made: dict[str, Finding] = {}
    single = subject.single is not None
    for check in checks:
        broken = [name for name in check.rests_on if name in made and made[name].holds is False]
        if broken:
            finding = Finding(check.name, None, f"says nothing until '{broken[0]}' holds")
        elif check.single and not single:
            finding = Finding(check.name, None, f"does not apply to {subject.kind}")
        else:
            try:
                finding = check.look(subject)
            except EvaluationError as error:
                finding = Finding(check.name, False, str(error), "An evaluation stops there.")
        made[check.name] = finding
        yield finding


def document(subject: Subject, findings: Sequence[Finding]) -> dict[str, Any]:
    """The audit as JSON."""
    return {
        "environment": subject.name,
        "arguments": subject.arguments,
        "episodes": subject.episodes,
        "holds": all(finding.holds is not False for finding in findings),
        "findings": [asdict(finding) for finding in findings],
    }


VERDICTS = {True: "holds", False: "DOES NOT HOLD", None: "no verdict"}
WIDTH = 110


def line(finding: Finding) -> str:
    """One finding for people: check, verdict, what was seen, and what to do."""
    margin = 34
    text = textwrap.fill(
        finding.detail,
        WIDTH,
        initial_indent=f"{finding.check:18} {VERDICTS[finding.holds]:14} ",
        subsequent_indent=margin * " ",
        break_on_hyphens=False,
    )
    if finding.remedy:
        remedy = textwrap.fill(
            f"-> {finding.remedy}", WIDTH, initial_indent=margin * " ", subsequent_indent=margin * " "
        )
        return f"{text}\n{remedy}"
    return text


def verdict(findings: Sequence[Finding]) -> str:
    """The audit in one sentence."""
    wrong = [finding.check for finding in findings if finding.holds is False]
    judged = sum(finding.holds is not None for finding in findings)
    if wrong:
        return f"{judged - len(wrong)} of {judged} hold; these do not: {', '.join(wrong)}"
    return f"all {judged} that can be judged hold"
