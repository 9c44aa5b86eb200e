"""The printed "Serving Benchmark Result" in the shapes that people paste it in."""

from pathlib import Path

import pytest

from foreign import VLLM_BLOCK, one, several
from withstand.app.report import load_run
from withstand.cli.block import stage_block
from withstand.cli.output import rendered
from withstand.errors import FormatError
from withstand.interop.read import read_text
from withstand.report.terminal import print_report

OURS = Path(__file__).parents[1] / "runs" / "samples" / "schema-2"


def test_a_block_gives_its_numbers_and_no_others() -> None:
    run = one(VLLM_BLOCK)
    assert (run.source.tool, run.facts) == ("vLLM", None)
    assert run.numbers["completed"] == 90
    assert run.numbers["output_throughput"] == 150.0
    assert run.stats["ttft"].mean == 52.5
    assert run.stats["ttft"].percentiles == {"p50": 50.0, "p99": 80.25}
    assert run.conditions.request_rate == 5.0
    assert run.conditions.max_concurrency == 8
    assert "e2el" not in run.stats, "a section that is missing is no 0"
    assert len(run.shown) == 19


def test_our_own_text_is_ours() -> None:
    """The block is the same to the letter; ``withstand run > run.log`` was taken for vLLM's."""
    summary = load_run(OURS).summary
    report = rendered(lambda console: print_report(summary, console))
    for ours in (stage_block(summary.stages[0], "sglang"), stage_block(summary.stages[0])):
        assert one(f"{ours}\n\n{report}").source.tool == "withstand"
    assert one(VLLM_BLOCK).source.tool == "vLLM"
    both = several(f"{VLLM_BLOCK}\n{ours}\n")
    assert [run.source.tool for run in both] == ["vLLM", "withstand"]


def test_any_prefix_indent_and_colour_is_taken_off() -> None:
    lines = VLLM_BLOCK.splitlines()
    logged = "\n".join(f"2025-01-01 12:00:{i:02} INFO bench.py:{i}] {line}" for i, line in enumerate(lines))
    shapes = {
        "indented": "\n".join(f"    {line}" for line in lines),
        "quoted": "\n".join(f"> {line}" for line in lines),
        "commented": "\n".join(f"# {line}" for line in lines),
        "logged": f"{logged}\n",
        "coloured": "\n".join(f"\x1b[32m{line}\x1b[0m" for line in lines),
        "crlf": "\r\n".join([*lines, ""]),
        "in Markdown": f"Some prose.\n```text\n{VLLM_BLOCK}```\n",
    }
    expected = one(VLLM_BLOCK)
    for name, text in shapes.items():
        run = one(text)
        assert run.numbers == expected.numbers, name
        assert run.stats == expected.stats, name


def test_lines_of_a_server_between_a_logger_s_lines_are_not_the_block_s() -> None:
    lines = [f"client-1  | {line}" for line in VLLM_BLOCK.splitlines()]
    lines.insert(5, "server-1  | Mean TTFT (ms):   999999")
    assert one("\n".join(lines)).stats["ttft"].mean == 52.5


def test_several_blocks_have_the_command_and_heading_before_each() -> None:
    command = "vllm bench serve --model m --num-prompts {} --random-input-len 128 --dataset-name random \\\n\n"
    first, second = several(
        f"## engine one\n{command.format(100)}{VLLM_BLOCK}\n## engine two\n{command.format(200)}{VLLM_BLOCK}"
    )
    assert (first.conditions.num_prompts, second.conditions.num_prompts) == (100, 200)
    assert first.conditions.labels["heading"] == "engine one"
    assert second.conditions.labels["heading"] == "engine two"
    assert second.conditions.input_tokens == 128


def test_an_argument_dump_tells_the_conditions() -> None:
    dump = "Namespace(backend='vllm', num_prompts=300, request_rate=7.5, dataset_name='random', max_concurrency=None)\n"
    run = one(dump + VLLM_BLOCK.replace("Request rate configured (RPS):           5.00\n", ""))
    assert (run.conditions.num_prompts, run.conditions.request_rate) == (300, 7.5)


@pytest.mark.parametrize("blank", ["xxx", "xxx.xx", "N", "...", "???"])
def test_a_template_is_refused_by_name(blank: str) -> None:
    head, *lines = VLLM_BLOCK.splitlines()
    text = "\n".join([head, *(f"{line.split(':')[0]}:   {blank}" if ":" in line else line for line in lines), ""])
    with pytest.raises(FormatError, match=r"template with placeholders \(Successful requests: "):
        read_text(text, "t.txt")


