"""Printed results of other tools, written from a known truth: blocks and tables, as terminals and logs have them."""

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from truth import Sample, Sheet, Truth, truths

Draw = st.DrawFn
_METRICS = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2el": "E2EL"}
_SECTIONS = {
    "ttft": "Time to First Token",
    "tpot": "Time per Output Token (excl. 1st token)",
    "itl": "Inter-token Latency",
    "e2el": "End-to-end Latency",
}
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
_NOISE = (
    "",
    'INFO:     127.0.0.1:4 - "POST /v1/completions HTTP/1.1" 200 OK',
    "\x1b[36m(EngineCore pid=7)\x1b[0m ok",
    "100%|██████████| 10/10 [00:00<00:00,  9.81it/s]",
    "Progress:  50%|█\rProgress: 100%|██",
)


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
    lines.append(_line("Benchmark duration (s)", sheet.cell("duration_s", truth.duration_s)))
    if draw(st.booleans()):
        lines.append(_line("Total input tokens", sheet.count("total_input_tokens", truth.input_tokens)))
        lines.append(_line("Total generated tokens", sheet.count("total_output_tokens", truth.output_tokens)))
    rate = sheet.cell("output_throughput", truth.per_second(truth.output_tokens) + 1)
    lines.append(_line("Output token throughput (tok/s)", rate))
    lines.append(_line("Some line of a fork (tok/s)", "12.34"))
    for name in draw(st.lists(st.sampled_from(list(names)), unique=True)):
        lines += [_section(_SECTIONS[name]), *_times(sheet, name, names[name], truth)]
    return [f"{' Serving Benchmark Result ':=^50}", *lines, "=" * 50]


def _times(sheet: Sheet, name: str, label: str, truth: Truth) -> list[str]:
    words = {"mean": "Mean", "p50": "Median", "std": "Std", "p90": "P90", "p99": "P99"}
    of = getattr(truth, name)
    return [
        _line(f"{word} {label} (ms)", sheet.cell(f"{name}.{which}", getattr(of, which)))
        for which, word in words.items()
    ]


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
        mean, p99, p90 = (sheet.cell(f"{name}.{w}", getattr(of, w), commas=True) for w in ("mean", "p99", "p90"))
        rows.append([label, mean, "N/A", p99, p90])
    rate = sheet.cell("request_throughput", truth.per_second(truth.completed), commas=True)
    rows.append(["Request throughput (per sec)", rate, "N/A", "N/A", "N/A"])
    rows.append(["Request count (count)", sheet.cell("completed", truth.completed, commas=True), "N/A", "N/A", "N/A"])
    return Sample("\n".join(["NVIDIA GenAI-Perf | LLM Metrics", *_table(draw, rows), ""]), (sheet.known,))


@st.composite
def evalscope_tables(draw: Draw) -> Sample:
    """Seconds, a summary and its percentiles."""
    truth, sheet = draw(truths()), Sheet()
    pairs = [
        ["Key", "Value"],
        ["Time taken for tests (s)", sheet.cell("duration_s", truth.duration_s, 4)],
        ["Succeed requests", str(sheet.count("completed", truth.completed))],
        ["Average time to first token (s)", sheet.cell("ttft.mean", truth.ttft.mean, 4, 1000.0)],
    ]
    listed = [["Percentiles", "TTFT (s)", "TPOT (s)", "Latency (s)"]]
    for which in ("p50", "p90", "p99"):
        times = {name: getattr(getattr(truth, name), which) for name in ("ttft", "tpot", "e2el")}
        cells = [sheet.cell(f"{name}.{which}", value, 4, 1000.0) for name, value in times.items()]
        listed.append([f"{which[1:]}%", *cells])
    lines = [*_table(draw, pairs), "", "Percentile results:", *_table(draw, listed), ""]
    return Sample("\n".join(lines), (sheet.known,))


@st.composite
def newer_evalscope_tables(draw: Draw) -> Sample:
    """Other names, ms where they say so, titles between the rows, and a metric a row."""
    truth, sheet = draw(truths()), Sheet()
    counts = [("attempted", truth.attempted), ("completed", truth.completed), ("failed", truth.failed)]
    pairs = [
        ["Metric", "Value"],
        ["── General ──", ""],
        ["Test Duration (s)", sheet.cell("duration_s", truth.duration_s)],
        ["Total / Success / Failed", " / ".join(str(sheet.count(name, value)) for name, value in counts)],
        ["── Latency ──", ""],
        ["Avg Latency (s)", sheet.cell("e2el.mean", truth.e2el.mean, 3, 1000.0)],
        ["Avg TTFT (ms)", sheet.cell("ttft.mean", truth.ttft.mean)],
    ]
    listed = [["Metric", "50%", "99%"]]
    for name, label in (("ttft", "TTFT (ms)"), ("itl", "ITL (ms)")):
        of = getattr(truth, name)
        listed.append([label, *(sheet.cell(f"{name}.{which}", getattr(of, which)) for which in ("p50", "p99"))])
    lines = [*_table(draw, pairs), "", "Percentile results:", *_table(draw, listed), ""]
    return Sample("\n".join(lines), (sheet.known,))


