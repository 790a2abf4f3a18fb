"""Exact JavaScript regular expressions in QuickJS, under limits on time, memory, stack and output.

Every thread has a context of its own (a context used by two threads at once ends the process). A context that ran into
a limit is thrown away. Only patterns and texts enter it, as JSON; a regular expression can't run code, so a context
may serve one owner after another.

Source: style §6 "JS regex, EJS" (the time limit counts the CPU of the whole process and restarts at each entry).
"""

import copy
import json
import threading
import time
from collections.abc import Sequence
from typing import Any, TypeAlias

import quickjs

from tapster.engine.limits import (
    REGEX_BUDGET_MS,
    REGEX_CACHED_PATTERNS,
    REGEX_MATCHES,
    REGEX_MEMORY_BYTES,
    REGEX_OFFENDER_SECONDS,
    REGEX_OUTPUT_UNITS,
    REGEX_REMEMBERED_OFFENDERS,
    REGEX_REQUEST_BUDGET_MS,
    REGEX_STACK_BYTES,
)
from tapster.engine.text.js_regex import FastRegexEngine
from tapster.engine.text.ports import InvalidPattern, RegexMatch, ScriptBudgetExceeded

Json: TypeAlias = Any

# Results: {m: [[index, whole, group, ...], named?]...} or {e: message of a SyntaxError} or {o: limit that was hit}.
_PROGRAM = """
(() => {
  const cache = new Map(), stringify = JSON.stringify, parse = JSON.parse;
  let subject = "";
  const compile = (pattern, flags) => {
    const key = flags + "/" + pattern;
    let regex = cache.get(key);
    if (regex === undefined) {
      if (cache.size >= $PATTERNS) cache.clear();
      regex = new RegExp(pattern, flags);
      cache.set(key, regex);
    }
    regex.lastIndex = 0;
    return regex;
  };
  const row = match => {
    const value = [match.index, match[0]];
    for (let i = 1; i < match.length; i++) value.push(match[i] === undefined ? null : match[i]);
    return match.groups ? [value, { ...match.groups }] : [value];
  };
  const undefinedAsNull = (key, value) => value === undefined ? null : value;
  globalThis.text = json => { subject = parse(json); };
  globalThis.find = (json, all) => {
    const [pattern, flags] = parse(json);
    let regex;
    try {
      regex = compile(pattern, flags);
    } catch (error) {
      if (error instanceof SyntaxError) return stringify({ e: error.message });
      throw error;
    }
    const found = [];
    let size = 0;
    for (;;) {
      const match = regex.exec(subject);
      if (match === null) break;
      found.push(row(match));
      for (const part of match) if (part !== undefined) size += part.length;
      if (size > $OUTPUT || found.length > $MATCHES) return stringify({ o: 1 });
      if (!all) break;
      if (match[0] === "") {
        const code = regex.unicode || regex.unicodeSets ? subject.codePointAt(regex.lastIndex) : 0;
        regex.lastIndex += code > 0xFFFF ? 2 : 1;
      }
    }
    return stringify({ m: found }, undefinedAsNull);
  };
  globalThis.check = json => {
    const [pattern, flags] = parse(json);
    try {
      new RegExp(pattern, flags);
    } catch (error) {
      if (error instanceof SyntaxError) return stringify({ e: error.message });
      throw error;
    }
    return "{}";
  };
})()
"""
for _name, _value in (("PATTERNS", REGEX_CACHED_PATTERNS), ("OUTPUT", REGEX_OUTPUT_UNITS), ("MATCHES", REGEX_MATCHES)):
    _PROGRAM = _PROGRAM.replace(f"${_name}", str(_value))
_MAX_TRIES = 3
_SHOWN_PATTERN = 80


class _Worker:
    """One context of one thread."""

    def __init__(self) -> None:
        self.context = quickjs.Context()
        self.context.set_memory_limit(REGEX_MEMORY_BYTES)
        self.context.set_max_stack_size(REGEX_STACK_BYTES)
        self.context.eval(_PROGRAM)
        self.text: str | None = None

    def load(self, text: str) -> None:
        if text is not self.text:
            self.context.get("text")(json.dumps(text))
            self.text = text


class _Offenders:
    """Searches that ran over their time: the same pattern on the same text is refused at once for a while.

    So a preview and the request after it agree, and an unchanged text costs its budget once.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, int, int], float] = {}

    def __contains__(self, search: tuple[str, str, str]) -> bool:
        seen = self._seen.get(self._key(search))
        return seen is not None and time.monotonic() - seen < REGEX_OFFENDER_SECONDS

    def add(self, search: tuple[str, str, str]) -> None:
        if len(self._seen) >= REGEX_REMEMBERED_OFFENDERS:
            self._seen.clear()
        self._seen[self._key(search)] = time.monotonic()

    @staticmethod
    def _key(search: tuple[str, str, str]) -> tuple[str, str, int, int]:
        pattern, flags, text = search
        return pattern, flags, len(text), hash(text)


class _Allowance:
    """CPU seconds left for all searches of one request; one thread at a time uses it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


