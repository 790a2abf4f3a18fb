"""The runtime's reading as lines and rows, for the command line and the page."""

from collections.abc import Iterator
from typing import Final

from tapster.engine.ecma import Json

COLUMNS: Final = ("actor", "state", "queued", "open", "oldest", "handled", "restarts")


def summary(reading: Json) -> Iterator[str]:
    """The program as a whole, a line for each part."""
    loop, store, outbox, admission = reading["loop"], reading["store"], reading["outbox"], reading["admission"]
    yield (
        f"{reading['phase']} for {reading['uptime_s']:.0f} s; {reading['tasks']} tasks; "
        f"{reading['live']} of {reading['max_live']} sessions awake"
    )
    yield f"loop: longest step {loop['recent_s'] * 1000:.0f} ms, {loop['stalls']} stalls in {loop['steps']} steps"
    mean = 1000 * store["commit_s"] / store["commits"] if store["commits"] else 0.0
    yield (
        f"store: {store['queued']} queued, {store['writes']} writes in {store['commits']} commits "
        f"(last {store['last_batch']}, largest {store['largest_batch']}), {mean:.1f} ms each, "
        f"longest {store['longest_commit_s'] * 1000:.0f} ms, {store['failures']} failed"
    )
    yield (
        f"outbox: {outbox['waiting']} waiting, {outbox['writing']} being written, {outbox['dropped']} dropped, "
        f"{outbox['failed']} failed"
    )
    yield (
        f"admission: {admission['pending']} of {admission['limit']} units under way for {admission['sessions']} "
        f"sessions, {admission['refused']} refused; {admission['streams']} live streams"
    )
    for pool in reading["threads"]:
        yield (
            f"threads {pool['name']}: {pool['used']} of {pool['limit']} at work, {pool['waiting']} waiting, "
            f"{pool['runs']} runs"
        )


def actor_row(actor: Json) -> tuple[str, ...]:
    """One actor, in the order of ``COLUMNS``."""
    numbers = (actor["queued"], actor["open"], f"{actor['oldest_s']:.1f} s", actor["handled"], actor["restarts"])
    return (actor["name"], actor["state"], *map(str, numbers))


def table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Rows as lines with aligned columns."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
