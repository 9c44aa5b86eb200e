from withstand.compare.shape import Decision
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.report.comparison_brief import brief_of
from withstand.report.standing import gathered

LONG = "a-name-that-leaves-no-room-for-numbers.json"


def test_long_names_are_letters_by_their_place_and_short_ones_stay() -> None:
    assert brief_of(["vllm", LONG, f"{LONG}.old"], 14).short == ("vllm", "B", "C")
    assert brief_of(["B", LONG], 14).short == ("B", "side B")


def test_what_is_said_of_them_has_the_same_letters() -> None:
    brief = brief_of([LONG, f"{LONG}.old"], 14)
    assert brief.text(f"{LONG}.old answered, {LONG} did not.") == "B answered, A did not."
    doubt = Doubt(DoubtKind.LENGTHS_DIFFER, f"{LONG} answered with 4 tokens.", "Prescribe it.")
    (heard,) = gathered([(doubt, f"{LONG} at 5 req/s")])
    told = brief.doubt(heard)
    assert (told.sentence, told.where) == ("A answered with 4 tokens.", "in A at 5 req/s")
    made = brief.decision(Decision(wins_for="tail", winner=LONG, evidence=f"{LONG} 4 ms"))
    assert (made.winner, made.evidence) == ("A", "A 4 ms")
