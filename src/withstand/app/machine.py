"""What measures, in words: the machine, and who reads what has come."""

from withstand.load.receiver import READER
from withstand.runs import machine_facts


def client_facts() -> dict[str, str]:
    """Name → value; of those two runs are comparable that have the same."""
    return machine_facts() | {"reader": READER}
