"""The fast path agrees with the exact engine wherever it takes a pattern."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tapster.actors.scripts import QuickJsRegexEngine
from tapster.engine.text.js_regex import FastRegexEngine, fast_search
from tapster.engine.text.ports import InvalidPattern, RegexMatch

EXACT = QuickJsRegexEngine(budget_ms=2000)
FAST = FastRegexEngine(EXACT)
LETTERS = "abkKsS_1 \n\r-.é中😀ſK\u2028\u00a0"
texts = st.text(alphabet=LETTERS, max_size=24)
characters = st.sampled_from([*"abkKsS1_- é中😀", r"\.", r"\n", r"\x61", r"\u4e2d", r"\/", r"\*"])
classes = st.sampled_from(
    [
        ".",
        r"\w",
        r"\W",
        r"\d",
        r"\s",
        r"\S",
        "[a-k]",
        "[^a]",
        "[^\\n]",
        r"[\w-]",
        r"[^\s中]",
        "[K-S1]",
        r"[\u4e00-\u9fff]",
    ]
)
atoms = st.one_of(characters, classes, st.sampled_from(["^", "$", r"\b", r"\B", "(?=a)", r"\1"]))
quantifiers = st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,3}?", "{1,}"])


def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = st.sampled_from(["({})", "(?:{})", "(?<n>{})"])
    return st.one_of(
        st.builds(lambda shape, body: shape.replace("{}", body), group, inner),
        st.builds(lambda body, quantifier: f"(?:{body}){quantifier}", inner, quantifiers),
        st.builds(lambda body, quantifier: f"({body}){quantifier}", inner, quantifiers),
        st.builds("|".join, st.lists(inner, min_size=2, max_size=3)),
        st.builds("".join, st.lists(inner, min_size=2, max_size=4)),
    )


quantified = st.builds(lambda atom, quantifier: atom + quantifier, st.one_of(characters, classes), quantifiers)
patterns = st.recursive(st.one_of(atoms, quantified, quantified), grow, max_leaves=8)
flags = st.sets(st.sampled_from("gimsu")).map(lambda chosen: "".join(sorted(chosen)))


def outcome(engine: FastRegexEngine | QuickJsRegexEngine, pattern: str, flag: str, text: str) -> list[RegexMatch] | str:
    try:
        return list(engine.find_all(pattern, flag, text))
    except InvalidPattern:
        return "invalid"


@settings(max_examples=400, deadline=None)
@given(patterns, flags, texts)
def test_fast_path_agrees_with_quickjs(pattern: str, flag: str, text: str) -> None:
    if fast_search(pattern, flag, text) is not None:
        assert outcome(FAST, pattern, flag, text) == outcome(EXACT, pattern, flag, text)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=r"ab()[]{}?*+|^$\.,-:<>=!12wkuxn/ ", max_size=12), flags, texts)
def test_any_pattern_is_taken_or_refused_alike(pattern: str, flag: str, text: str) -> None:
    if fast_search(pattern, flag, text) is not None:
        assert outcome(FAST, pattern, flag, text) == outcome(EXACT, pattern, flag, text)
