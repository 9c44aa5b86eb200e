"""Log probabilities, as both dialects of OpenAI spell them: a token, and the others that it might have been."""

from typing import Any

LOGPROB = -0.105360516

Likely = list[tuple[str, list[str]]]
"""(Token, others)."""


def chat_logprobs(tokens: Likely) -> dict[str, Any]:
    """Of chat completions: an object for each token, with its bytes."""
    return {"content": [_entry(token) | {"top_logprobs": list(map(_entry, others))} for token, others in tokens]}


def _entry(token: str) -> dict[str, Any]:
    return {"token": token, "logprob": LOGPROB, "bytes": list(token.encode())}


def text_logprobs(tokens: Likely) -> dict[str, Any]:
    """Of completions: parallel lists."""
    return {
        "tokens": [token for token, _ in tokens],
        "token_logprobs": [LOGPROB for _ in tokens],
        "top_logprobs": [dict.fromkeys(others, LOGPROB) for _, others in tokens],
        "text_offset": [0 for _ in tokens],
    }