def test_a_benchmark_of_images_under_the_same_banner_is_refused_by_name() -> None:
    text = """\
================= Serving Benchmark Result =================
Backend:                                 sglang-image
Successful requests:                     20/20
Benchmark duration (s):                  50.97
Request throughput (req/s):              0.02
Latency Mean (s):                        50.9681
============================================================
"""
    with pytest.raises(FormatError, match=r"something else than a language model \(Backend: sglang-image\)"):
        read_text(text, "flux.txt")


def test_a_refused_block_does_not_take_a_good_one_with_it() -> None:
    template = VLLM_BLOCK.replace("90\n", "xx\n").replace(".00", ".xx").replace("4500", "xxxx")
    imported = read_text(VLLM_BLOCK + "\n" + "\n".join(
        f"{line.split(':')[0]}: xxx" if ":" in line else line for line in template.splitlines()
    ) + "\n", "both.md")  # fmt: skip
    assert len(imported.runs) == 1
    assert "placeholders" in imported.refused[0].reason


def test_the_last_line_of_a_cut_text_is_not_believed() -> None:
    run = one(VLLM_BLOCK[: VLLM_BLOCK.index("80.25") + 2])
    assert run.stats["ttft"].percentiles == {"p50": 50.0}
    assert any("cut off" in remark for remark in run.remarks)
    assert any(left.what == "P99 TTFT (ms)" for left in run.left_out)


def test_a_stray_mark_is_told_and_an_illegible_value_left_out() -> None:
    run = one(VLLM_BLOCK.replace("52.50", "52.50  ·").replace("80.25", "8O.25"))
    assert run.stats["ttft"].mean == 52.5
    assert any("behind its number" in remark for remark in run.remarks)
    assert "p99" not in run.stats["ttft"].percentiles
    assert any("cannot be read" in left.reason for left in run.left_out)


def test_of_two_values_under_one_label_the_first_stands_and_the_second_is_told() -> None:
    run = one(VLLM_BLOCK.replace("Mean ITL", "Mean TTFT"))
    assert run.stats["ttft"].mean == 52.5
    assert any("stands twice" in remark for remark in run.remarks)


def test_a_rate_printed_without_digits_is_computed_again() -> None:
    text = VLLM_BLOCK.replace("3.00", "0.00").replace("  30.00", "  20000.00").replace("150.00", "0.23")
    run = one(text)
    assert run.numbers["request_throughput"] == pytest.approx(90 / 20000)
    assert run.notes["request_throughput"].startswith("printed as 0.00")


def test_nobody_s_times_are_unknown() -> None:
    run = one(VLLM_BLOCK.replace("Successful requests:                     90", "Successful requests:     0"))
    assert run.stats == {}
    assert any("time of nobody" in left.reason for left in run.left_out)


def test_a_zero_that_stands_for_nothing_seen_is_left_out() -> None:
    run = one(VLLM_BLOCK.replace("52.50", "0.00"))
    assert run.stats["ttft"].mean is None
    assert any("no answer takes no time" in left.reason for left in run.left_out)


def test_sglang_s_labels_are_known_under_any_spelling() -> None:
    text = """\
============ Serving Benchmark Result ============
Backend:                                 sglang-oai
Traffic request rate:                    inf
Max reqeuest concurrency:                16
Successful requests:                     10
Benchmark duration (s):                  5.00
Total generated tokens:                  100
Total generated tokens (retokenized):    98
Concurrency:                             3.27
Accept length:                           2.61
Mean E2E Latency (ms):                   812.00
Mean TTFT (s):                           0.05
Some new thing:                          7
==================================================
"""
    run = one(text)
    assert run.source.tool == "SGLang"
    assert (run.conditions.arrivals, run.conditions.max_concurrency) == ("inf", 16)
    assert run.numbers["retokenized_output_tokens"] == 98
    assert run.numbers["concurrency_mean"] == 3.27
    assert run.stats["e2el"].mean == 812
    assert run.stats["ttft"].mean == 50
    assert run.conditions.labels["Some new thing"] == "7"


