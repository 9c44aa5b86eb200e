"""A fitted model of an engine → text for people, and the file that a simulated engine reads."""

from collections.abc import Iterator

import msgspec

from withstand.sim.fit import Fit, Held


def fit_text(fit: Fit) -> str:
    """The parameters with their intervals, how far off they are, and what could not be told."""
    return "\n".join(_lines(fit)) + "\n"


def _lines(fit: Fit) -> Iterator[str]:
    yield f"A simulated engine, from {fit.answers:,} answers ({fit.alone:,} prompts had the engine for themselves)"
    yield "  a step = step_ms + sequence_ms x sequences that decode + prefill_token_ms x prompt tokens in it"
    for name, found in fit.coefficients.items():
        untold = "   not told: 0 is taken" if found.value < 0 else ""
        yield f"  {name:<18} {found.value:10.4f}   95 %: {found.low:.4f} to {found.high:.4f}{untold}"
    p = fit.parameters
    yield f"  {'max_sequences':<18} {p.max_sequences:10,}"
    yield f"  {'kv_blocks':<18} {p.kv_blocks:10,}   of {p.block_tokens} tokens: {p.kv_tokens:,}"
    if p.template_tokens:
        yield f"  {'template_tokens':<18} {p.template_tokens:10,}   that the chat template adds to each prompt"
    yield f"  off by (median):   TPOT {_share(fit.tpot_off)}, TTFT alone {_share(fit.ttft_off)}"
    if fit.held:
        yield "Each stage by the model of the others, with its own arrivals or users (means in ms)"
        for held in fit.held:
            yield f"  {held.stage:<18} {_pair('TTFT', held.ttft_ms, held.ttft_said_ms)}   {_tpot(held)}"
    yield from fit.notices


def _tpot(held: Held) -> str:
    if held.tpot_ms is None or held.tpot_said_ms is None:
        return "TPOT -"
    return _pair("TPOT", held.tpot_ms, held.tpot_said_ms)


def _pair(name: str, seen: float, said: float) -> str:
    return f"{name} {seen:.2f}, predicted {said:.2f} ({100 * (said / seen - 1):+.1f} %)"


def _share(share: float | None) -> str:
    return "not known" if share is None else f"{100 * share:.1f} %"


def fit_toml(fit: Fit) -> str:
    """For ``[engines.NAME] kind = "sim", model = FILE``."""
    lines = ["# A simulated engine, written by `withstand fit`. What it answers is no measurement of anything."]
    for name, value in msgspec.to_builtins(fit.parameters).items():
        lines.append(f"{name} = {str(value).lower() if isinstance(value, bool) else repr(value)}")
    lines += ["", "[fit]", f"answers = {fit.answers}", f"alone = {fit.alone}"]
    for name, share in (("tpot_off", fit.tpot_off), ("ttft_off", fit.ttft_off)):
        if share is not None:
            lines.append(f"{name} = {share!r}")
    lines += [f"{name} = [{found.low!r}, {found.high!r}]  # 95 %" for name, found in fit.coefficients.items()]
    return "\n".join(lines) + "\n"
