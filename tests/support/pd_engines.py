"""Prefill and decode engines that know their protocol, and refuse what is not in it: vLLM's handles, SGLang's rooms."""

import contextlib
import socket
import threading
from dataclasses import dataclass, field
from typing import Any

import msgspec

from engines import DONE, END, STREAM_HEAD, Seen, Talk, chunk, whole

EVENTS = [b'data: {"choices":[{"delta":{"content":"%d"}}]}\n\n' % i for i in range(3)]
ANSWER = b'{"choices":[{"message":{"content":"one two"}}],"usage":{"completion_tokens":2}}'
_raw_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_GLANCE_S = 0.02
_FLAGS = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}


def generate(talk: Talk, seen: Seen) -> None:
    """What a decode engine says when all is well."""
    if seen.json.get("stream"):
        talk.say(STREAM_HEAD, *[chunk(event) for event in EVENTS], chunk(DONE) + END)
    else:
        talk.say(whole(ANSWER))


def refuse(talk: Talk, *wrongs: str) -> None:
    talk.say(whole(msgspec.json.encode({"error": {"message": "; ".join(wrongs)}}), b"418 Wrong"))


@dataclass
class Nixl:
    """What vLLM's engines know of each other. ``handles`` are those that wait, with the request that they are of."""

    handles: dict[bytes, tuple[str | None, bytes]] = field(default_factory=dict)
    made: int = 0
    recomputed: int = 0
    """Requests whose prompt decode has had to compute itself."""

    def prefill(self, talk: Talk, seen: Seen) -> None:
        told = seen.json
        wrongs = [name for name in ("stream_options", "min_tokens", "stop") if name in told]
        wrongs += [f"{name} is not 1" for name in ("max_tokens", "max_completion_tokens") if told.get(name, 1) != 1]
        if told["stream"] is not False or "max_tokens" not in told or told["kv_transfer_params"] != _FLAGS:
            wrongs.append(f"no prefill: {told}")
        if wrongs:
            refuse(talk, *wrongs)
            return
        self.made += 1
        handle = b'{ "remote_num_tokens": 12345678901234567890123, "x": 1.50, "remote_request_id":"%d"}' % self.made
        self.handles[handle] = (seen.header("x-request-id"), bytes(_raw_fields(seen.body)["messages"]))
        talk.say(whole(b'{"choices":[{}], "kv_transfer_params" : %b }' % handle))

    def decode(self, talk: Talk, seen: Seen) -> None:
        fields = _raw_fields(seen.body)
        handle = fields.get("kv_transfer_params")
        if handle is None:
            self.recomputed += 1
            generate(talk, seen)
            return
        held = self.handles.pop(bytes(handle), None)
        if held is None:
            refuse(talk, "that handle was never given, or is used")
        elif held != (seen.header("x-request-id"), bytes(fields["messages"])):
            refuse(talk, "that handle is of another request")
        else:
            generate(talk, seen)


@dataclass
class Rooms:
    """Where SGLang's engines meet."""

    port: int = 8998
    _lock: threading.Condition = field(default_factory=threading.Condition)
    _there: dict[int, set[str]] = field(default_factory=dict)
    rooms: list[Any] = field(default_factory=list)

    def prefill(self, talk: Talk, seen: Seen) -> None:
        if self.meet(talk, seen, "prefill"):
            talk.say(whole(b'{"ignored":true}'))

    def decode(self, talk: Talk, seen: Seen) -> None:
        if self.meet(talk, seen, "decode"):
            generate(talk, seen)

    def meet(self, talk: Talk, seen: Seen, role: str) -> bool:
        """Wait for the other one in every room of a request."""
        told = seen.json
        host, port, room = (told.get(f"bootstrap_{name}") for name in ("host", "port", "room"))
        rooms = room if isinstance(room, list) else [room]
        same = [host, port] if not isinstance(room, list) else [host[0], port[0]]
        if same != ["127.0.0.1", self.port] or (isinstance(room, list) and not len(host) == len(port) == len(room)):
            refuse(talk, f"no meeting place: {host} {port} {room}")
            return False
        with self._lock:
            for each in rooms:
                there = self._there.setdefault(each, set())
                if role in there or not 0 <= each < 1 << 63:
                    refuse(talk, f"room {each} is known")
                    return False
                there.add(role)
            if role == "prefill":
                self.rooms.append(room)
            self._lock.notify_all()
            met = lambda: all(len(self._there[each]) == 2 for each in rooms)  # noqa: E731
            while not self._lock.wait_for(met, _GLANCE_S):
                if _has_left(talk):
                    seen.left.set()
                    return False
            return True


def _has_left(talk: Talk) -> bool:
    with contextlib.suppress(BlockingIOError):
        return not talk.sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    return False
