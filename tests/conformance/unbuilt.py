"""What the vectors ask for and the product doesn't do yet. This list only ever gets shorter."""

UNBUILT: frozenset[tuple[str, str]] = frozenset(
    {
        ("tavern_api", "catalog.validate"),
        ("tavern_api", "export.jsonl"),
        ("tavern_api", "http.v2"),
        ("tavern_api", "http.v2.focus"),
        ("tavern_api", "import.context"),
        ("tavern_api", "import.jsonl"),
        ("tavern_api", "playthrough.detach"),
        ("tavern_api", "selection.membership"),
        ("tavern_api", "timeline.detach"),
        ("tavern_api", "timeline.focus"),
        ("tavern_api", "timeline.headForVariant"),
        ("tavern_api", "timeline.project"),
        ("tavern_api", "timeline.reconcile"),
        ("tavern_api", "timeline.validate"),
        ("tavern_api", "timeline.withHead"),
        ("tavern_api", "workspace.path"),
        ("tavern_api", "workspace.sequence"),
        ("user_reports", "user.gateway"),
    }
)
"""(file stem, area); area ``*`` stands for a whole file."""


def is_unbuilt(stem: str, area: str) -> bool:
    """Whether a line is known and not built."""
    return (stem, area) in UNBUILT or (stem, "*") in UNBUILT
