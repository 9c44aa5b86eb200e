"""What the first requests' failure is told as."""

import pytest

from withstand.app.preflight import check_warmup
from withstand.errors import TargetError
from withstand.record import Record, Status


@pytest.mark.parametrize("error", ["127.0.0.1:9: connection refused.", "127.0.0.1:9: connection refused"])
def test_a_reason_that_is_a_sentence_gets_no_second_stop(error: str) -> None:
    failed = Record(id=0, stage=0, status=Status.REFUSED, error=error)
    with pytest.raises(TargetError, match=r"measured: 127\.0\.0\.1:9: connection refused\. `--num-warmups 0` measures"):
        check_warmup([failed], model=None, models=(), stream=True)
