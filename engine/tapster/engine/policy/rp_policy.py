"""The text that tells the model what RP mode locks, and its document.

Source: spec/loader §12.2.
"""

from tapster.engine.ecma import Json, is_record, parse_json, trim, utf8
from tapster.engine.errors import FormatError
from tapster.engine.limits import RP_POLICY_BYTES

BLOCK_REASON = (
    "Roleplay mode is on: writing, shell commands, fetching from the web, and reading outside the workspace or in "
    "secret files are locked until roleplay mode is turned off on the card."
)
"""What a blocked tool call answers, and the default policy text."""


def read_rp_policy(data: bytes | None, default: str = BLOCK_REASON) -> str:
    """The policy text of a stored document; a missing, oversized or malformed one gives the default."""
    if data is None or len(data) > RP_POLICY_BYTES:
        return default
    try:
        document = parse_json(data.decode("utf-8", "strict"))
    except (FormatError, UnicodeDecodeError):
        return default
    section = document.get("section") if is_record(document) else None
    if not isinstance(section, str) or document.get("schemaVersion") != 1:
        return default
    return section.replace("\r\n", "\n") if len(utf8(section)) <= RP_POLICY_BYTES else default


def check_rp_policy(section: Json) -> str:
    """A policy text to store; blank text means no section (the lock itself still applies).

    Raises:
        FormatError: slug ``rp-policy-not-string`` or ``rp-policy-too-large``.
    """
    if not isinstance(section, str):
        raise FormatError("rp-policy-not-string", "the RP policy text must be a string")
    text = section.replace("\r\n", "\n")
    if len(utf8(text)) > RP_POLICY_BYTES:
        raise FormatError("rp-policy-too-large", f"the RP policy text is over {RP_POLICY_BYTES} bytes")
    return text


def rp_policy_json(section: str) -> Json:
    """The document of a policy text."""
    return {"schemaVersion": 1, "section": section}


def rp_policy_section(section: str, *, effective: bool) -> str | None:
    """The text of the section ``rp:policy``, or None when there is none to show."""
    return section if effective and trim(section) else None
