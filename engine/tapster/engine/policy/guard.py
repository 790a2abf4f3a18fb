"""What a tool may not do while RP mode is on.

Source: spec/loader §12.3.
"""

import re

import attrs

from tapster.engine.ecma import Json, is_record, trim

_ALWAYS = frozenset({"write", "edit", "str_replace_editor", "bash", "pwsh", "run_code", "web_fetch", "grep"})
_READERS = frozenset({"read", "read_image"})
_SECRET = re.compile(
    r"\.env(?:\..*)?|\.credentials\.ya?ml|credentials\.json|secrets\.json|\.netrc"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)|.+\.(?:pem|key|p12|pfx)",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)


@attrs.frozen
class GuardDecision:
    """Whether a call is blocked; ``rule`` says by which rule."""

    blocked: bool
    rule: str | None = None


_ALLOWED = GuardDecision(False)


def guard_tool(tool: str, arguments: Json, workspace: str | None) -> GuardDecision:
    """Judge one tool call of a session whose RP mode is in effect.

    Args:
        arguments: the parsed arguments, anything else than a record counts as none.
        workspace: absolute path of the session's workspace, or None.
    """
    given = arguments if is_record(arguments) else {}
    if tool in _ALWAYS:
        return GuardDecision(True, "tool")
    if _truthy(given.get("sandbox_permissions")):
        return GuardDecision(True, "sandbox-permissions")
    if tool in _READERS:
        return _guard_read(given.get("file_path"), workspace)
    if tool == "glob":
        return _guard_glob(given.get("path"), workspace)
    return _ALLOWED


def _guard_read(path: Json, workspace: str | None) -> GuardDecision:
    if not isinstance(path, str) or not trim(path):
        return GuardDecision(True, "no-path")
    resolved = _inside(path, workspace)
    if resolved is None:
        return GuardDecision(True, "outside-workspace")
    if is_secret_name(resolved.rpartition("/")[2]):
        return GuardDecision(True, "secret")
    return _ALLOWED


def _guard_glob(path: Json, workspace: str | None) -> GuardDecision:
    if not isinstance(path, str) or not trim(path):
        return _ALLOWED if workspace else GuardDecision(True, "no-workspace")
    return _ALLOWED if _inside(path, workspace) is not None else GuardDecision(True, "outside-workspace")


def is_secret_name(name: str) -> bool:
    """Whether a file name is one that usually holds secrets."""
    return _SECRET.fullmatch(name) is not None


def _inside(path: str, workspace: str | None) -> str | None:
    """The lexically resolved path when it lies in the workspace, else None; symlinks are not followed."""
    if not workspace:
        return None
    root = _resolve("", workspace)
    resolved = _resolve(root, path)
    return resolved if resolved == root or resolved.startswith(root.rstrip("/") + "/") else None


def _resolve(base: str, path: str) -> str:
    path = path.replace("\\", "/") if _is_windows(base or path) else path
    absolute = path if path.startswith("/") or _is_windows(path) else f"{base}/{path}"
    parts: list[str] = []
    for part in absolute.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    joined = "/".join(parts)
    return joined if _is_windows(joined) else f"/{joined}"


def _is_windows(path: str) -> bool:
    return bool(re.match(r"[A-Za-z]:(?:[\\/]|$)", path))


def _truthy(value: Json) -> bool:
    """JavaScript truth: only null, false, 0 and the empty string are false."""
    return isinstance(value, dict | list) or bool(value)
