"""The embedded engine's process: ``python -m withstand.stack.llamacpp_server FILE PORT PARALLEL CONTEXT THREADS``.

It ends when its standard input does: whoever started it is gone then.
"""

import os
import signal
import sys

from withstand.stack.model import NAME

_CACHE_MIB = 256


def main(path: str, port: int, parallel: int, context: int, threads: int) -> None:
    """Serve until nobody holds our standard input any more."""
    import xllamacpp  # noqa: PLC0415 - an extra

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_parallel = parallel
    params.n_ctx = context
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.n_threads_http = 2 * parallel
    params.cont_batching = True
    params.use_jinja = True
    params.endpoint_metrics = True
    params.cache_prompt = False
    params.cache_ram_mib = _CACHE_MIB
    server = xllamacpp.Server(params)
    while os.read(sys.stdin.fileno(), 1):
        continue
    del server
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], *(int(word) for word in sys.argv[2:6]))
