"""Options → Plan. Pure: what was typed is laid over the plan file's raw tree, which ``spec`` then checks.

What is typed wins. Rates and concurrencies make stages, which take the place of the file's; where the file has a
single stage, it is the pattern for them.
"""

import copy
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from withstand.cli.price import put_price
from withstand.errors import UsageError
from withstand.spec import CONCURRENCY_MAX, Plan, Workload, parse_plan, precision_of, set_path
from withstand.spec.arrivals import RATE_MAX, RATE_MIN
from withstand.spec.mistake import of_file, of_typed

Tree = dict[str, Any]
_Number = TypeVar("_Number", int, float)

_TOP = {name: name for name in ("seed", "num_warmups", "workers", "fleet", "budget_s", "output_dir", "doctor")}
_TARGET = {
    name: name
    for name in (
        "base_url",
        "backend",
        "endpoint",
        "model",
        "api_key_env",
        "api_key_file",
        "cacert",
        "insecure",
        "preconnect",
    )
}
_WATCH = {"metrics_url": "urls", "scrape_interval": "interval_s"}
_WORKLOAD = {"dataset_name": "dataset", "dataset_path": "path", "num_prompts": "num_prompts", "tokenizer": "tokenizer"}
_DATASET = Workload().dataset
_LENGTHS = {name: name for name in ("input_len", "output_len")}
_END = {"duration": "duration_s", "num_prompts": "num_prompts"}
_LIMITS = ("ttft", "tpot", "e2el")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*+[=:]\s*+(.*)")


def build_plan(options: Mapping[str, Any], from_file: Tree, file: Path | None = None) -> Plan:
    """The plan that the options and the file's tree (empty where there is no file) ask for.

    Raises:
        UsageError: an option or a field cannot be understood; the text names it.
    """
    with of_file(file) if file else nullcontext():
        parse_plan(from_file)  # from here on, every table in it is one
    tree = copy.deepcopy(from_file)
    _put(tree, options, _TOP)
    put_price(tree, options)
    if options.get("same_prompts"):
        tree["salt"] = ""
    for target in _targets(tree, options):
        _put(target, options, _TARGET)
        _add_headers(target, options.get("header") or ())
    _put(tree.setdefault("watch", {}), {**options, "metrics_url": options.get("metrics_url") or None}, _WATCH)
    tree["stages"] = _stages(tree.get("stages") or [{}], options)
    for rates in tree.get("rates", []):
        _put(rates, options, {"duration": "duration_s"})
    _forget_others(tree, options)
    for workload in _workloads(tree):
        _put(workload, options, _WORKLOAD)
        _put(workload.setdefault("options", {}), options, _LENGTHS)
    for text in options.get("goodput") or ():
        tree.setdefault("goodput", {}).update([_limit(text)])
    if options.get("precisions"):
        precise = [msgspec.to_builtins(precision_of(text)) for text in options["precisions"]]
        for stage in tree["stages"]:
            stage.setdefault("until", {})["precise"] = precise
    if options.get("find_limit"):
        tree.setdefault("find_limit", {}).update(options["find_limit"])
    for assignment in options.get("set_path") or ():
        set_path(tree, assignment)
    with of_typed():
        return parse_plan(tree)


def loads_as(plan: Plan, from_file: Tree) -> bool:
    """Whether what is sent is the file's alone, and nothing of it was typed."""
    own = parse_plan(from_file)
    return (plan.workload, plan.stages) == (own.workload, own.stages)


def _put(table: Tree, options: Mapping[str, Any], names: Mapping[str, str]) -> None:
    """Those of the options that were given, under the names of their fields; a plan is text, and so are its paths."""
    given = {field: options[name] for name, field in names.items() if options.get(name) is not None}
    table.update({field: str(value) if isinstance(value, Path) else value for field, value in given.items()})


def _add_headers(target: Tree, texts: Sequence[str]) -> None:
    for text in texts:
        match = _HEADER.fullmatch(text)
        if not match:
            raise UsageError("--header: write it as NAME=VALUE, or as 'NAME: VALUE'.")
        target.setdefault("headers", {})[match[1]] = match[2]


def _targets(tree: Tree, options: Mapping[str, Any]) -> list[Tree]:
    """The plan's, and each of several: what is typed wins over all."""
    several = list(tree.get("targets", {}).values())
    if several and options.get("base_url") is not None:
        names = ", ".join(tree["targets"])
        raise UsageError(f"--base-url: the plan has several targets ({names}); give --set targets.NAME.base_url=URL.")
    return [tree.setdefault("target", {}), *several]


def _workloads(tree: Tree) -> Iterator[Tree]:
    """The plan's, and those that stages have for themselves."""
    yield tree.setdefault("workload", {})
    yield from tree.get("workloads", {}).values()
    stages = [*tree["stages"], *tree.get("rates", [])]
    yield from (stage["workload"] for stage in stages if stage.get("workload") is not None)


