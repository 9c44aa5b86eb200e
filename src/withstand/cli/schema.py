"""``withstand schema``: what a plan and a record may hold, for editors and for other programs."""

import click

from withstand.app.schema import SUBJECTS, json_schema
from withstand.cli.output import write_result


@click.command("schema")
@click.argument("subjects", metavar="[plan|record]…", nargs=-1, type=click.Choice(SUBJECTS))
def verb(subjects: tuple[str, ...]) -> None:
    """Print the JSON schema of plans and records.

    With one word, of that alone.
    """
    write_result(json_schema(subjects or SUBJECTS).decode())
