"""One whole compilation: from what a session has bound to sections, call config, diagnostics and audit.

The order is fixed: selection, preset, activation context, card, persona, relations, world books, names, rendering,
audit. The caller has resolved the resources and run the activation; this is where it all comes together.

Source: spec/loader §7.
"""

from collections.abc import Mapping
from typing import Literal

import attrs

from tapster.engine.ecma import Json, sha256_json, utf16_length
from tapster.engine.formats.presets import Preset
from tapster.engine.limits import PROFILE_BYTES_DEFAULT
from tapster.engine.policy import Selection, selection_json
from tapster.engine.text.ports import Checkpoint, go_on
from tapster.engine.text.tavern_macros import Draw, MacroContext
from tapster.engine.trace.sections import NamedPart, name_parts

from .budget import fit_profile
from .call_config import CallConfig, call_config
from .inputs import LoreEntry, ProfileCharacter, ProfileInput, ProfileUser
from .names import macro_context
from .parts import PROFILE_ORDER, PROFILE_SECTION, Diagnostic, joined
from .render import UserInjection

SystemPromptMode = Literal["append", "replace"]


@attrs.frozen
class ResolvedResources:
    """What a selection's ids stand for at this moment; None is "not bound" or "not found"."""

    preset: Preset | None = None
    character: ProfileCharacter | None = None
    user: ProfileUser | None = None
    diagnostics: tuple[Diagnostic, ...] = ()


@attrs.frozen
class ActivatedLore:
    """What the activation gave for this assembly.

    ``resources`` are the audit rows ``{resource, budget, decisions}`` of each book, ``selection`` the composition of
    spec/loader §5, ``activation`` the audit of the activation context; all JSON by nature. ``variables`` are the
    session's, as active entries left them.
    """

    entries: tuple[LoreEntry, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    resources: tuple[Json, ...] = ()
    selection: Json = None
    activation: Json = None
    variables: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class CompileRequest:
    """One request to compile.

    ``resolve_only`` is for a session with an applied assembly strategy: resources and audit, no text.
    """

    session_id: str | None
    selection: Selection
    session_selection: Selection
    resources: ResolvedResources = attrs.field(factory=ResolvedResources)
    lore: ActivatedLore = attrs.field(factory=ActivatedLore)
    host_context: Mapping[str, Json] = attrs.field(factory=dict)
    include_greeting: bool = True
    max_bytes: int = PROFILE_BYTES_DEFAULT
    resolve_only: bool = False


@attrs.frozen
class ProfileSnapshot:
    """A finished compilation; nothing in it changes afterwards."""

    system_text: str
    sections: tuple[NamedPart, ...]
    call_config: CallConfig
    system_prompt_mode: SystemPromptMode
    macro_context: MacroContext
    diagnostics: tuple[Diagnostic, ...]
    active_lore: tuple[Json, ...]
    lore_sides: frozenset[bool]
    """Which sides of the character have lore: before (True), after (False)."""
    user_injection: UserInjection
    resources: ResolvedResources
    audit: Mapping[str, Json]

    @property
    def fingerprint(self) -> str:
        """Hex SHA-256 over the audit; equal for equal inputs."""
        return str(self.audit["fingerprint"])


def compile_profile(request: CompileRequest, draw: Draw, *, checkpoint: Checkpoint = go_on) -> ProfileSnapshot:
    """Compile a session's profile for one assembly.

    Args:
        draw: the random source of ``{{random}}`` and ``{{roll}}``.
        checkpoint: called at every prompt that is rendered.

    Raises:
        ProfileTooLarge: preset, card and persona alone are over the byte budget.

    Source: spec/loader §7, §8.
    """
    resources, lore = request.resources, request.lore
    context = macro_context(request.host_context, resources.character, resources.user)
    diagnostics = (*resources.diagnostics, *lore.diagnostics)
    given = ProfileInput(
        resources.preset,
        resources.character,
        resources.user,
        lore.entries,
        request.selection.character,
        request.include_greeting,
        request.max_bytes,
        lore.variables,
    )
    if request.resolve_only:
        return _snapshot(request, context, "", (), diagnostics, lore.entries, UserInjection())
    fitted = fit_profile(given, context, draw, checkpoint)
    rendering = fitted.rendering
    return _snapshot(
        request,
        context,
        joined(rendering.parts),
        name_parts((part.text, part.sources) for part in rendering.parts),
        (*diagnostics, *rendering.diagnostics),
        fitted.lore,
        rendering.user_injection,
    )


def _snapshot(
    request: CompileRequest,
    context: MacroContext,
    text: str,
    sections: tuple[NamedPart, ...],
    diagnostics: tuple[Diagnostic, ...],
    lore: tuple[LoreEntry, ...],
    injection: UserInjection,
) -> ProfileSnapshot:
    active = tuple(entry.reported_id for entry in lore)
    sides = frozenset(entry.before for entry in lore if entry.outlet is None)
    preset = request.resources.preset
    mode: SystemPromptMode = "append" if preset is None or request.resolve_only else preset.system_prompt_mode
    config = call_config(preset)
    audit = _audit(request, text, mode, config, diagnostics, active)
    return ProfileSnapshot(
        text, sections, config, mode, context, diagnostics, active, sides, injection, request.resources, audit
    )


def _audit(
    request: CompileRequest,
    text: str,
    mode: SystemPromptMode,
    config: CallConfig,
    diagnostics: tuple[Diagnostic, ...],
    active: tuple[Json, ...],
) -> Mapping[str, Json]:
    """The audit of spec/loader §7: ids and sizes only, no prompt body, message text or lore content."""
    audit: dict[str, Json] = {
        "schemaVersion": 1,
        "sessionId": request.session_id,
        "selection": selection_json(request.selection),
        "sessionSelection": selection_json(request.session_selection),
        "worldBookSelection": request.lore.selection,
        "resources": _audit_resources(request),
        "diagnostics": [diagnostic.to_json() for diagnostic in diagnostics],
        "activeLoreEntries": list(active),
        "worldBooks": {"resources": list(request.lore.resources)},
        "activation": request.lore.activation,
        "composition": {
            "section": {"name": PROFILE_SECTION, "order": PROFILE_ORDER},
            "systemPromptMode": mode,
            "profileCharacters": utf16_length(text),
            "callConfigFields": list(config.to_json()),
        },
    }
    return {**audit, "fingerprint": sha256_json(audit)}


def _audit_resources(request: CompileRequest) -> Json:
    preset, character, user = request.resources.preset, request.resources.character, request.resources.user
    books = [row["resource"] for row in request.lore.resources if isinstance(row, dict) and "resource" in row]
    return {
        "preset": preset and {"id": preset.id, "name": preset.name, "updatedAt": preset.updated_at},
        "character": character and {"id": character.id, "name": character.name, "updatedAt": character.updated_at},
        "user": user and {"id": user.id, "name": user.name, "description": user.description},
        "worldBooks": books,
    }
