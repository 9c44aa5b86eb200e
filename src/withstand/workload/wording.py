"""Made-up texts of an exact number of tokens, under whatever tokenizer counts.

They are built from words that are one token each behind a space, so a text of n words has n tokens, or nearly: each
is counted, and mended until it is right. Counting may be a call to the engine, so it is done for many texts at once.
"""

from collections.abc import Sequence
from random import Random

from withstand.errors import DatasetError
from withstand.workload.tokenizers import Tokenizer

_TEXT = """
time year people way day man thing woman life child world school state family student group country problem hand part
place case week company system program question work government number night point home water room mother area money
story fact month lot right study book eye job word business issue side kind head house service friend father power
hour game line end member law car city community name president team minute idea body information back parent face
others level office door health person art war history party result change morning reason research girl guy moment air
teacher force education foot boy age policy music market sense nation plan college interest death experience effect
use class control field development role effort rate heart drug show leader light voice wife police mind price report
decision son view relationship town road arm difference value building action season society tax director position
player record paper space ground form event official matter center couple site project activity star table need court
oil situation cost industry figure street image phone data picture practice piece land product doctor wall patient
worker news test movie north love support technology step baby computer type attention film tree source organization
hair window evidence look culture chance brother energy period course summer plant opportunity term letter condition
choice rule daughter south husband floor campaign material population call economy hospital church risk fire future
bank west sport board subject officer rest behavior performance fight top goal second bed order author blood agency
nature color store sound movement page race concern series language response animal factor decade article east artist
scene stock career treatment approach size dog fund media sign thought list individual quality pressure answer
resource meeting disease
"""
_WORDS = _TEXT.split()
_MENDS_MAX = 24
_COARSE_MENDS = 2
_SHORTEST = " a"


class Wording:
    """Makes texts."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        counts = tokenizer.counts([f" {word}" for word in _WORDS])
        self._words = [f" {word}" for word, count in zip(_WORDS, counts, strict=True) if count == 1]
        if len(self._words) < len(_WORDS) // 8:
            self._words = [f" {word}" for word in _WORDS]

    def rough(self, random: Random, tokens: int) -> str:
        """About that many tokens, beginning with a space."""
        return "".join(random.choices(self._words, k=tokens))

    def texts(self, random: Random, lengths: Sequence[int]) -> list[str]:
        """A text of each length, not beginning with a space."""
        return self.mended([self.rough(random, n).lstrip() for n in lengths], lengths)

    def mended(self, texts: Sequence[str], lengths: Sequence[int]) -> list[str]:
        """The texts, lengthened or cut at their ends until they have the lengths.

        Raises:
            DatasetError: this tokenizer cannot be satisfied.
        """
        right = list(texts)
        wrong = list(range(len(right)))
        for step in range(_MENDS_MAX):
            counts = self._tokenizer.counts([right[i] for i in wrong])
            off = [(i, count - lengths[i]) for i, count in zip(wrong, counts, strict=True) if count != lengths[i]]
            if not off:
                return right
            for i, excess in off:
                right[i] = self._mend(right[i], excess, fine=step >= _COARSE_MENDS)
            wrong = [i for i, _ in off]
        raise DatasetError(
            f"No text of exactly {lengths[wrong[0]]} tokens could be made with {self._tokenizer.name}; "
            "choose another --tokenizer or length."
        )

    def _mend(self, text: str, excess: int, *, fine: bool) -> str:
        """Words are added or cut; where that does not settle it (words that are no whole tokens), the shortest one."""
        if excess > 0:
            return " ".join(text.split(" ")[:-excess]) if text.count(" ") >= excess else text[: -max(1, excess)]
        if fine:
            return text + _SHORTEST * -excess
        return text + "".join(self._words[(len(text) + i) % len(self._words)] for i in range(-excess))
