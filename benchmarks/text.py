"""``python -m benchmarks.text``: what macros, regex scripts and templates cost, against plain alternatives.

Cold and warm: 10,000 macros in one text; 200 regex scripts over a 50 KiB reply; a template with 20 ``getwi`` calls;
and what 1,000 hostile patterns and templates leave behind. Alternatives run in the same process on the same input.
Times are CPU milliseconds of this machine: read the ratios.
"""

import argparse
import random
import re
import resource
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import attrs
import jinja2

from tapster.actors.scripts import QuickJsRegexEngine, QuickJsTemplateEngine, open_regex_engine
from tapster.engine.text.js_regex import fast_search
from tapster.engine.text.macros import MacroContext, expand
from tapster.engine.text.ports import RegexEngine, ScriptBudgetExceeded
from tapster.engine.text.re2_translation import translate
from tapster.engine.text.regex_scripts import AI, RegexScript, RegexUse, parse_find, run_regex_scripts
from tapster.engine.text.templates import (
    Lookup,
    TemplateBook,
    TemplateData,
    TemplateEntry,
    TemplateError,
    compile_template,
    render_template,
)
from tests.support.hostile import PATTERNS, TEMPLATES, TEXT

Row = tuple[str, float, float, str]
PROSE = "the rain went on and nobody spoke until morning came “quietly” *softly* 灯塔 剑客 <b>bold</b> [note]"
WORDS = tuple(PROSE.split())
FINDS = (
    r"/\*([^*\n]+)\*/g", r"/“([^”]+)”/g", r"/<(b|i)>(.*?)<\/\1>/g", r"/\bword{n}\b/gi",
    r"/<think>[\s\S]*?<\/think>\n*/g",
    r"/(?<=\[)[a-z]+(?=\])/g", r"/\n{3,}/g", r"/[\u4e00-\u9fff]{2}/g", r"/^\s+|\s+$/gm", r"/morning {n}/g",
)  # fmt: skip


def timed(run: Callable[[], object], rounds: int) -> float:
    """Median CPU milliseconds of a call."""
    spent = []
    for _ in range(rounds):
        started = time.process_time()
        run()
        spent.append((time.process_time() - started) * 1000)
    return statistics.median(spent)


def row(label: str, run: Callable[[], object], rounds: int, note: str = "") -> Row:
    """The first call alone (cold), then the median of the others (warm)."""
    return label, timed(run, 1), timed(run, rounds), note


def macro_rows(rounds: int) -> list[Row]:
    context = MacroContext(now=datetime(2024, 3, 9, tzinfo=UTC), random=random.Random(1).random, user="Ann", char="Ben")
    text = "{{user}} met {{char}} at {{time}}. {{random::a::b::c}} {{setvar::n::1}}{{getvar::n}}" * 1667
    names = {"user": "Ann", "char": "Ben", "time": "12:00 AM", "getvar::n": "1"}
    pattern = re.compile(r"\{\{([^{}]+)\}\}")
    return [
        row("Tapster", lambda: expand(text, context), rounds, f"{text.count('{{'):,} macros, {len(text) // 1024} KiB"),
        row("one re.sub and a dict", lambda: pattern.sub(lambda m: names.get(m[1], ""), text), rounds, "no nesting"),
    ]


def reply(length: int) -> str:
    rng = random.Random(2)
    parts: list[str] = []
    size = 0
    while size < length:
        parts.append(rng.choice(WORDS) + ("\n" if rng.random() < 0.05 else " "))
        size += len(parts[-1])
    return "".join(parts)


def scripts() -> tuple[RegexScript, ...]:
    return tuple(
        RegexScript(f"s{n}", FINDS[n % len(FINDS)].replace("{n}", str(n)), "{{match}}", (AI,)) for n in range(200)
    )


def regex_rows(rounds: int) -> list[Row]:
    text, chosen = reply(50 * 1024), scripts()
    macros = MacroContext(now=datetime(2024, 3, 9, tzinfo=UTC), random=lambda: 0.5)

    def through(engine: RegexEngine) -> Callable[[], object]:
        return lambda: run_regex_scripts(text, chosen, RegexUse(AI), macros, engine)

    patterns = [parsed for script in chosen if (parsed := parse_find(script.find)) is not None]
    plain = [re.compile(pattern, re.MULTILINE) for pattern, _ in patterns]
    fast = sum(fast_search(pattern, flags, text) is not None for pattern, flags in patterns)
    translate.cache_clear()
    return [
        row("Tapster", through(open_regex_engine(budget_ms=5000)), rounds, f"{fast} of 200 on the fast path"),
        row("QuickJS alone", through(QuickJsRegexEngine(budget_ms=5000)), rounds, "the same result"),
        row("re, no limit", lambda: [p.sub(lambda m: m[0], text) for p in plain], rounds, "other semantics"),
    ]


