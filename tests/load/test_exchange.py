"""What an exchange leaves behind."""

import gc
import weakref

from withstand import plugins
from withstand.load.exchange import Exchange
from withstand.load.pacing import Due
from withstand.request import Message, Request


class Watched(Exchange):
    __slots__ = ("__weakref__",)


def test_one_that_was_sent_again_is_no_garbage_to_be_looked_for() -> None:
    request = Request(id=0, session=0, messages=(Message(role="user", content="hi"),))
    dialect = plugins.load("wire", "openai-chat", "test")
    exchange = Watched(Due(request, 0, 0), dialect=dialect, stream=True, ended=lambda _: None)
    watched = weakref.ref(exchange)
    exchange.restart()
    exchange.answer.release()
    gc.disable()
    try:
        del exchange
        assert watched() is None
    finally:
        gc.enable()
