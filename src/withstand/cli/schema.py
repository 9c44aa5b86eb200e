"""``withstand schema``: what a plan, a stack and a record may hold, for editors and for other programs."""

import click

from withstand.app.plans import all_texts
from withstand.app.schema import SUBJECTS, json_schema
from withstand.cli.options import Verb
from withstand.cli.output import write_result
from withstand.errors import UsageError
from withstand.hints import near

_PLANS = "plans"


@click.command("schema", cls=Verb)
@click.argument("subjects", metavar="[plan|stack|record]…|plans", nargs=-1)
def verb(subjects: tuple[str, ...]) -> None:
    """Print the JSON schema of plans, stacks and records.

    With one word, of that alone. `plans` prints the plans that come along, as the files that they are.
    """
    known = [*SUBJECTS, _PLANS]
    for subject in subjects:
        if subject not in known:
            told = f"schema: {subject!r} is unknown{near(subject, known)}; choose one of {', '.join(known)}"
            raise click.UsageError(told, click.get_current_context())
    if _PLANS in subjects:
        if len(subjects) > 1:
            raise UsageError("schema plans prints files, not a schema; ask for it alone.")
        write_result(all_texts())
        return
    write_result(json_schema(subjects or SUBJECTS).decode())