def _forget_others(tree: Tree, options: Mapping[str, Any]) -> None:
    """The file's options and path are of the file's dataset: one that is typed has others."""
    typed = options.get("dataset_name")
    if typed is None:
        return
    common = tree.get("workload", {}).get("dataset")
    for workload in _workloads(tree):
        named = workload.get("dataset", common)
        if typed != (named or _DATASET):
            workload.pop("options", None)
            if named:  # else the path was written for what is typed
                workload.pop("path", None)


def _limit(text: str) -> tuple[str, float]:
    name, _, limit = text.partition(":")
    limit_ms = _float(limit)
    if name not in _LIMITS or not 0 < limit_ms < math.inf:
        raise UsageError(f"--goodput: {text!r} is no limit; write ttft:MS, tpot:MS or e2el:MS, such as ttft:500.")
    return name, limit_ms


# Stages.


def _stages(from_file: list[Tree], options: Mapping[str, Any]) -> list[Tree]:
    rates = _numbers("--request-rate", options.get("request_rate"), _rate)
    caps = _numbers("--max-concurrency", options.get("max_concurrency"), _cap)
    shape = _shape(options.get("burstiness"), rates)
    stages = _crossed(from_file, rates, caps, shape) if rates or caps else from_file
    for stage in stages:
        if not stage.get("warmup") and not stage.get("cold"):
            _put(stage, options, _END)
    return stages


def _crossed(from_file: list[Tree], rates: list[float], caps: list[int], shape: float) -> list[Tree]:
    """A stage for each pair of a rate and a concurrency; where only one of them is given, for each of those."""
    pattern = from_file[0] if len(from_file) == 1 else {}
    any_rate: Sequence[float | None] = rates or [None]
    any_cap: Sequence[int | None] = caps or [None]
    pairs = itertools.product(any_rate, any_cap)
    return [copy.deepcopy(pattern) | _load(rate, cap, shape) for rate, cap in pairs]


def _load(rate: float | None, cap: int | None, shape: float) -> Tree:
    load: Tree = {"name": _name(rate, cap)}
    if rate is not None:
        load["arrivals"] = _arrivals(rate, shape)
    if cap is not None:
        load["max_concurrency"] = cap
    return load


def _name(rate: float | None, cap: int | None) -> str:
    """``rate-4``, ``concurrency-8``, ``rate-4-concurrency-8``; ``inf`` says something only where it stands alone."""
    parts = [f"rate-{rate:.12g}"] if rate is not None and rate < math.inf else []
    parts += [f"concurrency-{cap}"] if cap is not None else []
    return "-".join(parts) or "inf"


def _arrivals(rate: float, shape: float) -> Tree:
    if rate == math.inf:
        return {"kind": "inf"}
    if shape == 1:
        return {"kind": "poisson", "rate": rate}
    return {"kind": "gamma", "rate": rate, "burstiness": shape}


def _shape(burstiness: float | None, rates: list[float]) -> float:
    if burstiness is None:
        return 1.0
    if not 0 < burstiness < math.inf:
        raise UsageError(f"--burstiness: {burstiness:g} is no shape; give a number above 0, 1 for Poisson arrivals.")
    if not any(rate < math.inf for rate in rates):
        raise UsageError("--burstiness shapes the arrivals of a --request-rate; give one that is not inf.")
    return burstiness


# Numbers.


def _numbers(option: str, text: str | None, parse: Callable[[str], _Number | None]) -> list[_Number]:
    """A list with commas in between; none of them twice, for stages have names."""
    numbers: list[_Number] = []
    for part in text.split(",") if text is not None else []:
        number = parse(part)
        if number is None:
            raise UsageError(f"{option}: {part.strip()!r} is not understood; {_WANTED[option]}.")
        if number in numbers:
            raise UsageError(f"{option}: {part.strip()} stands there twice; give each once.")
        numbers.append(number)
    return numbers


_WHOLE = re.compile("[0-9]{1,20}")
_WANTED = {
    "--request-rate": "give requests a second, from 0.000001 to 1e9, or inf; several with commas, such as 1,2,4",
    "--max-concurrency": "give a whole number from 1 to 1,000,000; several with commas, such as 1,8,64",
}


def _rate(text: str) -> float | None:
    rate = _float(text)
    return rate if RATE_MIN <= rate <= RATE_MAX or (rate == math.inf and "inf" in text.lower()) else None


def _cap(text: str) -> int | None:
    text = text.strip()
    return int(text) if _WHOLE.fullmatch(text) and 0 < int(text) <= CONCURRENCY_MAX else None


def _float(text: str) -> float:
    """NaN where it is no number: it compares as false with everything."""
    try:
        return float(text)
    except ValueError:
        return math.nan
