"""Where a run's targets are when they are services of a stack: written beside the run, as ``stack.json``.

Their ports are others each time that the stack comes up, so whoever goes on with such a run needs the stack's file, and
leads the plan's targets to where the same services are now.
"""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from withstand.app.services import Services
from withstand.errors import UsageError
from withstand.files import spelled
from withstand.runs import SITE_NAME, RunFolder, Site, TargetsFolder, TurnsFolder, site_of, write_site
from withstand.spec import Plan, Target, plan_from_file
from withstand.spec.stack import Stack, is_stack
from withstand.spec.stack_tables import in_brackets, print_of_plan, prints_of, unlike
from withstand.stack.standing import Standing

_STACK_BYTES = 1 << 20
"""What is larger is a dataset."""
_DOOR = "/"
"""No service is called so."""


class Home(Struct, frozen=True):
    """Where runs are measured now; without a site at addresses that a plan names itself."""

    site: Site | None = None
    services: Services | None = None
    """Those of the stack, which may be lost meanwhile."""

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
            _check_has_none(folder)
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


def home_of(file: Path, standing: Standing, plan: dict[str, Any] | None = None) -> Home:
    """Where the services of a stack are that is up; ``plan`` is the file's own, where that is what is measured."""
    blueprint = standing.blueprint
    addresses = {process.name: process.base_url for process in blueprint.processes}
    told = {f"{process.name}/metrics": process.metrics_url for process in blueprint.processes}
    metrics = {name: url for name, url in told.items() if url}
    site = Site(
        name=blueprint.name,
        file=spelled(file.absolute()),
        tables=prints_of(blueprint.made_of),
        addresses={_DOOR: blueprint.door, **addresses, **metrics},
        plan=None if plan is None else print_of_plan(plan),
    )
    return Home(site, Services(standing))


def check_goes_on(folder: Path, file: Path, stack: Stack) -> str | None:
    """Before the stack is brought up; a sentence to be told where the file has another plan by now.

    Raises:
        UsageError: there is no run, or it was measured at another stack, or at none.
    """
    began = site_of(folder)
    if began is None:
        _check_has_none(folder, file)
        raise UsageError(f"{folder} was not measured at a stack; leave {file} out.")
    if tables := unlike(dict(began.tables), dict(prints_of(stack))):
        raise UsageError(
            f"{file} is not the stack any more at which {folder} was measured: {in_brackets(tables)} different. Put "
            "it back as it was, or measure anew."
        )
    if began.plan in (None, print_of_plan(stack.plan)):
        return None
    return f"{file} has another [plan] by now; {folder} goes on by the one that it began with."


def _check_has_none(folder: Path, file: Path | None = None) -> None:
    """Of a run without a site: whether it was measured at no stack.

    Raises:
        UsageError: there is no run, or its command names a stack's file, perhaps this one.
    """
    stack = next((name for name in _argv_of(folder) if _is_stacks(name, file)), None)
    if stack is not None:
        raise UsageError(
            f"{folder} was measured at the stack of {stack}, and has lost its {SITE_NAME}, which told the addresses "
            "of its services: what listens there now may be anything. Measure anew."
        )


def _argv_of(folder: Path) -> Sequence[str]:
    """As it was begun."""
    if TurnsFolder.is_one(folder):
        return TurnsFolder.open(folder).asked.argv
    if TargetsFolder.is_one(folder):
        return TargetsFolder.open(folder).asked.argv
    return RunFolder.open(folder).manifest.argv


def _is_stacks(name: str, file: Path | None) -> bool:
    """What was typed then belongs to the folder where that was, which may be another one."""
    path = Path(name)
    if not path.suffix:
        return False
    if file and path.name == file.name:
        return True
    try:
        return path.is_file() and path.stat().st_size < _STACK_BYTES and is_stack(plan_from_file(path))
    except (UsageError, OSError):
        return False


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
