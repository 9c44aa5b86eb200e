"""The words of a command line, before anybody knows what they mean."""


def is_utf8(word: str) -> bool:
    """Of a command line; Python writes bytes that are none as surrogates."""
    return not any("\ud800" <= c <= "\udfff" for c in word)
