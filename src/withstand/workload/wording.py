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
_MENDS_MAX = 32
_MENDS_COARSE = 2
_MENDS_BY_WORDS = 12
_SHORTEST = " a"


class Wording:
    """Makes texts."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        whole = _whole_words(tokenizer)
        words = whole if len(whole) >= len(_WORDS) // 8 else _WORDS
        self._words = [f" {word}" for word in words]
        self._word_tokens = max(0.1, tokenizer.counts([" ".join(words)])[0] / len(words))

    def rough(self, random: Random, tokens: int) -> str:
        """About that many tokens, beginning with a space."""
        return "".join(random.choices(self._words, k=self._words_for(tokens))) if tokens else ""

    def chunk(self, random: Random, tokens: int) -> str:
        """Exactly that many tokens, beginning with a space: to be shared by several texts."""
        text = self.rough(random, tokens)
        return text if self._word_tokens == 1 else self.mended([text], [tokens])[0]

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
                right[i] = self._cut(right[i], excess, step) if excess > 0 else self._added(right[i], -excess, step)
            wrong = [i for i, _ in off]
        own = "the model's folder as --tokenizer FOLDER (engines behind one name may count differently)"
        cure = own if self._tokenizer.remote else "another --tokenizer"
        raise DatasetError(
            f"No text of exactly {lengths[wrong[0]]} tokens could be made with {self._tokenizer.name}; "
            f"choose {cure} or length."
        )

    def _cut(self, text: str, excess: int, step: int) -> str:
        """Without its last words, or its last letter where words are too coarse."""
        fewer = text.rsplit(" ", self._words_for(excess))[0]
        if step >= _MENDS_BY_WORDS or not fewer or fewer == text:
            return text[:-1].rstrip(" ")
        return fewer

    def _added(self, text: str, missing: int, step: int) -> str:
        """With more words; then with the shortest; then with a letter."""
        if step >= _MENDS_BY_WORDS:
            return text + _SHORTEST.strip()
        if step >= _MENDS_COARSE:
            more = _SHORTEST * missing
        else:
            more = "".join(self._words[(len(text) + i) % len(self._words)] for i in range(self._words_for(missing)))
        return text + more if text else more.lstrip()

    def _words_for(self, tokens: int) -> int:
        return max(1, round(tokens / self._word_tokens))


def _whole_words(tokenizer: Tokenizer) -> list[str]:
    """The words that are one token each. Groups are tried, and halved where they fail: counting may be slow."""
    whole: list[str] = []
    groups = [_WORDS]
    while groups:
        counts = tokenizer.counts([" ".join(group) for group in groups])
        tried = list(zip(groups, counts, strict=True))
        whole += [word for group, count in tried if count == len(group) for word in group]
        failed = [group for group, count in tried if count != len(group) and len(group) > 1]
        groups = [half for group in failed for half in (group[: len(group) // 2], group[len(group) // 2 :])]
    return whole
