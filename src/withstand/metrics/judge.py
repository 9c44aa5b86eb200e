"""Puts a stage before every rule. The order is that of the reader's interest: ourselves first, then the server."""

from withstand.metrics.context import StageContext
from withstand.metrics.doubts import Doubt
from withstand.metrics.evidence import Evidence
from withstand.metrics.rules import client, outcome, pace, server, setting, stream, tokens
from withstand.metrics.rules.case import Case
from withstand.metrics.summary import StageSummary
from withstand.metrics.trend import Growth

_RULES = (
    *client.RULES,
    *outcome.RULES,
    *pace.RULES,
    *stream.RULES,
    *tokens.RULES,
    *server.RULES,
    *setting.RULES,
)


def stage_doubts(
    summary: StageSummary, evidence: Evidence, context: StageContext, backlog: Growth | None = None
) -> tuple[Doubt, ...]:
    """Every doubt that one stage shows by itself, blocking ones first. ``backlog``: a queue that grew, if one did."""
    case = Case(summary=summary, evidence=evidence, context=context, backlog=backlog)
    doubts = [doubt for rule in _RULES if (doubt := rule(case))]
    return tuple(sorted(doubts, key=lambda doubt: not doubt.blocking))
