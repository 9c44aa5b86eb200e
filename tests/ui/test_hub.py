import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from withstand.ui.hub import PAGES_MAX, Course, Hub, events

PATH = Path("run")


def looks(n: int) -> Iterator[dict[str, int]]:
    for number in range(n):
        yield {"number": number}
        time.sleep(0.01)


async def all_of(course: Course) -> list[bytes]:
    return [event async for event in events(course)]


def test_pages_that_follow_one_run_share_one_reading_and_are_told_its_end() -> None:
    readings = []

    def follow(path: Path) -> Iterator[dict[str, int]]:
        readings.append(path)
        return looks(10)

    async def main() -> list[list[bytes]]:
        hub = Hub(follow)
        courses = [hub.course(PATH) for _ in range(100)]
        return await asyncio.gather(*(all_of(course) for course in courses if course))

    pages = asyncio.run(main())
    assert len(pages) == 100
    assert readings == [PATH]
    for page in pages:
        assert page[-1].startswith(b"event: end")
        assert b'{"number":9}' in page[-2]


def test_a_slow_page_gets_the_newest_look_only() -> None:
    async def main() -> list[bytes]:
        course = Hub(lambda _: looks(200)).course(PATH)
        assert course
        stream = events(course)
        seen = [await anext(stream)]
        while not course.is_over:
            await course.changed()
        return [*seen, *[event async for event in stream]]

    seen = asyncio.run(main())
    assert len(seen) == 3
    assert b'{"number":199}' in seen[1]


def test_reading_ends_when_nobody_looks_on() -> None:
    ended = threading.Event()

    def follow(_: Path) -> Iterator[int]:
        try:
            while True:
                yield 1
                time.sleep(0.01)
        finally:
            ended.set()

    async def main() -> None:
        hub = Hub(follow)
        course = hub.course(PATH)
        assert course
        stream = events(course)
        await anext(stream)
        await stream.aclose()
        assert hub.course(PATH) is not course
        hub.stop()

    asyncio.run(main())
    assert ended.wait(10)


def test_there_is_an_end_to_pages() -> None:
    async def main() -> None:
        hub = Hub(lambda _: iter(()))
        streams = []
        for _ in range(PAGES_MAX):
            course = hub.course(PATH)
            assert course
            course.is_over = False
            streams.append(course)
            course.pages += 1
        assert hub.course(PATH) is None

    asyncio.run(main())


def test_numbers_that_json_has_not_are_unknown() -> None:
    async def main() -> bytes:
        course = Hub(lambda _: iter([{"rate": float("nan")}])).course(PATH)
        assert course
        return (await all_of(course))[0]

    assert asyncio.run(main()) == b'event: look\ndata: {"rate":null}\n\n'
