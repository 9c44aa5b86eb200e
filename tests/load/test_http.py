"""HTTP framing without sockets: limits on what a hostile server may send."""

import gzip

import pytest

from withstand.load.http import Answer, HttpError


def read(*pieces: bytes) -> tuple[Answer, bytes]:
    body: list[bytes] = []
    answer = Answer(lambda: None, body.append)
    for piece in pieces:
        answer.feed(piece)
    return answer, b"".join(body)


def head(*lines: bytes) -> bytes:
    return b"\r\n".join((b"HTTP/1.1 200 OK", *lines, b"", b""))


def test_an_interim_answer_is_not_the_answer() -> None:
    answer, body = read(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", head(b"Content-Length: 2"), b"ok")
    assert (answer.status, answer.complete, answer.keep_alive, body) == (200, True, True, b"ok")
    assert "link" not in answer.headers


def test_a_body_without_length_ends_with_the_connection() -> None:
    answer, body = read(head(b"Content-Type: text/plain"), b"all")
    assert (answer.complete, body) == (False, b"all")
    assert answer.closed()


def test_a_body_that_is_short_of_its_length_is_not_whole() -> None:
    answer, _ = read(head(b"Content-Length: 9"), b"all")
    assert not answer.closed()


def test_gzip_is_read_although_not_asked_for() -> None:
    packed = gzip.compress(b"text" * 100)
    _, body = read(head(b"Content-Encoding: gzip", b"Content-Length: %d" % len(packed)), packed)
    assert body == b"text" * 100


@pytest.mark.parametrize(
    "pieces",
    [
        (b"SSH-2.0-OpenSSH\r\n",),
        (head(b"Content-Encoding: br", b"Content-Length: 1"), b"x"),
        (head(b"Transfer-Encoding: chunked"), b"-5\r\n"),
        (head(b"Content-Encoding: gzip", b"Content-Length: 4"), b"junk"),
        (b"HTTP/1.1 200 OK\r\n", *(b"X-%d: %s\r\n" % (i, b"y" * 1000) for i in range(400))),
        (head(b"Content-Encoding: gzip", b"Content-Length: 999999"), gzip.compress(bytes(64 << 20))),
    ],
)
def test_what_is_no_http_or_beyond_measure_is_an_error(pieces: tuple[bytes, ...]) -> None:
    with pytest.raises(HttpError):
        read(*pieces)


def test_gzip_of_several_members_is_read_whole() -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"two")
    for cut in range(len(packed)):
        _, body = read(head(b"Content-Encoding: gzip", b"Content-Length: %d" % len(packed)), packed[:cut], packed[cut:])
        assert body == b"one two"


@pytest.mark.parametrize("more", [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nWRONG", b"rubbish\r\n\r\n"])
def test_what_comes_behind_the_answer_is_not_its_own(more: bytes) -> None:
    answer, body = read(head(b"Content-Length: 2") + b"ok" + more)
    assert (answer.complete, answer.keep_alive, body) == (True, False, b"ok")
