"""Messages reshaped for providers with narrower rules: merged roles, one system message, a user message first.

The modes are SillyTavern's prompt post-processing; every mode also has a variant that keeps tool messages.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import attrs

from tapster.engine.ecma import Json

Mode: TypeAlias = Literal[
    "", "merge", "merge_tools", "semi", "semi_tools", "strict", "strict_tools", "single", "claude"
]
PLACEHOLDER: Final = "[Start a new chat]"
_MEDIA: Final = frozenset({"image_url", "video_url", "audio_url"})
_BREAK: Final = "\n\n"


@attrs.frozen
class SpeakerNames:
    """The names that stand before a speech when the roles no longer tell the speakers apart."""

    character: str = ""
    user: str = ""
    group: tuple[str, ...] = ()

    def of_character(self, text: str) -> str:
        """A character's speech with its name, unless a name of the cast is there."""
        named = any(text.startswith(f"{name}: ") for name in (self.character, *self.group))
        return text if named or not self.character else f"{self.character}: {text}"

    def of_user(self, text: str) -> str:
        """The user's speech with its name."""
        return _named(self.user, text) if self.user else text


@attrs.frozen
class _Rules:
    strict: bool = False
    placeholders: bool = False
    single: bool = False
    tools: bool = False


_MODES: Final[Mapping[str, _Rules]] = {
    "merge": _Rules(),
    "claude": _Rules(),
    "merge_tools": _Rules(tools=True),
    "semi": _Rules(strict=True),
    "semi_tools": _Rules(strict=True, tools=True),
    "strict": _Rules(strict=True, placeholders=True),
    "strict_tools": _Rules(strict=True, placeholders=True, tools=True),
    "single": _Rules(strict=True, single=True),
}


@attrs.frozen
class _Draft:
    """A message between steps: text and media pieces, and its other members."""

    role: str
    pieces: tuple[Json, ...]
    rest: Mapping[str, Json] = attrs.field(factory=dict)

    @property
    def empty(self) -> bool:
        return all(piece == "" for piece in self.pieces) and len(self.pieces) <= 1

    def to_json(self) -> Json:
        content: Json = (
            _BREAK.join(self.pieces) if all(isinstance(p, str) for p in self.pieces) else _parts(self.pieces)
        )
        return {"role": self.role, "content": content, **self.rest}


def post_process(messages: Sequence[Json], mode: Mode, names: SpeakerNames) -> list[Json]:
    """The messages in the shape that a mode promises; the empty mode changes nothing.

    Args:
        messages: chat-completion messages; content is text or a list of parts.
    """
    rules = _MODES.get(mode)
    if rules is None:
        return list(messages)
    return [draft.to_json() for draft in _merge([_read(message) for message in messages], rules, names)]


def _read(message: Mapping[str, Json]) -> _Draft:
    content = message.get("content")
    rest = {key: value for key, value in message.items() if key not in ("role", "content")}
    if isinstance(content, list):
        pieces: tuple[Json, ...] = tuple(_piece(part) for part in content)
    else:
        pieces = (content or "",)
    return _Draft(message["role"], pieces, rest)


def _piece(part: Json) -> Json:
    kind = part.get("type")
    if kind == "text":
        return part.get("text", "")
    return part if kind in _MEDIA else ""


def _parts(pieces: Iterable[Json]) -> list[Json]:
    parts: list[Json] = []
    for piece in pieces:
        if not isinstance(piece, str):
            parts.append(piece)
        elif parts and parts[-1].get("type") == "text":
            parts[-1] = {"type": "text", "text": parts[-1]["text"] + _BREAK + piece}
        else:
            parts.append({"type": "text", "text": piece})
    return parts


def _merge(drafts: Sequence[_Draft], rules: _Rules, names: SpeakerNames) -> list[_Draft]:
    merged = _join_neighbours([_without_name(draft, rules, names) for draft in drafts])
    if not merged:
        merged = [_Draft("user", (PLACEHOLDER,))]
    if not rules.strict:
        return merged
    late = [attrs.evolve(d, role="user") if i and d.role == "system" else d for i, d in enumerate(merged)]
    if rules.placeholders:
        late = _with_user_first(late)
    return _merge(late, attrs.evolve(rules, strict=False, single=False), names)


def _with_user_first(drafts: list[_Draft]) -> list[_Draft]:
    placeholder = _Draft("user", (PLACEHOLDER,))
    if drafts[0].role == "system":
        follows = len(drafts) > 1 and drafts[1].role == "user"
        return drafts if follows else [drafts[0], placeholder, *drafts[1:]]
    return drafts if drafts[0].role == "user" else [placeholder, *drafts]


def _without_name(draft: _Draft, rules: _Rules, names: SpeakerNames) -> _Draft:
    """The draft with its speaker's name in the text, and members that the mode doesn't send taken out."""
    head = draft.pieces[0] if draft.pieces and isinstance(draft.pieces[0], str) else None
    text = _spoken(draft, head or "", names)
    role = "user" if draft.role == "tool" and not rules.tools else draft.role
    if rules.single:
        text = names.of_character(text) if role == "assistant" else names.of_user(text) if role == "user" else text
        role = "user"
    dropped = {"name"} if rules.tools else {"name", "tool_calls", "tool_call_id"}
    rest = {key: value for key, value in draft.rest.items() if key not in dropped}
    pieces = (text, *draft.pieces[1:]) if head is not None else _prefixed(text, draft.pieces)
    return _Draft(role, pieces, rest)


def _prefixed(text: str, pieces: tuple[Json, ...]) -> tuple[Json, ...]:
    return (text, *pieces) if text else pieces


def _spoken(draft: _Draft, text: str, names: SpeakerNames) -> str:
    name = draft.rest.get("name")
    if draft.role == "system":
        if name == "example_assistant":
            return names.of_character(text)
        return names.of_user(text) if name == "example_user" else text
    return _named(name, text) if name else text


def _named(name: str, text: str) -> str:
    return text if text.startswith(f"{name}: ") else f"{name}: {text}"


def _join_neighbours(drafts: Sequence[_Draft]) -> list[_Draft]:
    merged: list[_Draft] = []
    for draft in drafts:
        if merged and merged[-1].role == draft.role and not draft.empty and draft.role != "tool":
            merged[-1] = attrs.evolve(merged[-1], pieces=(*merged[-1].pieces, *draft.pieces))
        else:
            merged.append(draft)
    return merged
