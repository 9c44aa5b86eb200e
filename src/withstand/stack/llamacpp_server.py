"""The child: llama.cpp's OpenAI server until the parent lets go. ``python -m withstand.stack.llamacpp_server --help``.

Unless it is asked to, it keeps one request from helping the next: every prompt is computed, so a figure does not depend
on what ran before.
"""

import argparse
import signal
import sys
from typing import Any

from withstand.stack.lifeline import end_with_parent

_WARNINGS = 2


def main() -> None:
    """Serve."""
    end_with_parent()
    asked = _parser().parse_args()
    try:
        import xllamacpp  # noqa: PLC0415 - the extra `engine`
    except ImportError as e:
        sys.exit(f"xllamacpp cannot be loaded: {e}. It needs libgomp (Debian: apt-get install libgomp1).")
    try:
        server = xllamacpp.Server(_params(xllamacpp.CommonParams(), asked))
    except RuntimeError as e:  # llama.cpp has written the reason itself
        sys.exit(f"llama.cpp does not start: {e}")
    while server:  # it serves for as long as the object lives
        signal.pause()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="llamacpp_server", description="llama.cpp's OpenAI server.")
    parser.add_argument("--model", required=True, help="a GGUF file")
    parser.add_argument("--alias", required=True, help="the name that the model is served under")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--parallel", type=int, default=16, help="requests computed at once; the others wait")
    parser.add_argument("--context", type=int, default=32_768, help="tokens over all parallel requests")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--prefix-caching", action="store_true", help="keep a prompt for the next that begins like it")
    return parser


def _params(params: Any, asked: argparse.Namespace) -> Any:
    params.model.path = asked.model
    params.model_alias = {asked.alias}
    params.hostnames = [asked.host]
    params.port = asked.port
    params.n_parallel = asked.parallel
    params.n_ctx = asked.context
    params.cpuparams.n_threads = asked.threads
    params.cpuparams_batch.n_threads = asked.threads
    params.cont_batching = True
    params.use_jinja = True
    params.endpoint_metrics = True
    params.ui = False
    params.cors_origins = f"http://{asked.host}"  # a web page in the user's browser has no business here
    params.verbosity = _WARNINGS
    return params if asked.prefix_caching else _without_memory(params)


def _without_memory(params: Any) -> Any:
    """Nothing of one prompt is kept for the next: no prefix, no checkpoint, no slot chosen for its likeness."""
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.cache_idle_slots = False
    params.n_ctx_checkpoints = 0
    params.slot_prompt_similarity = 0.0
    return params


if __name__ == "__main__":
    main()
