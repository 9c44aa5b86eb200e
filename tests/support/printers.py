"""Printed results of other tools, written from a known truth: blocks and tables, as terminals, logs and people leave them."""

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from truth import Sample, Sheet, Truth, truths

Draw = st.DrawFn
_METRICS = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2el": "E2EL"}
_SECTIONS = {"ttft": "Time to First Token", "tpot": "Time per Output Token (excl. 1st token)",
             "itl": "Inter-token Latency", "e2el": "End-to-end Latency"}  # fmt: skip
_PREFIXES = (
    "",
    "  ",
    "    | ",
    "INFO 01-02 03:04:0{} serve.py:12] ",
    "(APIServer pid=1{}2) ",
    "[bench 1{}] ",
    "> ",
    "# ",
)
_NOISE = ("", 'INFO:     127.0.0.1:4 - "POST /v1/completions HTTP/1.1" 200 OK', "\x1b[36m(EngineCore pid=7)\x1b[0m ok",
          "100%|██████████| 10/10 [00:00<00:00,  9.81it/s]", "Progress:  50%|█\rProgress: 100%|██")  # fmt: skip


def _line(label: str, value: object) -> str:
    return f"{label + ':':<40} {value:<10}"


def _section(name: str) -> str:
    return f"{name:-^50}"


def block(draw: Draw, truth: Truth, sheet: Sheet) -> list[str]:
    """vLLM's or SGLang's, of any year: lines may be missing, and unknown ones between."""
    sglang = draw(st.booleans())
    names = {**_METRICS, "e2el": "E2E Latency"} if sglang else _METRICS
    lines = [_line("Backend", "sglang"), _line("Traffic request rate", truth.rate or float("inf"))] if sglang else []
    lines += [_line("Successful requests", sheet.count("completed", truth.completed))]
    if not sglang and draw(st.booleans()):
        lines.append(_line("Failed requests", sheet.count("failed", truth.failed)))
    if not sglang and truth.rate and draw(st.booleans()):
        lines.append(_line("Request rate configured (RPS)", f"{truth.rate:.2f}"))
    lines.append(_line("Benchmark duration (s)", f"{sheet.put('duration_s', truth.duration_s, 2):.2f}"))
    if draw(st.booleans()):
        lines.append(_line("Total input tokens", sheet.count("total_input_tokens", truth.input_tokens)))
        lines.append(_line("Total generated tokens", sheet.count("total_output_tokens", truth.output_tokens)))
    lines.append(_line("Output token throughput (tok/s)", _two(sheet, "output_throughput", truth.per_second(truth.output_tokens) + 1)))  # fmt: skip
    lines.append(_line("Some line of a fork (tok/s)", "12.34"))
    for name in draw(st.lists(st.sampled_from(list(names)), unique=True)):
        lines += [_section(_SECTIONS[name]), *_times(sheet, name, names[name], truth)]
    return [f"{' Serving Benchmark Result ':=^50}", *lines, "=" * 50]


def _times(sheet: Sheet, name: str, label: str, truth: Truth) -> list[str]:
    words = {"mean": "Mean", "p50": "Median", "std": "Std", "p90": "P90", "p99": "P99"}
    of = getattr(truth, name)
    return [
        _line(f"{word} {label} (ms)", _two(sheet, f"{name}.{which}", getattr(of, which)))
        for which, word in words.items()
    ]


def _two(sheet: Sheet, name: str, value: float) -> str:
    return f"{sheet.put(name, value, 2):.2f}"


@st.composite
def blocks(draw: Draw) -> Sample:
    """Up to three of them in one text, under one prefix each, with what else was said."""
    parts, runs = [], []
    for truth in draw(st.lists(truths(), min_size=1, max_size=3)):
        sheet = Sheet()
        lines = block(draw, truth, sheet)
        lines = draw(st.sampled_from(_DRESSES))(draw, lines)
        parts += [*draw(st.lists(st.sampled_from(_NOISE), max_size=2)), *lines]
        runs.append(sheet.known)
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return Sample(end.join([*parts, ""]), tuple(runs))


def _plain(draw: Draw, lines: Sequence[str]) -> list[str]:
    return [line.rstrip() if draw(st.booleans()) else line for line in lines]


def _prefixed(draw: Draw, lines: Sequence[str]) -> list[str]:
    prefix = draw(st.sampled_from(_PREFIXES))
    return [prefix.format(i % 10) + line for i, line in enumerate(lines)]


def _interrupted(draw: Draw, lines: Sequence[str]) -> list[str]:
    return [part for line in lines for part in (line, *draw(st.lists(st.sampled_from(_NOISE), max_size=1)))]


