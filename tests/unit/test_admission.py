"""Parameter admission: which failure names which parameter, and when a retry is allowed."""

import pytest

from tapster.engine.profile import CallFailure, Series, rejected_parameters, withdraw_after_error, withdraw_preflight

SUPPLIED = {"temperature": 1, "maxTokens": 5, "reasoningEffort": "max", "stop": ["#"]}


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        ("max_tokens must be at most 10", ("maxTokens",)),
        ("Invalid value for 'reasoning.effort'", ("reasoningEffort",)),
        ("output_config.effort is not supported", ("reasoningEffort",)),
        ("Only the default temperature is supported", ("temperature",)),
        ("Cannot set both temperature and stop sequences", ("temperature", "stop")),
        ("invalid temperatures", ()),
        ("invalid_request_error: temperature", ("temperature",)),
        ("temperature is fine", ()),
        ("x" * 8192 + " invalid temperature", ()),
    ],
)
def test_a_named_and_refused_parameter(message: str, fields: tuple[str, ...]) -> None:
    assert rejected_parameters(CallFailure(status=400, message=message), SUPPLIED) == fields


@pytest.mark.parametrize("code", ["rate_limit_exceeded", "Server_Error", "CONTEXT_WINDOW_EXCEEDED", "OTHER"])
def test_other_causes_are_no_rejection(code: str) -> None:
    assert rejected_parameters(CallFailure(code, None, "invalid temperature"), SUPPLIED) == ()


@pytest.mark.parametrize("status", [401, 413, 429, 500, 503, 200])
def test_other_statuses_are_no_rejection(status: int) -> None:
    assert rejected_parameters(CallFailure(None, status, "invalid temperature"), SUPPLIED) == ()


def test_each_parameter_is_withdrawn_once() -> None:
    failure = CallFailure("HTTP_400", 400, "temperature not supported")
    series = withdraw_after_error(Series(), failure, SUPPLIED, output_started=False, cancelled=False)
    assert series is not None
    assert "temperature" not in series.admitted(SUPPLIED)
    assert series.withdrawn[0].to_json() == {
        "parameter": "temperature",
        "stage": "provider",
        "reason": "parameter-rejected",
        "code": "HTTP_400",
        "status": 400,
    }
    assert withdraw_after_error(series, failure, SUPPLIED, output_started=False, cancelled=False) is None


def test_no_retry_after_output_cancellation_or_four_attempts() -> None:
    failure = CallFailure("HTTP_400", 400, "temperature not supported")
    assert withdraw_after_error(Series(), failure, SUPPLIED, output_started=True, cancelled=False) is None
    assert withdraw_after_error(Series(), failure, SUPPLIED, output_started=False, cancelled=True) is None
    assert withdraw_after_error(Series(retries=4), failure, SUPPLIED, output_started=False, cancelled=False) is None


def test_preflight_counts_no_retry() -> None:
    series = withdraw_preflight(Series(), CallFailure("INVALID_PARAMETER", None, "stop not allowed"), SUPPLIED)
    assert series is not None
    assert (series.retries, series.withdrawn[0].stage) == (0, "preflight")
