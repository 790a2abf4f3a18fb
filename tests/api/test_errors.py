"""The one table from errors to answers (spec/http §3)."""

import pytest

from tapster.actors.library import ResourceNotFound
from tapster.api.errors import Family, error_answer
from tapster.engine.errors import FormatError, RequestError, StoreError, TapsterError
from tapster.engine.policy import RelationLimitError
from tapster.runtime import ActorGone, AskCycle, Draining, ManyErrors, Overloaded

GONE = ResourceNotFound("none", code="USER_NOT_FOUND", details={"id": "u"})


@pytest.mark.parametrize(
    ("family", "error", "status", "body"),
    [
        ("presets", FormatError("slug", "bad"), 400, {"ok": False, "error": "bad"}),
        ("settings", RequestError("no", code="METHOD_NOT_ALLOWED", status=405), 405, {"ok": False, "error": "no"}),
        ("audit", StoreError("disk"), 500, {"ok": False, "error": "disk"}),
        (
            "users",
            FormatError("slug", "bad"),
            400,
            {"ok": False, "error": {"code": "INVALID_USER_REQUEST", "message": "bad"}},
        ),
        ("users", GONE, 404, {"ok": False, "error": {"code": "USER_NOT_FOUND", "message": "none"}}),
        (
            "world-books",
            StoreError("disk"),
            500,
            {"ok": False, "error": {"code": "WORLD_BOOK_API_ERROR", "message": "disk"}},
        ),
        (
            "characters",
            RequestError("x", details={"field": "name", "conflicts": [1]}),
            400,
            {
                "ok": False,
                "error": {
                    "code": "INVALID_CHARACTER_REQUEST",
                    "message": "x",
                    "field": "name",
                    "details": {"conflicts": [1]},
                },
            },
        ),
        ("v2", RequestError("x"), 400, {"ok": False, "error": "x"}),
        (
            "v2",
            RequestError("x", code="PLAY_NOT_FOUND", status=404),
            404,
            {"ok": False, "error": "x", "code": "PLAY_NOT_FOUND"},
        ),
        ("v3", RequestError("x"), 400, {"ok": False, "code": "INVALID_REQUEST", "error": "x"}),
        (
            "v3",
            StoreError("secret path"),
            500,
            {"ok": False, "code": "TRACE_READ_FAILED", "error": "the trace records could not be read"},
        ),
        (
            "own",
            RequestError("x", details={"a": 1}),
            400,
            {"code": "INVALID_REQUEST", "message": "x", "details": {"a": 1}},
        ),
    ],
)
def test_bodies(family: Family, error: Exception, status: int, body: object) -> None:
    answer = error_answer(family, error)
    assert (answer.status, answer.body) == (status, body)


@pytest.mark.parametrize("error", [Overloaded("x"), Draining(), ActorGone("x", taken=True)])
def test_faults_that_pass_say_when_to_try_again(error: Exception) -> None:
    answer = error_answer("own", error)
    assert answer.status == 503
    assert answer.headers["Retry-After"] == "1"


def test_a_bug_is_a_bug() -> None:
    assert error_answer("own", AskCycle(["a", "b"])).status == 500


def test_of_many_errors_the_first_answers() -> None:
    answer = error_answer("users", ManyErrors([GONE, StoreError("x")]))
    assert answer.status == 404


@pytest.mark.parametrize(
    ("code", "status"),
    [("USER_WORLD_BOOK_BINDING_LIMIT_REACHED", 409), ("USER_WORLD_BOOK_BINDING_STORAGE_LIMIT_REACHED", 413)],
)
def test_a_code_alone_can_fix_the_status(code: str, status: int) -> None:
    answer = error_answer("users", RelationLimitError("full", code=code))
    assert (answer.status, answer.body["error"]["code"]) == (status, code)
    assert ("Connection" in answer.headers) is (status == 413)


def test_an_unexpected_error_tells_nothing() -> None:
    body = error_answer("own", TapsterError("hidden? no: declared", status=500)).body
    assert body["code"] == "INTERNAL_ERROR"
