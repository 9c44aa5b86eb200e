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


def test_what_each_hop_says_of_its_time_is_a_fact_of_the_record() -> None:
    request = Request(id=0, session=0, messages=(Message(role="user", content="hi"),))
    dialect = plugins.load("wire", "openai-chat", "test")
    exchange = Exchange(Due(request, 0, 0), dialect=dialect, stream=True, ended=lambda _: None)
    lines = [b"HTTP/1.1 200 OK", b"Server-Timing: edge;dur=1", b"server-timing: hop;dur=0.2", b"Content-Length: 0"]
    exchange.feed(b"\r\n".join([*lines, b"", b""]), 1)
    exchange.complete(2)
    record = exchange.record(stage=0, worker=0, origin_ns=0, epoch_ns=0)
    assert record.server_timing == "edge;dur=1, hop;dur=0.2"
