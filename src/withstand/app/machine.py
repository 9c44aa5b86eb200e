"""What measures, in words: the machine, who reads what has come, and on what pages."""

from withstand import huge_pages
from withstand.load.receiver import READER
from withstand.runs import machine_facts


def client_facts() -> dict[str, str]:
    """Name → value; of those two runs are comparable that have the same."""
    return machine_facts() | {"reader": READER, "huge pages": "yes" if huge_pages.are_to_be_had() else "no"}
