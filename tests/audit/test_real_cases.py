"""The documents that started all this: what must be said of each, and what must not."""

import pytest

from shared import shared
from withstand.app.audit import audit_paths
from withstand.audit.shape import Case, Claim, FileAudit, Standing
from withstand.metrics.doubts import DoubtKind


def audited(name: str) -> FileAudit:
    return audit_paths([shared(name)]).files[0]


def kinds(file: FileAudit) -> set[DoubtKind]:
    return {doubt.kind for doubt in file.doubts} | {doubt.kind for case in file.cases for doubt in case.doubts}


def text(file: FileAudit) -> str:
    return " ".join(doubt.sentence for doubt in [*file.doubts, *(d for c in file.cases for d in c.doubts)])


def claim(case: Case, wanted: Claim) -> Standing:
    return next(finding.standing for finding in case.findings if finding.claim is wanted)


def test_half_of_a_burst_was_lost_and_two_rates_were_not_kept() -> None:
    file = audited("seeds/seed000_results.jsonl")
    assert file.standing is Standing.FALLS
    by_name = {case.name: case for case in file.cases}
    assert [name for name, case in by_name.items() if case.standing is Standing.FALLS] == [
        "vllm rate-inf", "sgl rate-inf",
    ]  # fmt: skip
    for name in ("vllm rate-30", "vllm rate-35", "sgl rate-30", "sgl rate-35"):
        assert claim(by_name[name], Claim.TTFT) is Standing.FALLS
        assert claim(by_name[name], Claim.TOKENS) is Standing.STANDS
    assert {DoubtKind.CLIENT_LIMIT, DoubtKind.BACKEND_NO_ENGINE} <= kinds(file)
    assert "2,000 - 1,015 = 985" in text(file)


def test_three_gateways_that_did_not_do_the_same_work() -> None:
    file = audited("seeds/seed003_raw.txt")
    python, rust, golang = file.cases
    assert claim(python, Claim.TOKENS) is claim(golang, Claim.TOKENS) is Standing.FALLS
    assert claim(rust, Claim.TOKENS) is Standing.STANDS
    assert all(claim(case, wanted) is Standing.STANDS for case in file.cases for wanted in (Claim.TTFT, Claim.ITL))
    for said in ("25,883", "129,591", "22,970", "31,740", "0.93 of 20", "did not do the same work"):
        assert said in text(file)


def test_an_error_played_as_an_answer_behind_a_limiter() -> None:
    file = audited("results/seed002author_moe-ray-deepseek-loadtest-result.md")
    assert file.standing is Standing.FALLS
    assert {DoubtKind.NOT_STREAMED, DoubtKind.LIKE_A_LIMITER, DoubtKind.SPEED_NO_THROUGHPUT} <= kinds(file)
    assert "100 of 300 requests in 30 s came through: exactly 100 a minute" in text(file)
    assert all(claim(case, Claim.TTFT) is Standing.FALLS for case in file.cases)


def test_thirty_seven_beside_three_hundred_and_twenty() -> None:
    names = ("Qwen_vllm_baseline.md", "qwen_vllm_model_sharegpt_concurrency_20260411_131143.csv")
    audit = audit_paths([shared(f"results/seed002author_{name}") for name in names])
    (beside,) = [doubt for doubt in audit.doubts if doubt.kind is DoubtKind.SPEED_BESIDE_THROUGHPUT]
    assert "34.20 to 37.30" in beside.sentence
    assert "28.01 to 320.5" in beside.sentence
    table, curve = audit.files
    assert table.standing is Standing.FALLS
    assert curve.standing is Standing.STANDS
    assert DoubtKind.CONCURRENCY_NOT_REACHED in kinds(curve)


def test_an_article_s_own_table_has_both_in_one_row() -> None:
    file = audited("seeds/seed002_summary.json")
    assert file.standing is Standing.FALLS
    assert DoubtKind.SPEED_BESIDE_THROUGHPUT in kinds(file)
    by_name = {case.name: case for case in file.cases}
    assert claim(by_name["qwen_phase2 conc-4"], Claim.TOKENS) is Standing.FALLS
    assert claim(by_name["qwen_concurrency conc-64"], Claim.TTFT) is Standing.STANDS
    assert claim(by_name["lmcache_modal_concurrency conc-4"], Claim.TTFT) is Standing.FALLS


@pytest.mark.parametrize("name", ["seeds/seed001_blocks.txt", "seeds/seed001_raw.txt"])
def test_rates_that_were_printed_as_nothing(name: str) -> None:
    file = audited(name)
    assert DoubtKind.PRINTED_TOO_COARSE in kinds(file)
    rates = [f.value.value for case in file.cases for f in case.findings if f.claim is Claim.REQUESTS]
    assert len(rates) == 23
    assert min(rates) == pytest.approx(1 / 745, rel=0.05)


def test_a_mean_of_nearly_four_medians_is_a_doubt_and_no_fall() -> None:
    file = audited("seeds/seed004_block.txt")
    assert file.standing is Standing.STANDS
    assert "3.7 times its median" in text(file)


def test_what_is_no_result_is_said_to_be_none() -> None:
    file = audited("results/sglang_diffusion_text_flux_NEGATIVE.txt")
    assert file.standing is Standing.UNKNOWN
    assert file.unreadable
