"""A simulated engine behind HTTP: OpenAI's routes, ``/health``, ``/metrics`` by vLLM's names. One thread.

Steps are timed in the model's own time: one that began late, because this process had no core, ends when it would have.
"""

from collections.abc import Hashable, Iterator
from functools import partial
from itertools import count

import msgspec

from withstand import clock
from withstand.sim import Engine, Job, Parameters, Step
from withstand.testing.sim.answer import Answer
from withstand.testing.sim.exposition import Times, metrics
from withstand.testing.truth import routes
from withstand.testing.truth.asked import Asked, Body, prompt_tokens, texts, words
from withstand.testing.truth.clockwork import Clockwork
from withstand.testing.truth.config import Config
from withstand.testing.truth.connection import Connection
from withstand.testing.truth.incoming import HttpRequest
from withstand.testing.truth.listener import Listener
from withstand.testing.truth.player import Player
from withstand.testing.truth.schedule import Schedule
from withstand.testing.truth.style import Refusal, Style
from withstand.testing.truth.told import score

_TOKENS = 16
"""Of an answer whose request names no length; as vLLM's completions have it."""


class SimBody(Body, frozen=True):
    """And what goes between a prefill and a decode engine (vLLM's NixlConnector)."""

    kv_transfer_params: dict[str, object] | None = None


_decode_body = msgspec.json.Decoder(SimBody).decode


