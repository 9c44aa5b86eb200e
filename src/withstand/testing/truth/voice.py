"""The JSON of an answer, in both of OpenAI's dialects. Knows objects, knows neither times nor framing."""

from collections.abc import Iterable
from typing import Any

import msgspec

from withstand.testing.truth.asked import Asked
from withstand.testing.truth.likely import chat_logprobs, text_logprobs
from withstand.testing.truth.style import Style, Usage

CREATED_S = 1_700_000_000
_FILLER = "abcdefghijklmnopqrstuvwxyz"


class Voice:
    """Speaks for one request. The law: it keeps no state, so that the same words come out each time."""

    def __init__(self, asked: Asked, style: Style) -> None:
        self.tokens = _tokens(asked, style)
        self._asked = asked
        self._style = style
        self._usage_always = asked.usage_always or style.usage is Usage.ALWAYS
        self._usage_at_end = style.usage is not Usage.NEVER and (asked.usage or self._usage_always)
        kind = "chatcmpl" if asked.chat else "cmpl"
        self._id = f"{kind}-truth-{asked.number}"

    def empty(self) -> bytes:
        """A chunk without choices: what a content filter thinks of the prompt, as Azure says it first."""
        return self._chunk([], 0)

    def role(self) -> bytes:
        """The chunk without a word in it."""
        return self._chunk([self._choice(i, {"role": "assistant", "content": ""}) for i in self._choices()], 0)

    def said(self, start: int, count: int) -> bytes:
        """The tokens from ``start``; a choice's last ones bring its finish reason, unless that stands apart."""
        style = self._style
        last = start + style.choices * style.per_event >= self.tokens and not style.finish_apart
        choice = self._choice(
            start // style.per_event % style.choices,
            self._delta(start, count),
            self.finish_reason if last else None,
            self._logprobs(range(start, start + count)),
        )
        return self._chunk([choice], start + count)

    def finish(self) -> bytes:
        """The chunk that only says why the answer ended."""
        return self._chunk([self._choice(i, {}, self.finish_reason) for i in self._choices()], self.tokens)

    def usage(self) -> bytes | None:
        """The chunk with the counts, if they are wanted and told."""
        return self._encoded("chunk", [], self._counts(self.tokens)) if self._usage_at_end else None

    def whole(self) -> bytes:
        """The answer as one body."""
        counts = None if self._style.usage is Usage.NEVER else self._counts(self.tokens)
        return self._encoded("whole", [self._whole_choice(i) for i in self._choices()], counts)

    def _whole_choice(self, index: int) -> dict[str, Any]:
        said = merged(self._delta(i, 1) for i in range(index, self.tokens, self._style.choices))
        choice = {"index": index, "logprobs": None, "finish_reason": self.finish_reason}
        if self._asked.chat:
            return choice | {"message": {"role": "assistant", "content": None} | said}
        return choice | {"text": said.get("content", "")}

    def _choices(self) -> range:
        return range(self._style.choices)

    def _chunk(self, choices: list[dict[str, Any]], tokens: int) -> bytes:
        return self._encoded("chunk", choices, self._counts(tokens) if self._usage_always else None)

    def _encoded(self, form: str, choices: list[dict[str, Any]], usage: dict[str, Any] | None) -> bytes:
        kind = "text_completion"
        if self._asked.chat:
            kind = "chat.completion.chunk" if form == "chunk" else "chat.completion"
        answer = {"id": self._id, "object": kind, "created": CREATED_S, "model": self._asked.model, "choices": choices}
        return msgspec.json.encode(answer if usage is None else answer | {"usage": usage})

    def _choice(
        self, index: int, delta: dict[str, Any], finish_reason: str | None = None, logprobs: object = None
    ) -> dict[str, Any]:
        said = {"delta": delta} if self._asked.chat else {"text": delta.get("content", "")}
        return {"index": index, **said, "logprobs": logprobs, "finish_reason": finish_reason}

    def _logprobs(self, words: range) -> dict[str, Any] | None:
        """In the dialect's own shape; the others that a token might have been are made up."""
        count = self._style.logprobs
        if not count:
            return None
        tokens = [(self._word(i), [f"{self._word(i)}~{other}" for other in range(count)]) for i in words]
        return chat_logprobs(tokens) if self._asked.chat else text_logprobs(tokens)

    def _delta(self, start: int, count: int) -> dict[str, Any]:
        words = range(start, start + count)
        if self._asked.chat and self._style.tool_chars is not None:
            return self._tool_call(words, self._style.tool_chars)
        text = "".join(map(self._word, words))
        if self._asked.chat and self._style.thinking and start < self._thought():
            return {self._style.thinking.field: text}
        return {"content": text}

    def _word(self, index: int) -> str:
        return self._style.word(index) if self._style.sentence is None else self._style.sentence[index]

    def _tool_call(self, words: range, chars: int) -> dict[str, Any]:
        """A piece of the arguments; the pieces together are a JSON object."""
        filler = (_FILLER * (chars // len(_FILLER) + 1))[:chars] * len(words)
        opening = '{"query":"' if words.start == 0 else ""
        closing = '"}' if words.stop >= self.tokens else ""
        call: dict[str, Any] = {"index": 0}
        if words.start == 0:
            call |= {"id": f"call-{self._id}", "type": "function"}
        function = {"name": "look_up"} if words.start == 0 else {}
        return {"tool_calls": [call | {"function": function | {"arguments": opening + filler + closing}}]}

    def _thought(self) -> int:
        """Tokens of reasoning: an event is of one kind, by its first token."""
        if not self._style.thinking:
            return 0
        until = self._style.thinking.tokens
        until = self.tokens // 2 if until is None else until
        per_event = self._style.per_event
        return min(self.tokens, -(-until // per_event) * per_event)

    @property
    def claim(self) -> int | None:
        """The output tokens that usage tells at the end; None = nothing is told."""
        streamed = self._asked.stream and not self._style.whole
        told = self._usage_at_end if streamed else self._style.usage is not Usage.NEVER
        return self._claimed(self.tokens) if told else None

    @property
    def finish_reason(self) -> str:
        """Why the answer ends, if it is not broken off."""
        if self._asked.chat and self._style.tool_chars is not None:
            return "tool_calls"
        if self._style.finish is not None:
            return self._style.finish
        natural = self._style.sentence is not None or self._style.early_stop
        return "stop" if natural else self._asked.finish_reason

    def _counts(self, tokens: int) -> dict[str, Any]:
        prompt = self._asked.prompt_tokens
        claimed = self._claimed(tokens)
        counts: dict[str, Any] = {"prompt_tokens": prompt, "total_tokens": prompt + claimed}
        counts["completion_tokens"] = claimed
        if self._asked.cached_tokens is not None:
            counts["prompt_tokens_details"] = {"cached_tokens": self._asked.cached_tokens}
        if self._asked.chat and self._style.thinking:
            counts["completion_tokens_details"] = {"reasoning_tokens": min(tokens, self._thought())}
        return counts

    def _claimed(self, tokens: int) -> int:
        return round(tokens * self._style.claim_factor)


def _tokens(asked: Asked, style: Style) -> int:
    if style.sentence is not None:
        return len(style.sentence)
    return max(1, asked.tokens // 2) if style.early_stop else asked.tokens


def merged(deltas: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What all the deltas say together: texts and tool calls are joined, key by key."""
    texts: dict[str, list[str]] = {}
    calls: list[dict[str, Any]] = []
    for delta in deltas:
        for key, value in delta.items():
            if key == "tool_calls":
                calls += value
            else:
                texts.setdefault(key, []).append(value)
    said: dict[str, Any] = {key: "".join(parts) for key, parts in texts.items()}
    if calls:
        arguments = "".join(call["function"]["arguments"] for call in calls)
        call = {k: v for k, v in calls[0].items() if k != "index"}
        said["tool_calls"] = [call | {"function": {"name": calls[0]["function"]["name"], "arguments": arguments}}]
    return said