@st.composite
def load_test_tables(draw: Draw) -> Sample:
    """A row a level; times in ms or s, counts as a share."""
    rows, runs = [["Concurrency", "OK", "TTFT p50", "TTFT p90", "Lat p90", "Total Tok/s"]], []
    for truth in draw(st.lists(truths(), min_size=1, max_size=3)):
        sheet = Sheet()
        ok, asked = sheet.count("completed", truth.completed), sheet.count("attempted", truth.attempted)
        first, tail = (sheet.cell(f"ttft.{w}", getattr(truth.ttft, w) + 1, 0, commas=True) for w in ("p50", "p90"))
        whole = sheet.cell("e2el.p90", truth.e2el.p90 + 100, 1, 1000.0)
        speed = sheet.cell("output_throughput", truth.per_second(truth.output_tokens), 1)
        rows.append([str(truth.concurrency or 1), f"{ok}/{asked}", f"{first}ms", f"{tail}ms", f"{whole}s", speed])
        sheet.count("failed", truth.failed)
        runs.append(sheet.known)
    return Sample("\n".join(["## Results", *_table(draw, rows), ""]), tuple(runs))


_PARTS = ("Comp", "Inc", "Err")


@st.composite
def guidellm_tables(draw: Draw) -> Sample:
    """0.2 and 0.3: headers over two lines; a terminal of 80 columns wraps every line."""
    truth, sheet = draw(truths()), Sheet()
    kind = f"constant@{truth.rate:.2f}" if truth.rate else f"concurrent@{truth.concurrency}"
    counts = [("completed", truth.completed), ("incomplete", 0), ("failed", truth.failed)]
    info = [
        kind,
        "16:59:28",
        "16:59:58",
        sheet.cell("duration_s", truth.duration_s, 1),
        *(str(sheet.count(name, value)) for name, value in counts),
        *["7.0", "0.0", "0.0"] * 4,
    ]
    stats = [
        kind,
        sheet.cell("request_throughput", truth.answer + 0.25),
        sheet.cell("concurrency_mean", 3.5),
        sheet.cell("output_throughput", truth.answer + 0.5, 1),
        "9.9",
    ]
    for name, digits, scale in (("e2el", 2, 1000.0), ("ttft", 1, 1.0), ("tpot", 1, 1.0)):
        of = getattr(truth, name)
        stats += [sheet.cell(f"{name}.{w}", getattr(of, w) + 100, digits, scale) for w in ("mean", "p50", "p99")]
    stats += ["1.1", "2.2", "3.3"]
    header = ["Benchmark", "Per Second", "Concurrency", "mean", "mean", *["mean", "median", "p99"] * 4]
    width = draw(st.sampled_from([80, 100, 1000]))
    lines = [
        *_ruled("Benchmarks Info:", ["Benchmark", "Start Time", "End Time", "Duration (s)", *_PARTS * 5], info, width),
        *_ruled("Benchmarks Stats:", header, stats, width),
    ]
    return Sample("\n".join([*lines, ""]), (sheet.known,))


def _ruled(title: str, header: Sequence[str], row: Sequence[str], width: int) -> list[str]:
    widths = [max(len(a), len(b)) for a, b in zip(header, row, strict=True)]
    drawn = ["| ".join(cell.rjust(w) for cell, w in zip(cells, widths, strict=True)) for cells in (header, row)]
    rule = "|-".join("-" * w for w in widths)
    lines = ["Metadata |||| Requests ||", drawn[0], rule, drawn[1]]
    double = ["=" * width] * 2
    return [title, *double, *(piece for line in lines for piece in _wrapped(line, width)), *double, ""]


def _wrapped(line: str, width: int) -> list[str]:
    """As rich breaks lines: at the last blank before the edge, else anywhere."""
    pieces = []
    while len(line) > width:
        at = line.rfind(" ", 0, width) + 1 or width
        pieces.append(line[:at].ljust(width))
        line = line[at:]
    return [*pieces, line]
