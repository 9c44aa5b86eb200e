"""Which requests of a disaggregated model are split, and in which style."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from withstand.gateway.config import Style
from withstand.gateway.disaggregation import bodies
from withstand.gateway.disaggregation.bodies import Whole
from withstand.gateway.disaggregation.bootstrap import Bootstrap
from withstand.gateway.disaggregation.nixl import Nixl
from withstand.gateway.disaggregation.split import Split
from withstand.gateway.routes import Route

if TYPE_CHECKING:
    from withstand.gateway.house import House
    from withstand.gateway.passage import Passage
    from withstand.gateway.roster import Model

_SPLIT = frozenset(("/v1/chat/completions", "/v1/completions"))
_GENERATING = _SPLIT | {"/v1/responses", "/v1/messages"}
_STYLES: Mapping[Style, type[Split]] = {"vllm_nixl": Nixl, "sglang": Bootstrap}


def split_of(
    house: "House", passage: "Passage", model: "Model", route: Route, before: Split | None = None
) -> Split | None:
    """None where nothing is prefilled: an ordinary model, or a route that generates nothing.

    ``before`` is the request's split until now, which stays unless the model's parts come together in another way.

    Raises:
        ValueError: the body's fields cannot be read.
    """
    if before is not None and not before.is_outdated:
        return before
    told = model.disaggregation
    if told is None or model.prefill is None or route.path not in _GENERATING:
        return None
    body = passage.outgoing.body
    split = _STYLES[told.style](house, passage, model)
    if route.path not in _SPLIT:
        split.be_whole(Whole.ROUTE)
    elif len(body) < told.min_prompt_bytes:
        split.be_whole(Whole.SHORT)
    elif told.style == "vllm_nixl" and (reason := bodies.why_whole(body)) is not None:
        split.be_whole(reason)
    return split
