"""The v1 audit: everything clipped, every list cut, nothing sensitive kept (spec/trace §9)."""

import json
from typing import Any

from tapster.engine.ecma import utf16_length
from tapster.engine.trace import AuditFacts, AuditLimits, audit_answer, begin_audit, digest

Json = Any
LONG = "界😀" * 400


def facts(**changes: Any) -> AuditFacts:
    base: dict[str, Any] = {"session_id": "s", "capture_id": "c", "turn": 3, "step": 1, "attempt": 2, "now": 9}
    return AuditFacts(**{**base, **changes})


def decision(**changes: Json) -> Json:
    return {"resourceId": "b", "entryId": "1", "decision": "included", "reason": "constant", **changes}


def test_an_audit_names_its_step() -> None:
    audit = begin_audit(facts(profile_text="Hi 😀"))
    assert (audit["id"], audit["captureId"], audit["status"]) == ("3:1:2", "c", "awaiting-header")
    assert audit["assembly"]["systemCharacters"] == 5
    assert audit["assembly"]["systemFingerprint"] == digest("Hi 😀")
    assert audit["sensitiveContentStored"] is False


def test_only_four_parameters_are_kept() -> None:
    config = {"temperature": 1, "stop": ["x"], "topP": 0.5, "secret": "k"}
    assert begin_audit(facts(call_config=config))["assembly"]["callConfig"] == {"temperature": 1, "stop": ["x"]}


def test_everything_is_bounded() -> None:
    keys = [LONG] * 99
    books = [{"resource": {"id": LONG, "name": LONG}, "decisions": [decision(primaryKeys=keys)] * 50}] * 40
    audit = begin_audit(
        facts(
            fingerprint=LONG,
            selection={"presetId": LONG, "worldBookIds": keys * 9, "userProfileId": 5},
            world_book_selection={"explicitIds": keys * 9, "order": LONG},
            resources={"preset": {"id": LONG}, "worldBooks": [{"id": "x"}] * 99, "userProfile": "no"},
            world_books=books,
            activation={"claimEventSeqs": list(range(9)), "scannedCharacters": "x", "truncated": 1},
            diagnostics=[{"code": LONG, "severity": LONG, "message": LONG, "entryId": LONG}] * 99,
        )
    )
    assert utf16_length(audit["assembly"]["fingerprint"]) == 201
    assert audit["assembly"]["fingerprint"].endswith("…")
    assert len(audit["selection"]["worldBookIds"]) == 200
    assert audit["selection"]["userProfileId"] is None
    assert len(audit["worldBooks"]) == 16
    assert sum(len(book["decisions"]) for book in audit["worldBooks"]) == 128
    assert len(audit["worldBooks"][0]["decisions"][0]["primaryKeys"]) == 16
    assert len(audit["resources"]["worldBooks"]) == 32
    assert audit["resources"]["userProfile"] is None
    assert audit["activation"]["claimEventSeqs"] == [5, 6, 7, 8]
    assert audit["activation"]["scannedCharacters"] == 0
    assert audit["activation"]["truncated"] is False
    assert len(audit["diagnostics"]) == 64
    lengths = {key: utf16_length(audit["diagnostics"][0][key]) for key in ("code", "severity", "message", "entryId")}
    assert lengths == {"code": 121, "severity": 25, "message": 321, "entryId": 121}


def test_the_four_source_order_has_its_lists() -> None:
    audit = begin_audit(facts(world_book_selection={"presetBoundIds": ["p"], "explicitIds": []}))
    assert audit["worldBookSelection"]["presetBoundIds"] == ["p"]
    assert "characterBoundIds" not in audit["worldBookSelection"]


def row(number: int, size: int) -> Json:
    return {"id": f"r{number}", "pad": "x" * size}


def test_an_answer_that_fits_is_whole() -> None:
    answer = audit_answer("s", [row(1, 10)], 7)
    assert answer["storage"]["maxSessions"] == 128
    assert answer["storage"]["persistedBytes"] == 7
    assert "authority" in answer
    assert "responseTrimmed" not in answer


def test_an_answer_loses_its_metadata_first() -> None:
    limits = AuditLimits(max_total_bytes=1000)
    rows = [row(number, 180) for number in range(4)]
    answer = audit_answer("s", rows, 7, limits)
    assert answer["responseMetadataTrimmed"] is True
    assert answer["records"] == rows
    assert "authority" not in answer
    assert set(answer["storage"]) == {"kind", "maxRecordBytes", "maxTotalBytes", "persistedBytes"}


def test_an_answer_then_loses_its_oldest_rows_but_one() -> None:
    limits = AuditLimits(max_total_bytes=700)
    answer = audit_answer("s", [row(number, 180) for number in range(9)], 7, limits)
    assert answer["responseTrimmed"] is True
    assert answer["records"][-1]["id"] == "r8"
    assert len(json.dumps(answer, separators=(",", ":"))) <= 700
    tiny = audit_answer("s", [row(1, 300), row(2, 900)], 7, AuditLimits(max_total_bytes=500))
    assert [kept["id"] for kept in tiny["records"]] == ["r2"]
