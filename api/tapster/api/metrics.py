"""The runtime's reading in the text format that Prometheus scrapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import attrs

from tapster.actors.introspection import RuntimeReading, kind_of
from tapster.runtime import ActorReading

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
NO_LABELS: Final[Mapping[str, str]] = {}


@attrs.frozen
class Metric:
    """One metric with its samples, each a set of labels and a value."""

    name: str
    kind: str
    help: str
    samples: tuple[tuple[Mapping[str, str], float], ...]


def metrics_text(reading: RuntimeReading) -> str:
    """Everything that is measured; sessions are counted, not named, so that the number of series stays small."""
    return "".join(line + "\n" for metric in _metrics(reading) for line in _lines(metric))


def _metrics(reading: RuntimeReading) -> Iterator[Metric]:
    yield _one("tapster_up_seconds", "gauge", "Seconds since the runtime was opened.", reading.uptime_s)
    yield _one("tapster_ready", "gauge", "1 while new work is taken.", reading.phase == "ready")
    yield _one("tapster_tasks", "gauge", "Tasks alive in the process.", reading.tasks)
    yield _one("tapster_sessions_live", "gauge", "Sessions awake.", reading.live)
    yield _one("tapster_sessions_max_live", "gauge", "Sessions that may be awake at once.", reading.max_live)
    yield from _actors(reading)
    loop = reading.loop
    yield _one("tapster_loop_steps_total", "counter", "Task steps of the event loop.", loop.steps)
    yield _one("tapster_loop_stalls_total", "counter", "Steps that kept the loop for over 50 ms.", loop.stalls)
    yield _one("tapster_loop_stall_seconds", "gauge", "Longest step of the last minute or two.", loop.recent_s)
    yield from _threads(reading)
    store = reading.store
    yield _one("tapster_store_queued", "gauge", "Writes that wait for a commit.", store.queued)
    yield _one("tapster_store_commits_total", "counter", "Transactions committed.", store.commits)
    yield _one("tapster_store_writes_total", "counter", "Writes committed.", store.writes)
    yield _one("tapster_store_failed_commits_total", "counter", "Transactions that failed.", store.failures)
    yield _one("tapster_store_commit_seconds_total", "counter", "Time in commits, fsync included.", store.commit_s)
    yield _one("tapster_store_commit_seconds_max", "gauge", "Longest commit so far.", store.longest_commit_s)
    yield _one("tapster_store_batch_last", "gauge", "Writes in the last transaction.", store.last_batch)
    yield _one("tapster_store_batch_max", "gauge", "Writes in the largest transaction.", store.largest_batch)
    outbox = reading.outbox
    yield _one("tapster_outbox_waiting", "gauge", "Trace records that wait to be written.", outbox.waiting)
    yield _one("tapster_outbox_writing", "gauge", "Trace records being written.", outbox.writing)
    yield _one("tapster_outbox_dropped_total", "counter", "Trace records dropped for lack of room.", outbox.dropped)
    admission = reading.admission
    yield _one("tapster_admission_pending", "gauge", "Units of cost under way at the borders.", admission.pending)
    yield _one("tapster_admission_limit", "gauge", "Units that may be under way.", admission.limit)
    yield _one("tapster_admission_refused_total", "counter", "Requests refused with 503.", admission.refused)
    yield _one("tapster_streams", "gauge", "Live event streams.", admission.streams)
    yield _one("tapster_outbox_failed_total", "counter", "Trace records that couldn't be written.", outbox.failed)


def _actors(reading: RuntimeReading) -> Iterator[Metric]:
    counts = Counter((kind_of(actor.name), actor.state) for actor in reading.actors)
    yield Metric(
        "tapster_actors", "gauge", "Actors by kind and state.",
        tuple(({"kind": kind, "state": state}, count) for (kind, state), count in sorted(counts.items())),
    )  # fmt: skip
    kinds = sorted({kind for kind, _ in counts})
    of = {kind: [actor for actor in reading.actors if kind_of(actor.name) == kind] for kind in kinds}
    per_kind: tuple[tuple[str, str, Callable[[list[ActorReading]], float]], ...] = (
        ("tapster_actor_inbox", "Messages in inboxes.", lambda actors: sum(a.queued for a in actors)),
        ("tapster_actor_open", "Requests being served.", lambda actors: sum(a.open for a in actors)),
        ("tapster_actor_oldest_seconds", "Age of the oldest request.", lambda actors: max(a.oldest_s for a in actors)),
        ("tapster_actor_restarts", "Restarts of those that live.", lambda actors: sum(a.restarts for a in actors)),
    )
    for name, help_text, value in per_kind:
        yield Metric(name, "gauge", help_text, tuple(({"kind": kind}, value(of[kind])) for kind in kinds))


def _threads(reading: RuntimeReading) -> Iterator[Metric]:
    rows = (
        ("tapster_threads_used", "gauge", "Threads at work.", "used"),
        ("tapster_threads_limit", "gauge", "Threads allowed.", "limit"),
        ("tapster_threads_waiting", "gauge", "Tasks that wait for a thread.", "waiting"),
        ("tapster_threads_runs_total", "counter", "Calls run in threads.", "runs"),
        ("tapster_threads_seconds_total", "counter", "Time of those calls, waiting included.", "total_s"),
    )
    for name, kind, help_text, member in rows:
        samples = tuple(({"pool": pool.name}, float(getattr(pool, member))) for pool in reading.threads)
        yield Metric(name, kind, help_text, samples)


def _one(name: str, kind: str, help_text: str, value: float) -> Metric:
    return Metric(name, kind, help_text, ((NO_LABELS, float(value)),))


def _lines(metric: Metric) -> Iterable[str]:
    yield f"# HELP {metric.name} {metric.help}"
    yield f"# TYPE {metric.name} {metric.kind}"
    for labels, value in metric.samples:
        inside = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
        yield f"{metric.name}{{{inside}}} {value:.10g}" if inside else f"{metric.name} {value:.10g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
