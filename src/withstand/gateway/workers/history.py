"""The changes that a worker must make to be as the others are, who have been there longer: pure.

Of an engine's place that was removed, only that is remembered, and of changes in a row one with all their fields; so an
autoscaler may come and go for years.
"""

import msgspec

from withstand.gateway.workers.words import Make


def with_change(made: list[Make], change: Make) -> list[Make]:
    """The same as ``made`` and then ``change``, as short as it can be said."""
    if change.kind == "reload":
        return [change]
    if change.kind == "remove":
        return [*(old for old in made if _place(old) != _place(change)), change]
    if change.kind == "change":
        for i in range(len(made) - 1, -1, -1):
            if _place(made[i]) == _place(change):
                if made[i].kind != "change":
                    break
                both = _fields(made[i]) | {k: v for k, v in _fields(change).items() if v is not None}
                told = msgspec.json.encode(both).decode()
                return [*made[:i], *made[i + 1 :], msgspec.structs.replace(change, told=told)]
    return [*made, change]


def _fields(change: Make) -> dict[str, object]:
    return msgspec.json.decode(change.told, type=dict[str, object])


def _place(change: Make) -> tuple[object, object]:
    fields = _fields(change)
    return fields.get("model"), fields.get("url")
