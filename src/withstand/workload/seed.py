"""What a stage's chances come from: a number, the stage's name, and a salt.

The salt goes into words, and into the order of a file's rows. How much there is to do, and when, comes from the number
and the name alone: runs that differ in their salt send other prompts of the same lengths at the same times, so that no
prefix cache knows them and a comparison still is one.
"""

import msgspec


class Seed(msgspec.Struct, frozen=True):
    """Sources of chance are made of its parts: ``Random(f"{seed.words}/texts")``."""

    number: int
    stage: str
    salt: str = ""

    @property
    def work(self) -> str:
        """Of lengths, due times, pauses."""
        return f"{self.number}/{self.stage}"

    @property
    def words(self) -> str:
        """Of texts that are the stage's own."""
        return f"{self.common}/{self.stage}"

    @property
    def common(self) -> str:
        """Of texts that all stages of a run share."""
        return f"{self.number}{self.salt and '+'}{self.salt}"
