"""The table of verbs. Each is imported when it is called, and only then; its one line of help stands here."""

import importlib
from collections.abc import Mapping

import click

from withstand import __version__

VERBS: Mapping[str, tuple[str | None, str]] = {
    "demo": ("withstand.cli.demo", "Measure a small real model on this machine, in three minutes."),
    "run": ("withstand.cli.run", "Load an endpoint, measure it, report it."),
    "find-limit": ("withstand.cli.find_limit", "Find the largest load that keeps what you promise."),
    "ab": ("withstand.cli.ab", "Measure two sides in turn, block by block: what drifts falls out."),
    "report": ("withstand.cli.report", "Show what runs came to, also of a run that was cut."),
    "audit": ("withstand.cli.audit", "Say what may be concluded from results, and what may not."),
    "compare": (
        "withstand.cli.compare",
        "Compare measurements at equal conditions: differences, how sure they are, and a verdict.",
    ),
    "fit": ("withstand.cli.fit", "Make a model of the engine that runs have measured, and say how far off it is."),
    "doctor": ("withstand.cli.doctor", "Examine a path: does it stream, keep fields and errors, stop when told."),
    "ui": ("withstand.cli.ui", "Show runs on a page: follow them, open their reports, compare them."),
    "import": ("withstand.cli.import_", "Read other tools' result files into a folder of their own."),
    "calibrate": ("withstand.cli.calibrate", "Find out what this client is good for on this machine."),
    "schema": ("withstand.cli.schema", "Print the JSON schema of plans, stacks and records."),
    "selftest": (None, "Prove this client's numbers on this machine, in some seconds."),
    "up": ("withstand.cli.up", "Bring up a stack: engines, gateway, and what else its file names."),
    "ps": ("withstand.cli.ps", "Show the stacks that are up, and how their services stand."),
    "restart": ("withstand.cli.restart", "End services of a stack and start them again."),
    "logs": ("withstand.cli.logs", "Print what a stack's services say."),
    "down": ("withstand.cli.down", "Take a stack down, and leave nothing behind."),
    "export": ("withstand.cli.export", "Write a stack as files of compose, Kubernetes, Ray Serve, KubeRay or Modal."),
    "gateway": (None, "Serve models of one or many engines behind one address."),
    "agent": (None, "Serve an agent with tools behind an OpenAI-compatible address."),
    "truth-server": (None, "Serve answers at known times, to prove a client's numbers."),
}
"""Name → (module, help); the module's ``verb`` is the command. Those without one took over before (``programs``)."""


class _Verbs(click.Group):
    """A group that knows its commands by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  click's signature
        if cmd_name not in VERBS:
            return None
        module, text = VERBS[cmd_name]
        command: click.Command = importlib.import_module(module).verb if module else click.Command(cmd_name, help=text)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that comes first; what was meant by one that there is not."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            from withstand.hints import meant  # noqa: PLC0415  help need not wait for it

            ctx.fail(f"No such verb {args[0]!r}{meant(args[0], VERBS)}.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  same
        """List the verbs without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, text) for name, (_, text) in VERBS.items()])


@click.group(
    cls=_Verbs,
    subcommand_metavar="VERB …",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 good, 1 a limit was missed, 2 usage, 3 could not be measured.",
)
@click.version_option(__version__, "-V", "--version", message="withstand %(version)s")
def withstand() -> None:
    """Find out what an LLM serving stack really holds up under, with numbers that can be defended."""
