"""An engine of a few lines with vLLM's names: ``python vllm_like.py PORT`` streams answers, and its counters grow."""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKENS = 8
_MODEL = '{model_name="m",engine="0"}'


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answered = 0

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            self._whole("application/json", json.dumps({"object": "list", "data": [{"id": "m", "object": "model"}]}))
        else:
            self._whole("text/plain", _metrics(_Answer.answered) if self.path == "/metrics" else "")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for i in range(TOKENS):
            time.sleep(0.005)
            self._event({"choices": [{"index": 0, "delta": {"content": f"t{i} "}, "finish_reason": None}]})
        self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})
        usage = {"prompt_tokens": 8, "completion_tokens": TOKENS, "total_tokens": 8 + TOKENS}
        self._event({"choices": [], "usage": usage})
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")
        _Answer.answered += 1

    def _event(self, more: dict[str, object]) -> None:
        event = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", **more}
        self._chunk(b"data: " + json.dumps(event).encode() + b"\n\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _whole(self, kind: str, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


def _metrics(n: int) -> str:
    gauges = {"num_requests_running": 1, "num_requests_waiting": 2, "gpu_cache_usage_perc": 0.25}  # one of them is dead
    counters = {
        "generation_tokens_total": n * TOKENS,
        "num_preemptions_total": 0,
        "prefix_cache_queries_total": 8 * n,
        "prefix_cache_hits_total": 4 * n,
    }
    means_s = {
        "time_to_first_token_seconds": 0.004,
        "request_queue_time_seconds": 0.001,
        "request_prefill_time_seconds": 0.003,
        "nixl_xfer_time_seconds": 0.01,
        "nixl_bytes_transferred": 1e6,
    }
    values = gauges | counters
    for name, mean in means_s.items():
        values |= {f"{name}_sum": mean * n, f"{name}_count": n}
    return "".join(f"vllm:{name}{_MODEL} {value}\n" for name, value in values.items())


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), _Answer).serve_forever()