def test_a_block_in_parts_is_read_with_its_text_alone() -> None:
    head, counts, times = VLLM_BLOCK.partition("---------------Time")
    text = f"{head}================== Text Result ===================\n{counts}{times}".removesuffix("=" * 50 + "\n")
    audio = "================== Audio Result ==================\nMean TTFT (ms):   9.0\nP90 TTFT (ms):   9.0\n"
    run = one(f"{text}{audio}{'=' * 50}\n")
    assert run.numbers["completed"] == 90
    assert run.stats["ttft"].mean == 52.5
    assert "p90" not in run.stats["ttft"].percentiles


def test_what_the_client_announces_before_the_block_is_a_condition() -> None:
    lines = "Traffic request rate: 7.5\nBurstiness factor: 1.0 (Poisson process)\nMaximum request concurrency: 32\n"
    bare = "\n".join(line for line in VLLM_BLOCK.splitlines() if "Maximum" not in line and "configured" not in line)
    run = one(lines + bare + "\n")
    assert (run.conditions.request_rate, run.conditions.max_concurrency) == (7.5, 32)
    assert run.conditions.burstiness == 1.0


@pytest.mark.parametrize("line", ["=" * 100_000, "-" * 100_000 + "x", "Mean TTFT (ms):" + " " * 100_000, "a" * 10**6])
def test_the_longest_lines_take_no_time(line: str) -> None:
    assert one(f"{line}\n{VLLM_BLOCK}\n{line}\n").numbers["completed"] == 90


def test_a_unit_behind_a_value_is_the_label_s_or_the_value_is_left_out() -> None:
    run = one(VLLM_BLOCK.replace("52.50", "52.50 ms").replace("80.25", "0.08 s"))
    assert run.stats["ttft"].mean == 52.5
    assert "p99" not in run.stats["ttft"].percentiles


def test_a_heading_that_says_nothing_does_not_hide_the_one_that_does() -> None:
    assert one(f"## Engine A\n\n### Results\n\n{VLLM_BLOCK}").conditions.labels["heading"] == "Engine A"


def test_a_refusal_carries_no_control_characters() -> None:
    text = "============ Serving Benchmark Result ============\nBackend: \x07evil\x9b2J\nSuccessful requests: 5\n"
    with pytest.raises(FormatError) as refusal:
        read_text(text, "f")
    assert str(refusal.value).isprintable()


def dump(**options: object) -> str:
    told = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return f"benchmark_args=Namespace({told})\n{VLLM_BLOCK}"


def test_a_dump_s_options_of_other_datasets_say_nothing() -> None:
    run = one(dump(dataset_name="generated-shared-prefix", num_prompts=1000, random_input_len=1024, request_rate=2.0))
    assert (run.conditions.num_prompts, run.conditions.input_tokens) == (None, None)
    run = one(dump(dataset_name="random-ids", num_prompts=100, random_input_len=1024, sharegpt_output_len=7))
    assert (run.conditions.num_prompts, run.conditions.input_tokens, run.conditions.output_tokens) == (100, 1024, None)


def test_a_dump_s_ramp_is_the_arrivals() -> None:
    run = one(dump(request_rate="inf", ramp_up_strategy="exponential", ramp_up_start_rps=1, ramp_up_end_rps=8))
    assert run.conditions.arrivals == "exponential ramp, 1 to 8 req/s"


def test_the_lines_of_two_clients_in_one_log_are_no_result() -> None:
    other = VLLM_BLOCK.replace("52.50", "99.00").replace("4500", "9900").replace("150.00", "330.00")
    pairs = zip(VLLM_BLOCK.splitlines(), other.splitlines(), strict=True)
    mixed = "\n".join(f"(pid=1{i}) {line}" for pair in pairs for i, line in enumerate(pair))
    imported = read_text(f"{mixed}\n{VLLM_BLOCK}", "f")
    assert [run.stats["ttft"].mean for run in imported.runs] == [52.5]
    assert any("lines of several results are mixed" in refused.reason for refused in imported.refused)


def test_a_rounding_that_takes_little_is_left_as_it_is_printed() -> None:
    run = one(VLLM_BLOCK.replace("3.00", "0.06").replace("  30.00", "  1475.00").replace("150.00", "3.05"))
    assert run.numbers["request_throughput"] == 0.06
    assert "request_throughput" not in run.notes


def test_a_sum_that_is_divided_stands_in_parentheses() -> None:
    lines = [line for line in VLLM_BLOCK.splitlines() if "Total Token" not in line and "Request throughput" not in line]
    notes = one("\n".join(lines)).notes
    assert "(total_input_tokens + total_output_tokens) / duration_s" in notes["total_token_throughput"]
    assert "computed here: completed / duration_s" in notes["request_throughput"]