class SimServer:
    """Takes connections on a clockwork of the caller's."""

    def __init__(self, config: Config, parameters: Parameters, clockwork: Clockwork, model: str) -> None:
        self._config = msgspec.structs.replace(config, models=(model,), max_model_len=parameters.context)
        self._parameters = parameters
        self._clockwork = clockwork
        self._model = model
        self._engine = Engine(parameters)
        self._times = Times()
        self._answers: dict[int, Answer] = {}
        self._numbers = count()
        self._stepping = False
        self._listener = Listener(self._config, clockwork, self._answer, self._left)

    @property
    def base_url(self) -> str:
        """Where a client finds it."""
        return self._listener.base_url

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    # Requests.

    def _answer(self, connection: Connection, request: HttpRequest) -> None:
        kind = routes.completion_kind(request)
        if kind is None:
            self._refuse(connection, request, self._other(request))
            return
        try:
            body = _decode_body(request.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as e:
            self._refuse(connection, request, routes.refusal(400, str(e), "BadRequestError"))
            return
        self._take(connection, request, body, chat=kind == "chat")

    def _take(self, connection: Connection, request: HttpRequest, body: SimBody, *, chat: bool) -> None:
        if told := routes.refused_by_model(body, self._config):
            self._refuse(connection, request, told)
            return
        now_ns = request.complete_ns
        job = self._job(body, now_ns, self._parameters.template_tokens if chat else 0)
        if not self._engine.fits(job):
            self._refuse(connection, request, self._too_long(job))
            return
        asked = _asked(job, body, self._model, chat=chat, keep_alive=request.keep_alive)
        answer = Answer(job, asked, connection, self._handle(job, body))
        connection.player = answer
        self._answers[job.number] = answer
        answer.begin()
        delay_ns = round(self._parameters.overhead_ms * 1e6) + self._fetching_ns(job)
        self._clockwork.at(now_ns + delay_ns, partial(self._arrive, answer, now_ns + delay_ns))

    def _job(self, body: SimBody, now_ns: int, template_tokens: int) -> Job:
        tokens = body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens
        prompt = max(1, prompt_tokens(body))
        return Job(
            number=next(self._numbers),
            prompt_tokens=prompt + template_tokens,
            output_tokens=max(1, _TOKENS if tokens is None else tokens),
            hashes=tuple(_hashes(body, prompt, self._parameters.block_tokens)),
            arrived_ns=now_ns,
            fetched=bool((body.kv_transfer_params or {}).get("do_remote_prefill")),
        )

    def _fetching_ns(self, job: Job) -> int:
        return self._parameters.transfer_ns(job.prompt_tokens) if job.fetched else 0

    def _handle(self, job: Job, body: SimBody) -> dict[str, object] | None:
        """What a prefill engine says of where the cache waits."""
        if not (body.kv_transfer_params or {}).get("do_remote_decode"):
            return None
        blocks = -(-job.prompt_tokens // self._parameters.block_tokens)
        return {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_engine_id": f"{self._model}@{self.base_url}",
            "remote_block_ids": list(range(blocks)),
            "remote_request_id": str(job.number),
        }

    def _too_long(self, job: Job) -> Refusal:
        most = min(self._parameters.context, self._parameters.kv_tokens)
        asked = job.prompt_tokens + job.output_tokens
        text = f"This model's maximum context length is {most} tokens. However, you requested {asked} tokens."
        return routes.refusal(400, text, "BadRequestError")

    def _other(self, request: HttpRequest) -> Refusal:
        if (request.method, request.path) == ("GET", "/metrics"):
            page = metrics(self._engine, self._times, self._model)
            return Refusal(200, "text/plain; version=0.0.4; charset=utf-8", page)
        return routes.answer(request, self._config)

    def _refuse(self, connection: Connection, request: HttpRequest, told: Refusal) -> None:
        asked = Asked(number=0, chat=True, stream=False, tokens=0, schedule=_NOW, keep_alive=request.keep_alive)
        played = score(asked, Style(refusal=told))
        player = Player(self._clockwork, played, None, connection.put, connection.conclude)
        connection.player = player
        player.start(request.complete_ns)

    # The engine.

    def _arrive(self, answer: Answer, at_ns: int) -> None:
        if answer.alive:
            answer.job.arrived_ns = at_ns
            self._engine.add(answer.job)
            self._go_on(at_ns)

    def _left(self, player: object) -> None:
        """It has ended, or its client has gone."""
        if isinstance(player, Answer):
            self._engine.drop(player.job)
            self._answers.pop(player.job.number, None)

    def _go_on(self, now_ns: int) -> None:
        if self._stepping:
            return
        step = self._engine.begin(now_ns)
        if step is not None:
            self._stepping = True
            self._clockwork.at(step.ends_ns, partial(self._finish, step))

    def _finish(self, step: Step) -> None:
        self._stepping = False
        for job in self._engine.finish(step):
            self._times.tokens += 1
            if job.said == 1:
                begun_ns = step.started_ns if job.begun_ns is None else job.begun_ns
                self._times.first_token(job.arrived_ns, max(begun_ns, job.arrived_ns), step.ends_ns)
            if answer := self._answers.get(job.number):
                answer.say()
        self._go_on(max(step.ends_ns, clock.now_ns() - _LATE_NS))


_NOW = Schedule(ttft_ms=0, itl_ms=0)
_LATE_NS = 1_000_000_000
"""So far it may be behind; a process that was stopped for longer does not make up for all of it."""


def _asked(job: Job, body: Body, model: str, *, chat: bool, keep_alive: bool) -> Asked:
    options = body.stream_options
    return Asked(
        number=job.number,
        chat=chat,
        stream=bool(body.stream),
        usage=bool(options and options.include_usage),
        usage_always=bool(options and options.continuous_usage_stats),
        model=model,
        prompt_tokens=job.prompt_tokens,
        cached_tokens=0,
        tokens=job.output_tokens,
        schedule=_NOW,
        keep_alive=keep_alive,
    )


def _hashes(body: Body, prompt: int, block: int) -> Iterator[Hashable]:
    """Of each full block, with all before it. Token ids in a prompt are not told apart from one another's order."""
    tokens = [word for text in texts([body.prompt, body.messages]) for word in words(text)]
    if len(tokens) != prompt:
        tokens = [b"%d" % token for token in _ids(body.prompt)]
    before = 0
    for start in range(0, len(tokens) - block + 1, block):
        before = hash((before, *tokens[start : start + block]))
        yield before


def _ids(prompt: object) -> Iterator[int]:
    if isinstance(prompt, int):
        yield prompt
    elif isinstance(prompt, list):
        for item in prompt:
            yield from _ids(item)
