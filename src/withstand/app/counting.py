"""Which answers' texts are counted, and by whom: once a stage's load is over, before the next one begins.

The model's own tokenizer checks what the server claims; one that the user names counts where the server does not. One
that was merely at hand does neither: its vocabulary is another. An engine has to be asked, so it is asked for a sample.
"""

import heapq
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from withstand.app.aloud import ANSWERS, AloudTokenizer
from withstand.load.texts import place_of, read_texts
from withstand.spec import Stage

SAMPLE = 200
_MARGIN = 1.5
_BATCH = 256
_NOT_NAMED = frozenset({"auto", "estimate"})


def share_wanted(stage: Stage, tokenizer: AloudTokenizer) -> float:
    """The share of the stage's answers whose texts the workers shall keep; a sample's with some to spare."""
    assert stage.workload is not None
    if stage.warmup or (stage.workload.tokenizer in _NOT_NAMED and not tokenizer.exact):
        return 0.0
    if not tokenizer.remote or stage.num_prompts is None:
        return 1.0
    return min(1.0, _MARGIN * SAMPLE / stage.num_prompts)


def counted_texts(folder: Path, tokenizer: AloudTokenizer) -> list[tuple[int, int]]:
    """(id, tokens) of the answers whose texts the workers have left in ``folder``.

    Raises:
        TargetError: the engine does not count.
    """
    counts: list[tuple[int, int]] = []
    tokenizer.begin(ANSWERS)
    try:
        for batch in _batches(_chosen(read_texts(folder), tokenizer)):
            ids, texts = zip(*batch, strict=True)
            counts += zip(ids, tokenizer.counts(texts), strict=True)
    finally:
        tokenizer.end()
    return counts


def _chosen(answers: Iterator[tuple[int, str]], tokenizer: AloudTokenizer) -> Iterable[tuple[int, str]]:
    """All of them, or as many as one may ask an engine for."""
    return heapq.nsmallest(SAMPLE, answers, key=lambda a: place_of(a[0])) if tokenizer.remote else answers


def _batches(answers: Iterable[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    rest = iter(answers)
    while batch := list(islice(rest, _BATCH)):
        yield batch
