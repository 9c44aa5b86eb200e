"""The edge as a process: nginx, with all that it reads and writes in the stack's folder. Pure."""

from withstand.spec.stack import Edge
from withstand.stack.blueprint import Place, Process, upkeep_of
from withstand.stack.nginx import Behind, nginx_conf
from withstand.stack.ports import HOST

EDGE, EDGE_STATUS = "edge", "edge-status"
NGINX = "nginx"
_CONF = "edge.conf"
REASON = r"nginx: \[emerg\] (.+)|\[emerg\] \d+#\d+: (?:\*\d+ )?(.+)"
"""How it says why it does not start: on its terminal, or in its log."""


def edge(
    told: Edge, place: Place, needs: tuple[str, ...], upstreams: tuple[str, ...], agents: tuple[str, ...] = ()
) -> Process:
    """Nginx in front of ``upstreams`` and of the gateways that it names itself; ``agents`` have a path of their own.

    Raises:
        SpecError: an upstream is no plain HTTP address.
    """
    port, status = place.ports[EDGE], place.ports[EDGE_STATUS]
    behind = Behind((*upstreams, *told.gateways), agents)
    conf = nginx_conf(told, behind, (port, status), root=place.is_root, cores=place.threads)
    return Process(
        name=EDGE,
        kind=NGINX,
        argv=(place.programs[NGINX], "-e", "stderr", "-p", f"{place.folder}/", "-c", str(place.folder / _CONF)),
        env=told.env,
        port=port,
        scheme="https" if told.tls else "http",
        health=f"http://{HOST}:{status}/health",
        needs=needs,
        files={_CONF: conf},
        upkeep=upkeep_of(told),
        reason=REASON,
    )