def _coloured(draw: Draw, lines: Sequence[str]) -> list[str]:
    return [f"\x1b[1m\x1b[38;5;4m{line}\x1b[0m" for line in lines]


_DRESSES: Sequence[Callable[[Draw, Sequence[str]], list[str]]] = (_plain, _prefixed, _interrupted, _coloured)


# Tables

_FRAMES = {
    "markdown": ("| ", " | ", " |"),
    "grid": ("| ", " | ", " |"),
    "box": ("│ ", " │ ", " │"),
    "heavy": ("┃ ", " ┃ ", " ┃"),
}


def _table(draw: Draw, rows: Sequence[Sequence[str]]) -> list[str]:
    kind = draw(st.sampled_from(list(_FRAMES)))
    left, between, right = _FRAMES[kind]
    body = [left + between.join(row) + right for row in rows]
    rule = {"markdown": "|---" * len(rows[0]) + "|", "grid": "+---" * len(rows[0]) + "+"}.get(kind, "├──┼──┤")
    return [body[0], rule, *body[1:]]


@st.composite
def genai_perf_tables(draw: Draw) -> Sample:
    """Thousands have commas, absent cells ``N/A``, and what has only one number has it under avg."""
    truth, sheet = draw(truths()), Sheet()
    rows = [["Statistic", "avg", "min", "p99", "p90"]]
    labels = {"Time to first token (ms)": "ttft", "Inter token latency (ms)": "tpot", "Request latency (ms)": "e2el"}
    for label, name in labels.items():
        of = getattr(truth, name)
        rows.append([label, *(f"{sheet.put(f'{name}.{w}', getattr(of, w), 2):,.2f}" if w else "N/A" for w in ("mean", "", "p99", "p90"))])  # fmt: skip
    rows.append(["Request throughput (per sec)", f"{sheet.put('request_throughput', truth.per_second(truth.completed), 2):,.2f}", "N/A", "N/A", "N/A"])  # fmt: skip
    rows.append(["Request count (count)", f"{sheet.count('completed', truth.completed):,}.00", "N/A", "N/A", "N/A"])
    return Sample("\n".join(["NVIDIA GenAI-Perf | LLM Metrics", *_table(draw, rows), ""]), (sheet.known,))


@st.composite
def evalscope_tables(draw: Draw) -> Sample:
    """Seconds, a summary and its percentiles."""
    truth, sheet = draw(truths()), Sheet()
    pairs = [["Key", "Value"], ["Time taken for tests (s)", f"{sheet.put('duration_s', truth.duration_s, 4):.4f}"],
             ["Succeed requests", str(sheet.count("completed", truth.completed))],
             ["Average time to first token (s)", f"{sheet.put('ttft.mean', truth.ttft.mean, 4, 1000.0):.4f}"]]  # fmt: skip
    listed = [["Percentiles", "TTFT (s)", "TPOT (s)", "Latency (s)"]]
    for which in ("p50", "p90", "p99"):
        cells = [f"{sheet.put(f'{name}.{which}', getattr(getattr(truth, name), which), 4, 1000.0):.4f}" for name in ("ttft", "tpot", "e2el")]  # fmt: skip
        listed.append([f"{which[1:]}%", *cells])
    return Sample(
        "\n".join([*_table(draw, pairs), "", "Percentile results:", *_table(draw, listed), ""]), (sheet.known,)
    )


@st.composite
def load_test_tables(draw: Draw) -> Sample:
    """A row a level; times in ms or s, counts as a share."""
    rows, runs = [["Concurrency", "OK", "TTFT p50", "TTFT p90", "Lat p90", "Total Tok/s"]], []
    for truth in draw(st.lists(truths(), min_size=1, max_size=3)):
        sheet = Sheet()
        rows.append([
            str(truth.concurrency or 1), f"{sheet.count('completed', truth.completed)}/{sheet.count('attempted', truth.attempted)}",
            f"{sheet.put('ttft.p50', truth.ttft.p50 + 1, 0):.0f}ms",
            f"{sheet.put('ttft.p90', truth.ttft.p90 + 1, 0):,.0f}ms",
            f"{sheet.put('e2el.p90', truth.e2el.p90 + 100, 1, 1000.0):.1f}s",
            f"{sheet.put('output_throughput', truth.per_second(truth.output_tokens), 1):.1f}",
        ])  # fmt: skip
        sheet.count("failed", truth.failed)
        runs.append(sheet.known)
    return Sample("\n".join(["## Results", *_table(draw, rows), ""]), tuple(runs))