class QuickJsRegexEngine:
    """A ``RegexEngine`` with the semantics of a browser's; may be shared by threads."""

    def __init__(
        self,
        *,
        budget_ms: float = REGEX_BUDGET_MS,
        request_budget_ms: float = REGEX_REQUEST_BUDGET_MS,
    ) -> None:
        self.budget_ms = budget_ms
        self.request_budget_ms = request_budget_ms
        self._local = threading.local()
        self._offenders = _Offenders()
        self._allowance: _Allowance | None = None

    def for_request(self) -> "QuickJsRegexEngine":
        """An engine for one request: the same contexts, with an allowance over all of its searches."""
        engine = copy.copy(self)
        engine._allowance = _Allowance(self.request_budget_ms / 1000)
        return engine

    def check(self, pattern: str, flags: str) -> None:
        """Compile only; see ``RegexEngine.check``."""
        self._run("check", pattern, flags, "", "", None)

    def find(self, pattern: str, flags: str, text: str, *, owner: str = "") -> RegexMatch | None:
        """The first match; see ``RegexEngine.find``."""
        matches = self._find(pattern, flags, text, owner, all_matches=False)
        return matches[0] if matches else None

    def find_all(self, pattern: str, flags: str, text: str, *, owner: str = "") -> Sequence[RegexMatch]:
        """Every match; see ``RegexEngine.find_all``."""
        return self._find(pattern, flags, text, owner, all_matches=True)

    def _find(self, pattern: str, flags: str, text: str, owner: str, *, all_matches: bool) -> list[RegexMatch]:
        # Without g (or y) `exec` would start from the beginning each time.
        run_flags = flags if not all_matches or "g" in flags else flags + "g"
        result = self._run("find", pattern, run_flags, text, owner, all_matches)
        if "o" in result:
            raise _exceeded(pattern, owner, "output")
        return [_match(*row) for row in result["m"]]

    def _worker(self) -> _Worker:
        worker: _Worker | None = getattr(self._local, "worker", None)
        if worker is None:
            worker = self._local.worker = _Worker()
        return worker

    def _run(self, name: str, pattern: str, flags: str, text: str, owner: str, all_matches: bool | None) -> Json:
        request = json.dumps([pattern, flags])
        arguments = [request] if all_matches is None else [request, all_matches]
        if (pattern, flags, text) in self._offenders:
            raise _exceeded(pattern, owner, "time")
        remaining = self._budget()
        least = remaining / 2
        for _ in range(_MAX_TRIES):
            if remaining <= 0:
                raise _exceeded(pattern, owner, "request's")
            worker = self._worker()
            started = time.thread_time()
            try:
                worker.context.set_time_limit(-1)
                worker.load(text)
                worker.context.set_time_limit(remaining)
                result = json.loads(worker.context.get(name)(*arguments))
            except quickjs.JSException as error:
                self._local.worker = None
                if "interrupted" not in str(error):
                    raise _exceeded(pattern, owner, "memory") from None
                # The clock is the whole process's: with other busy threads the limit comes before this thread's share.
                remaining -= time.thread_time() - started
                if remaining < least:
                    break
                continue
            finally:
                if self._allowance is not None:
                    self._allowance.seconds -= time.thread_time() - started
            if "e" in result:
                raise InvalidPattern(f"/{_shown(pattern)}/{flags} is not a JavaScript pattern: {result['e']}")
            return result
        self._offenders.add((pattern, flags, text))
        raise _exceeded(pattern, owner, "time")

    def _budget(self) -> float:
        """CPU seconds the next search may take."""
        own = self.budget_ms / 1000
        return own if self._allowance is None else min(own, self._allowance.seconds)


def _match(values: list[Json], named: dict[str, str | None] | None = None) -> RegexMatch:
    start, whole, *groups = values
    units = len(whole) if whole.isascii() else len(whole.encode("utf-16-le", "surrogatepass")) // 2
    return RegexMatch(start, start + units, whole, tuple(groups), named or {})


def _shown(pattern: str) -> str:
    return pattern if len(pattern) <= _SHOWN_PATTERN else pattern[:_SHOWN_PATTERN] + "…"


def _exceeded(pattern: str, owner: str, limit: str) -> ScriptBudgetExceeded:
    whose = f"the pattern of {owner}" if owner else f"the pattern /{_shown(pattern)}/"
    return ScriptBudgetExceeded(
        f"{whose} ran over its {limit} budget; simplify it or switch it off",
        details={"limit": limit, "owner": owner, "pattern": _shown(pattern)},
    )


def open_regex_engine(
    *, budget_ms: float = REGEX_BUDGET_MS, request_budget_ms: float = REGEX_REQUEST_BUDGET_MS
) -> FastRegexEngine:
    """The engine to use: the linear fast path over QuickJS."""
    return FastRegexEngine(QuickJsRegexEngine(budget_ms=budget_ms, request_budget_ms=request_budget_ms))