def template_rows(rounds: int) -> list[Row]:
    book = TemplateBook("b", "B", tuple(TemplateEntry(str(n), f"entry {n}", f"text {n}") for n in range(200)))
    resolve = TemplateData((book,)).resolver(open_regex_engine())
    source = "<% for (let i = 0; i < 20; i++) { %>- <%- await getwi('entry ' + i) %>\n<% } %>"
    engine = QuickJsTemplateEngine(budget_ms=5000)

    def replayed() -> str:
        """Each lookup starts the template anew with the answers so far, as the reference does."""
        for count in range(1, 21):
            part = source.replace("i < 20", f"i < {count}")
            output = render_template(part, {}, resolve, engine)
        return output

    def cold() -> str:
        compile_template.cache_clear()
        return render_template(source, {}, resolve, engine)

    jinja = jinja2.Environment(autoescape=False).from_string(
        "{% for i in range(20) %}- {{ getwi('entry ' ~ i) }}\n{% endfor %}"
    )
    return [
        row("Tapster", lambda: render_template(source, {}, resolve, engine), rounds, "fresh isolated context each"),
        row("Tapster, compiled anew", cold, rounds, ""),
        row("replayed for each lookup", replayed, max(rounds // 5, 3), "20 runs"),
        row(
            "jinja2, no isolation",
            lambda: jinja.render(getwi=lambda title: resolve(Lookup("getwi", (title,)))),
            rounds,
            "another language",
        ),
    ]


@attrs.frozen
class Hostile:
    """What a number of hostile runs cost and left."""

    runs: int
    slowest_cpu_ms: float
    threads_more: int
    memory_more_kib: int


def hostile(runs: int, budget_ms: float) -> Hostile:
    """Patterns and templates in turn through one engine of each kind."""
    regex, templates = open_regex_engine(budget_ms=budget_ms), QuickJsTemplateEngine(budget_ms=budget_ms)
    slowest = 0.0
    threads = memory = 0
    for index in range(runs + 100):
        if index == 100:
            threads, memory = threading.active_count(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.process_time()
        try:
            if index % 3:
                regex.find_all(PATTERNS[index % len(PATTERNS)], "g", TEXT)
            else:
                render_template(TEMPLATES[index // 3 % len(TEMPLATES)], {}, lambda lookup: "x", templates)
        except (ScriptBudgetExceeded, TemplateError):
            slowest = max(slowest, (time.process_time() - started) * 1000)
        else:
            raise AssertionError("a hostile run ended well")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    return Hostile(runs, slowest, threading.active_count() - threads, grown)


def table(title: str, rows: Sequence[Row]) -> None:
    print(f"\n{title}")
    print(f"  {'':28}{'cold ms':>10}{'warm ms':>10}{'ratio':>8}")
    base = rows[0][2]
    for label, cold, warm, note in rows:
        print(f"  {label:28}{cold:10.2f}{warm:10.2f}{warm / base:8.2f}  {note}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.text", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="calls a warm figure is the median of")
    parser.add_argument("--hostile", type=int, default=1000, metavar="N", help="hostile runs; 0 leaves them out")
    parser.add_argument("--budget-ms", type=float, default=5, help="budget of each hostile run")
    options = parser.parse_args(arguments)
    table("10,000 macros in one text", macro_rows(options.rounds))
    table("200 regex scripts over a 50 KiB reply", regex_rows(max(options.rounds // 3, 3)))
    table("a template with 20 getwi calls", template_rows(options.rounds))
    if options.hostile:
        found = hostile(options.hostile, options.budget_ms)
        print(
            f"\n{found.runs:,} hostile patterns and templates, budget {options.budget_ms:g} ms: "
            f"slowest {found.slowest_cpu_ms:.0f} ms CPU, {found.threads_more:+d} threads, "
            f"{found.memory_more_kib:+d} KiB"
        )


if __name__ == "__main__":
    main()
