"""The truth server: a listener, its connections, and the log. One thread; start it with ``serve_forever``."""

import gc
import resource
from collections.abc import Callable

import msgspec

from withstand.errors import UsageError
from withstand.testing.truth import routes
from withstand.testing.truth.asked import Asked, Body, Play, altered, beside, length, prompt_tokens, texts
from withstand.testing.truth.behaviours import chosen, style_of
from withstand.testing.truth.clockwork import Clockwork
from withstand.testing.truth.config import MODEL, Config
from withstand.testing.truth.connection import Connection
from withstand.testing.truth.incoming import HttpRequest
from withstand.testing.truth.listener import Listener
from withstand.testing.truth.player import Player, Slots
from withstand.testing.truth.right import right_log
from withstand.testing.truth.score import Score
from withstand.testing.truth.served import Came, Entry, decode_log, encode_log
from withstand.testing.truth.style import Refusal, Style
from withstand.testing.truth.told import promised, score

_decode_body = msgspec.json.Decoder(Body).decode


def serve_forever(config: Config, ready: Callable[[str], None]) -> None:
    """Serve until interrupted; ``ready`` gets the base URL.

    Raises:
        UsageError: the certificate cannot be used.
        UsageError: the address cannot be had.
    """
    clockwork = Clockwork()
    server = Server(config, clockwork)
    try:
        prepare_process()
        ready(server.base_url)
        clockwork.run()
    except KeyboardInterrupt:
        return
    finally:
        server.close()
        clockwork.close()


class Server:
    """Takes connections on a clockwork of the caller's."""

    def __init__(self, config: Config, clockwork: Clockwork) -> None:
        self._config = config
        self._clockwork = clockwork
        self._play = Play(config.schedule)
        self._slots = Slots(config.slots)
        self._log: list[Entry] = []
        self._listener = Listener(config, clockwork, self._answer, self._slots.leave)

    @property
    def base_url(self) -> str:
        """Where a client finds it."""
        return self._listener.base_url

    def truth(self) -> bytes:
        """The log as JSON, the unfinished too."""
        return encode_log(self._log)

    def right(self) -> bytes:
        """What a right client reports, as JSON."""
        return msgspec.json.encode(right_log(decode_log(self.truth())))

    def reset(self) -> None:
        """An empty log; numbers begin at 0 again."""
        self._log = []
        gc.collect()

    def play(self, text: str) -> None:
        """From now on answer as ``ttft=30,behaviour=crlf`` says, and as configured where it says nothing.

        Raises:
            UsageError: it cannot be understood.
        """
        self._play = altered(Play(self._config.schedule), text)

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    # Answering.

    def _answer(self, connection: Connection, request: HttpRequest) -> None:
        kind = routes.completion_kind(request)
        if kind is None:
            self._perform(connection, request, None, self._other(request))
            return
        entry = Entry(
            number=len(self._log),
            request_id=request.headers.get("x-request-id"),
            path=request.path,
            connection=connection.number,
            connection_request=connection.requests - 1,
            accepted_ns=connection.accepted_ns,
            arrival_ns=request.arrival_ns,
            complete_ns=request.complete_ns,
            received_ns=request.received_ns,
            came=Came(request.version, request.headers, request.body) if self._config.keep_requests else None,
        )
        self._log.append(entry)
        self._perform(connection, request, entry, self._completion(request, entry, chat=kind == "chat"))

    def _other(self, request: HttpRequest) -> Score:
        if request.path == "/truth":
            return self._refused(request, Refusal(200, "application/json", self.truth()))
        if request.path == "/truth/right":
            return self._refused(request, Refusal(200, "application/json", self.right()))
        if request.path == "/truth/reset" and request.method == "POST":
            self.reset()
            return self._refused(request, Refusal(200, "application/json", b"{}"))
        told = routes.refused_by_key(request, self._config) or routes.answer(request, self._config)
        return self._refused(request, told)

    def _completion(self, request: HttpRequest, entry: Entry, *, chat: bool) -> Score:
        if told := routes.refused_by_key(request, self._config):
            return self._refused(request, told, entry.number)
        try:
            body = _decode_body(request.body)
            self._describe(request, body, entry)
            if told := routes.refused_by_model(body, self._config):
                return self._refused(request, told, entry.number)
            return self._played(request, body, entry, chat=chat)
        except (msgspec.DecodeError, UnicodeDecodeError, UsageError) as e:
            return self._refused(request, routes.refusal(400, str(e), "BadRequestError"), entry.number)

    def _describe(self, request: HttpRequest, body: Body, entry: Entry) -> None:
        entry.model = body.model
        entry.stream = bool(body.stream)
        entry.prompt_chars = sum(map(len, texts([body.prompt, body.messages])))
        entry.prompt_tokens = prompt_tokens(body)
        if self._config.keep_bodies:
            entry.body = msgspec.json.decode(request.body)

    def _played(self, request: HttpRequest, body: Body, entry: Entry, *, chat: bool) -> Score:
        _, _, told = (body.model or "").partition(":")
        play = altered(self._play, told if "=" in told else "")  # others have colons in their names too: llama3.2:1b
        play = altered(play, request.headers.get("x-truth", ""))
        play = beside(play, len(self._slots), self._config.batch)
        entry.behaviour = self._behaviour(request, play, entry.number)
        tokens, finish_reason = length(body, play)
        options = body.stream_options
        asked = Asked(
            number=entry.number,
            chat=chat,
            stream=entry.stream,
            usage=bool(options and options.include_usage),
            usage_always=bool(options and options.continuous_usage_stats),
            model=body.model or MODEL,
            prompt_tokens=entry.prompt_tokens,
            tokens=tokens,
            finish_reason=finish_reason,
            schedule=play.schedule,
            keep_alive=request.keep_alive,
        )
        style = style_of(entry.behaviour)
        if request.version == "1.0" and entry.stream:
            style = style.unchunked()
        promise = promised(asked, style)
        entry.tokens_planned, entry.usage_planned = promise.tokens, promise.usage_tokens
        entry.finish_planned, entry.streamed = promise.finish_reason, promise.streamed
        return score(asked, style)

    def _behaviour(self, request: HttpRequest, play: Play, number: int) -> str:
        if routes.is_moved(request):
            return "plain"
        if play.behaviour is not None:
            return play.behaviour
        if isinstance(self._config.behaviour, str):
            return self._config.behaviour
        return chosen(self._config.behaviour, self._config.seed, number)

    def _refused(self, request: HttpRequest, told: Refusal, number: int = 0) -> Score:
        asked = Asked(
            number=number,
            chat=True,
            stream=False,
            tokens=0,
            schedule=self._play.schedule,
            keep_alive=request.keep_alive,
        )
        return score(asked, Style(refusal=told))

    def _perform(self, connection: Connection, request: HttpRequest, entry: Entry | None, told: Score) -> None:
        """Whatever is no model's answer needs no slot."""
        player = Player(self._clockwork, told, entry, connection.put, connection.conclude)
        connection.player = player
        if entry is not None and told.status == 200:
            self._slots.enter(player, request.complete_ns)
        else:
            player.start(request.complete_ns)


def prepare_process() -> None:
    """As many connections as the system lets us have, and no pauses.

    A garbage collection would make a token late, and nothing here makes cycles that live long.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        return  # macOS says unlimited and takes less
