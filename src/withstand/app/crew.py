"""Who sends a run's requests, and who looks on meanwhile."""

import contextlib
from collections.abc import Callable, Iterator

import msgspec

from withstand.app.calibration.foresight import Foresight
from withstand.app.cooling import Cooling
from withstand.app.journal import FLEET_LOG, Journal
from withstand.app.screen import Screen
from withstand.app.stages import stripes_of
from withstand.load.fleets import Hosts, hosts_of
from withstand.load.stage import Stripes
from withstand.report.numbers import counted
from withstand.runs import allowed_cores
from withstand.spec import Plan, Stage


class Crew(msgspec.Struct, frozen=True):
    """Who sends, and what one of them is known to carry."""

    hosts: Hosts
    foresight: Foresight
    look: Callable[[], None]
    """Has the server's side looked at now."""
    mind: Callable[[], None]
    """Sees which of the stack's services are away."""
    cooling: Cooling

    def stripes(self, plan: Plan, stage: Stage) -> Stripes:
        """How they share a stage."""
        nodes = len(self.hosts.names)
        return stripes_of(plan, stage, allowed_cores(), nodes=nodes, needed=self.foresight.workers(stage))


@contextlib.contextmanager
def fleet(plan: Plan, journal: Journal, screen: Screen) -> Iterator[Hosts]:
    """Where workers run; a cluster is named."""
    with hosts_of(plan.fleet, journal.folder.path / FLEET_LOG, max(allowed_cores(), plan.workers or 1)) as hosts:
        if hosts.names:
            how = "Started" if hosts.started else "Joined"
            screen.message(f"{how} a Ray cluster with {counted(len(hosts.names), 'node')}: {', '.join(hosts.names)}")
        yield hosts
