"""Alerts about blocked tool calls: one a session, taken once, and a bounded number of them."""

from tapster.actors.session.alerts import KEPT, RpAlerts
from tests.support.hosts import CountingIds, TrioClock


async def test_the_alert_that_has_waited_longest_makes_room() -> None:
    alerts = RpAlerts(TrioClock(), CountingIds())
    for number in range(KEPT):
        alerts.record(f"s-{number}", "bash")
    again = alerts.record("s-0", "edit")
    assert alerts.find("s-0") == again
    assert alerts.find("s-1") is not None
    alerts.record("one more", "bash")
    assert alerts.find("s-0") is None
    assert alerts.take("s-1") is not None
    assert alerts.find("s-1") is None
    assert alerts.find("one more") is not None
