"""Several targets in one plan, each laid over what all have in common."""

import pytest

from withstand.errors import SpecError
from withstand.spec import is_redacted, parse_plan, redacted

SEVERAL = {
    "target": {"model": "m", "headers": {"X-All": "secret"}, "timeouts": {"read_s": 5}},
    "targets": {
        "a": {"base_url": "http://u:secret@a"},
        "b": {"base_url": "http://b", "model": "other", "headers": {"X-Own": "secret"}, "timeouts": {"connect_s": 1}},
    },
}


def test_each_is_laid_over_the_common_one_key_by_key_and_they_keep_their_order() -> None:
    targets = parse_plan(SEVERAL).targets
    assert list(targets) == ["a", "b"]
    assert [target.model for target in targets.values()] == ["m", "other"]
    assert targets["b"].headers == {"X-All": "secret", "X-Own": "secret"}
    assert (targets["b"].timeouts.read_s, targets["b"].timeouts.connect_s) == (5, 1)


def test_no_secret_of_any_of_them_is_written() -> None:
    plan = redacted(parse_plan(SEVERAL))
    assert "secret" not in repr(plan)
    assert is_redacted(plan)


@pytest.mark.parametrize(
    ("targets", "at"),
    [
        ({"a": {"stream": 7}}, "`$.targets.a.stream`"),
        ({"a": {"timeouts": {"read_s": 0}}}, "`$.targets.a.timeouts.read_s`"),
        ({"a": {"nope": 1}}, "`$.targets.a`"),
        ({"a": 7}, "`$.targets.a`"),
        ({"../a": {}}, "`$.targets`"),
        ({"": {}}, "`$.targets`"),
        ([], "`$.targets`"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(targets: object, at: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_plan({"targets": targets})
    assert at in str(caught.value)
