"""Where a run's targets are when they are services of a stack: written beside the run, as ``stack.json``.

Their ports are others each time that the stack comes up, so whoever goes on with such a run needs the stack's file, and
leads the plan's targets to where the same services are now.
"""

import shlex
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from withstand.errors import UsageError
from withstand.files import spelled
from withstand.runs import Site, site_of, write_site
from withstand.spec import Plan, Target
from withstand.spec.stack import Stack
from withstand.spec.stack_tables import in_brackets, prints_of, unlike
from withstand.stack.blueprint import Blueprint

_DOOR = "/"
"""No service is called so."""


class Home(Struct, frozen=True):
    """Where runs are measured now; without a site at addresses that a plan names itself."""

    site: Site | None = None

    def note(self, folder: Path) -> None:
        """Of a run that begins.

        Raises:
            StorageError: it cannot be written.
        """
        if self.site:
            write_site(folder, self.site)

    def led(self, plan: Plan, folder: Path, verb: str = "run") -> Plan:
        """The plan of a run that ``verb`` goes on with, its targets where their services are now.

        Raises:
            UsageError: they were services of a stack, and nobody says where that is.
        """
        began = site_of(folder)
        if began is None:
            return plan
        if self.site is None:
            raise UsageError(
                f"{folder} was measured at the stack {began.name!r}, whose addresses are others each time that it "
                f"comes up; give its file: {to_go_on(verb, folder)}."
            )
        now = {url: self.site.addresses[name] for name, url in began.addresses.items() if name in self.site.addresses}
        targets = {name: _moved(target, now) for name, target in plan.targets.items()}
        return msgspec.structs.replace(plan, target=_moved(plan.target, now), targets=targets)


NOWHERE = Home()


def home_of(file: Path, blueprint: Blueprint) -> Home:
    """Where the services of a stack are that is up."""
    addresses = {process.name: process.base_url for process in blueprint.processes}
    told = {f"{process.name}/metrics": process.metrics_url for process in blueprint.processes}
    metrics = {name: url for name, url in told.items() if url}
    site = Site(
        name=blueprint.name,
        file=spelled(file.absolute()),
        tables=prints_of(blueprint.made_of),
        addresses={_DOOR: blueprint.door, **addresses, **metrics},
    )
    return Home(site)


def check_goes_on(folder: Path, file: Path, stack: Stack) -> None:
    """Before the stack is brought up.

    Raises:
        UsageError: the run was measured at another one, or at none.
    """
    began = site_of(folder)
    if began is None:
        raise UsageError(f"{folder} was not measured at a stack; leave {file} out.")
    if tables := unlike(dict(began.tables), dict(prints_of(stack))):
        raise UsageError(
            f"{file} is not the stack any more at which {folder} was measured: {in_brackets(tables)} different. Put "
            "it back as it was, or measure anew."
        )


def to_go_on(verb: str, folder: Path) -> str:
    """The command that goes on with a run, with its stack's file where it needs that."""
    site = site_of(folder)
    file = [_near(Path(site.file))] if site else []
    return shlex.join(["withstand", verb, *file, "--resume", spelled(folder)])


def _near(path: Path) -> str:
    """As it is typed from where we are."""
    here = Path.cwd()
    return spelled(path.relative_to(here) if path.is_relative_to(here) else path)


def _moved(target: Target, now: Mapping[str, str]) -> Target:
    url = target.base_url
    return msgspec.structs.replace(
        target,
        base_url=url and now.get(url, url),
        metrics_urls=tuple(now.get(each, each) for each in target.metrics_urls),
    )
