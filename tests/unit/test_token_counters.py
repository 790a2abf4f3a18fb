"""Which counter a model gets, and what is said when it isn't its own."""

import pytest

from tapster.engine.profile import ESTIMATE, NamedCounter, NoTokenCounter, choose_counter, count_tokens, own_counter


@pytest.mark.parametrize(
    ("model", "counter"),
    [
        ("gpt-4o-mini", "o200k"),
        ("openai/gpt-4", "cl100k"),
        ("o3", "o200k"),
        ("deepseek-chat", "deepseek"),
        ("Qwen/Qwen3-8B", "qwen"),
        ("vendor/gemma-9-it", "gemma"),
        ("my-own", None),
    ],
)
def test_families(model: str, counter: str | None) -> None:
    assert own_counter(model) == counter


def test_the_own_counter_is_no_fallback() -> None:
    registry = {"qwen": NamedCounter("qwen", len), "estimate": ESTIMATE}
    choice = choose_counter("qwen-max", ["estimate", "qwen"], registry)
    assert (choice.counter.name, choice.fallback, choice.warnings) == ("qwen", False, ())


def test_a_fallback_names_model_and_counter() -> None:
    counted = count_tokens("hello world", "gemma", ["gemma", "words"])
    assert (counted.count, counted.choice.fallback) == (2, True)
    assert "gemma" in counted.choice.warnings[0].message
    assert "words" in counted.choice.warnings[0].message


def test_no_counter_at_all() -> None:
    with pytest.raises(NoTokenCounter):
        choose_counter("x", ["nothing"])


def test_the_estimate_counts_code_points() -> None:
    assert [ESTIMATE.count(text) for text in ("", "a", "灯灯灯灯", "灯灯灯灯🌙")] == [0, 1, 1, 2]
