"""What a rule is, and how Prometheus' file of them is laid out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from textwrap import dedent
from typing import Literal

import yaml

from dashboards.prometheus.settings import Duration

Severity = Literal["critical", "warning", "info"]
"""Page now; make a ticket; context only."""


@dataclass(frozen=True, slots=True)
class Recording:
    """
    A recording rule.

    Args:
        record: level:metric:operations, where the level is the label by which its series are told apart. The window
            is not in it, for it is a setting, and dashboards name the rule.
    """

    record: str
    expr: str

    def document(self) -> dict[str, object]:
        """Return it as Prometheus reads it."""
        return {"record": self.record, "expr": _laid_out(self.expr)}


@dataclass(frozen=True, slots=True)
class Alert:
    """
    An alert rule.

    Args:
        name: Begins with Streamgauge.
        lasting: How long the expression has to hold.
        keep_firing: How long it goes on firing afterwards.
        summary: A whole sentence, the same for every series.
        description: A template that names job, vertex and value.
    """

    name: str
    severity: Severity
    expr: str
    lasting: Duration
    keep_firing: Duration
    summary: str
    description: str

    @property
    def runbook(self) -> str:
        """File name of its page in docs/runbooks/."""
        return f"{self.name.lower()}.md"

    def document(self, runbook_url: str) -> dict[str, object]:
        """
        Return it as Prometheus reads it.

        Args:
            runbook_url: What stands in front of its page's file name.
        """
        keep = {"keep_firing_for": str(self.keep_firing)} if self.keep_firing.seconds else {}
        return {
            "alert": self.name,
            "expr": _laid_out(self.expr),
            "for": str(self.lasting),
            **keep,
            "labels": {"severity": self.severity},
            "annotations": {
                "summary": self.summary,
                "description": _Folded(self.description),
                "runbook_url": f"{runbook_url.rstrip('/')}/{self.runbook}",
            },
        }


class _Block(str):
    """Text that YAML writes as a literal block, line by line."""

    __slots__ = ()


class _Folded(str):
    """Text that YAML writes over several lines and reads as one."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    """Writes the file: literal blocks, lists indented below their key, nothing sorted."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists too, as Prometheus' own documentation does."""
        super().increase_indent(flow, False)


_Dumper.add_representer(_Block, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|"))
_Dumper.add_representer(_Folded, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style=">"))


def quoted(text: str) -> str:
    """Return a string literal of PromQL."""
    return json.dumps(text, ensure_ascii=False)


def written(group: dict[str, object]) -> str:
    """Return the text of a rule file of one group; the same group gives the same text."""
    return yaml.dump({"groups": [group]}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def _laid_out(expr: str) -> str:
    text = dedent(expr).strip("\n")
    return _Block(f"{text}\n") if "\n" in text else text
