"""Answers that come in crumbs: what is known of them is what was said."""

from collections.abc import Callable

from engines import END, Behave, Engine, chunk, streaming
from gateways import Gateway, body, model

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]
TOKEN = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":700,"completion_tokens":900}}\n\n'
LAST = (b"e\r\n", b"data: [DONE]\n\n", b"\r\n", END)


def test_an_engine_that_sends_the_same_byte_again_goes_on(engine: Engines, gateway: Gateways) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n"
    one = engine(lambda talk, _: talk.say(head, *[b"\n"] * 8, b'"ok"', gap_s=0.15))
    answer = gateway("[timeouts]\nidle_s = 0.6\n" + model(one.url)).ask(body())
    assert answer.complete
    assert answer.json == "ok"


def test_usage_is_known_where_the_end_comes_in_crumbs(engine: Engines, gateway: Gateways) -> None:
    one = engine(streaming(*[chunk(TOKEN)] * 5, chunk(USAGE), *LAST, gap_s=0.01))
    gw = gateway(model(one.url))
    assert gw.ask(body(stream=True)).complete
    gw.until('output_tokens_total{model="m"}', 900)


def test_an_error_is_one_where_the_end_comes_in_crumbs(engine: Engines, gateway: Gateways) -> None:
    error = chunk(b'data: {"error":{"message":"no memory"}}\n\n')
    one = engine(streaming(*[chunk(TOKEN)] * 5, error, *LAST, gap_s=0.01))
    gw = gateway(model(one.url))
    assert gw.ask(body(stream=True)).complete
    labels = 'route="/v1/chat/completions",model="m",status="200",outcome="engine_error"'
    gw.until(f"requests_total{{{labels}}}", 1)
