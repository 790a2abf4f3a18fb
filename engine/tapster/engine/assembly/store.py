"""The preset store as pure state: a library, applied snapshots, and the rules between them.

Nothing here reads or writes a file: a caller loads the document, applies an operation, and saves what comes back.
Source: spec/assembler §15.
"""

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import attrs

from tapster.engine import limits
from tapster.engine.ecma import Json, is_number, is_record, stringify, utf8, utf16_length
from tapster.engine.errors import StoreError, TapsterError

from .catalogue import NATIVE_ID, ProviderPreset, bare_builtins, read_catalogue
from .errors import AssemblyRefused, InvalidAssembly
from .history.policy import HistoryPolicy
from .ids import SESSION_KEY, is_preset_id
from .preset import AssemblyPreset, normalise_preset

Mode: TypeAlias = Literal["play", "native"]
Selection: TypeAlias = AssemblyPreset | None
"""An applied snapshot; None is a deliberate off."""
STORE_TOO_LARGE = "ASSEMBLY_STORE_TOO_LARGE"
_MODES: tuple[Mode, ...] = ("native", "play")


@attrs.frozen
class StoreDocument:
    """The stored state: own presets and applied snapshots, by id and by session key."""

    presets: Mapping[str, AssemblyPreset] = attrs.field(factory=dict)
    selections: Mapping[str, Selection] = attrs.field(factory=dict)

    def to_json(self) -> dict[str, Json]:
        """The document ``assembly-presets.json`` holds.

        Raises:
            StoreError: ``ASSEMBLY_STORE_TOO_LARGE`` above the limit.
        """
        value: dict[str, Json] = {
            "version": 1,
            "presets": {preset_id: stored_json(preset) for preset_id, preset in self.presets.items()},
            "selections": {
                key: None if preset is None else stored_json(preset) for key, preset in self.selections.items()
            },
        }
        if len(utf8(stringify(value))) > limits.ASSEMBLY_STORE_BYTES:
            raise StoreError("the assembly presets exceed the store's limit", code=STORE_TOO_LARGE)
        return value


def stored_json(preset: AssemblyPreset) -> dict[str, Json]:
    """A preset's stored form with its id attached."""
    return preset.to_json() if preset.id is None else {"id": preset.id, **preset.to_json()}


def read_store(value: Json) -> StoreDocument:
    """A validated document; None is a missing file and gives an empty one.

    Raises:
        StoreError: ``ASSEMBLY_STORE_INVALID``, ``STORED_PRESET_INVALID`` or ``STORED_SELECTION_INVALID``.
    """
    if value is None:
        return StoreDocument()
    is_one = is_record(value) and is_number(value.get("version")) and value["version"] == 1
    if not is_one or not is_record(value.get("presets")) or not is_record(value.get("selections")):
        raise StoreError("the assembly preset store isn't valid", code="ASSEMBLY_STORE_INVALID")
    presets = {}
    for preset_id, preset in value["presets"].items():
        if not is_preset_id(preset_id) or preset_id.startswith("builtin-"):
            raise StoreError(f"{preset_id} can't be the id of a stored preset", code="STORED_PRESET_ID_INVALID")
        presets[preset_id] = _stored(preset, preset_id, "STORED_PRESET_INVALID")
    selections = {key: _selection(key, preset) for key, preset in value["selections"].items()}
    return StoreDocument(presets, selections)


def _selection(key: str, value: Json) -> Selection:
    has_id = value is None or (is_record(value) and is_snapshot_id(value.get("id")))
    if not SESSION_KEY.fullmatch(key) or not has_id:
        raise StoreError(f"the stored selection of {key} isn't valid", code="STORED_SELECTION_INVALID")
    return None if value is None else _stored(value, value["id"], "STORED_SELECTION_INVALID")


def _stored(value: Json, preset_id: str, code: str) -> AssemblyPreset:
    try:
        return attrs.evolve(normalise_preset(value), id=preset_id)
    except TapsterError as error:
        raise StoreError(f"the stored preset {preset_id} isn't valid: {error.message}", code=code) from error


def is_snapshot_id(value: Json) -> bool:
    """Whether a value may name an applied snapshot: any text of 1 to 200 characters."""
    return isinstance(value, str) and 1 <= utf16_length(value) <= limits.ASSEMBLY_NAME_UNITS


@attrs.frozen
class ListedPreset:
    """One line of the catalogue."""

    id: str
    preset: AssemblyPreset
    is_builtin: bool = False
    plugin_id: str | None = None

    def to_json(self) -> dict[str, Json]:
        value: dict[str, Json] = {"id": self.id, **self.preset.to_json()}
        if self.is_builtin:
            value["builtin"] = True
        if self.plugin_id is not None:
            value["pluginId"] = self.plugin_id
        return value


@attrs.define(eq=False)
class PresetStore:
    """The presets of one assembler: built-in, offered, own, and applied to sessions.

    Each operation replaces ``document`` as a whole or raises and leaves everything as it was.

    Attributes:
        document: the stored state.
        new_id: makes ids of saved presets.
        unified: whether new bindings use the raw session id.
        mode: the active scope, None when there is none.
        default_id: what ``play`` sessions without a selection get.
    """

    new_id: Callable[[], str]
    document: StoreDocument = attrs.field(factory=StoreDocument)
    unified: bool = False
    mode: Mode | None = None
    default_id: str | None = NATIVE_ID
    builtins: tuple[AssemblyPreset, ...] = attrs.field(factory=bare_builtins)
    _providers: list[tuple[ProviderPreset, ...]] = attrs.field(factory=list)

    def catalogue(self) -> list[ListedPreset]:
        """Built-in, offered and own presets; never applied snapshots."""
        offered = [
            ListedPreset(str(item.preset.id), item.preset, is_builtin=True, plugin_id=item.plugin_id)
            for catalogue in self._providers
            for item in catalogue
        ]
        builtin = [ListedPreset(str(preset.id), preset, is_builtin=True) for preset in self.builtins]
        own = [ListedPreset(preset_id, preset) for preset_id, preset in self.document.presets.items()]
        return [*builtin, *offered, *own]

    def get(self, preset_id: str) -> ListedPreset:
        """One preset of the catalogue.

        Raises:
            AssemblyRefused: ``ASSEMBLY_PRESET_NOT_FOUND`` (404).
        """
        for listed in self.catalogue():
            if listed.id == preset_id:
                return listed
        raise AssemblyRefused(f"there is no assembly preset {preset_id}", code="ASSEMBLY_PRESET_NOT_FOUND", status=404)

    def _require_own(self, preset_id: str, message: str, code: str) -> None:
        if self.get(preset_id).is_builtin:
            raise InvalidAssembly(message, code=code)

    def save(self, value: Json, preset_id: str | None = None) -> ListedPreset:
        """Save a preset, as a new one without an id.

        Raises:
            InvalidAssembly: a bad preset, or ``PRESET_BUILTIN`` for one that can only be copied.
            AssemblyRefused: ``ASSEMBLY_PRESET_NOT_FOUND`` (404).
        """
        if preset_id is not None:
            self._require_own(preset_id, "a built-in preset must be copied before it is edited", "PRESET_BUILTIN")
        preset = normalise_preset(value)
        key = self.new_id() if preset_id is None else preset_id
        saved = attrs.evolve(preset, id=key)
        self._commit(attrs.evolve(self.document, presets={**self.document.presets, key: saved}))
        return ListedPreset(key, saved)

    def remove(self, preset_id: str) -> None:
        """Remove an own preset that no session has applied.

        Raises:
            InvalidAssembly: ``PRESET_BUILTIN``.
            AssemblyRefused: not found (404) or ``ASSEMBLY_PRESET_APPLIED`` (409).
        """
        self._require_own(preset_id, "a built-in preset can't be deleted", "PRESET_BUILTIN")
        if any(preset is not None and preset.id == preset_id for preset in self.document.selections.values()):
            raise AssemblyRefused(
                f"the preset {preset_id} is applied to a session", code="ASSEMBLY_PRESET_APPLIED", status=409
            )
        presets = {key: preset for key, preset in self.document.presets.items() if key != preset_id}
        self._commit(attrs.evolve(self.document, presets=presets))

    def register_presets(self, plugin_id: object, presets: object) -> Callable[[], None]:
        """Offer a plug-in's presets; the disposer withdraws them, applied snapshots stay.

        Raises:
            InvalidAssembly: nothing is offered.
        """
        catalogue = read_catalogue(plugin_id, presets, {listed.id: listed for listed in self.catalogue()})
        self._providers.append(catalogue)

        def withdraw() -> None:
            if any(known is catalogue for known in self._providers):
                self._providers[:] = [known for known in self._providers if known is not catalogue]

        return withdraw

    def apply(self, session_id: str, preset_id: str | None) -> Selection:
        """Copy a preset, as it is now, to a session; None is explicitly off.

        Raises:
            InvalidAssembly: ``SESSION_ID_INVALID``.
            AssemblyRefused: ``ASSEMBLY_PRESET_NOT_FOUND`` (404).
        """
        key = self._own_key(session_id)
        preset = None if preset_id is None else attrs.evolve(self.get(preset_id).preset, id=preset_id)
        return self._select(key, preset)

    def apply_snapshot(self, session_id: str, value: Json) -> Selection:
        """Apply a preset that is in no library; it needs an ``id`` of its own.

        Raises:
            InvalidAssembly: ``SESSION_ID_INVALID``, ``SNAPSHOT_ID_INVALID`` or a bad preset.
        """
        key = self._own_key(session_id)
        if value is None:
            return self._select(key, None)
        if not is_record(value) or not is_snapshot_id(value.get("id")):
            raise InvalidAssembly("a snapshot needs a preset id of 1 to 200 characters", code="SNAPSHOT_ID_INVALID")
        return self._select(key, attrs.evolve(normalise_preset(value), id=value["id"]))

    def update_history_policy(self, session_id: str, policy: HistoryPolicy) -> Selection:
        """Change the policy of a session's applied snapshot, never the library preset."""
        applied = self.selection(session_id)
        if applied is None:
            raise AssemblyRefused(
                f"session {session_id} has no applied preset", code="ASSEMBLY_PRESET_NOT_FOUND", status=404
            )
        return self._select(self._own_key(session_id), attrs.evolve(applied, history_policy=policy))

    def selection(self, session_id: str) -> Selection:
        """What applies to a session: its own entry, older scopes, the default in ``play``, or nothing."""
        for key in self._lookup(session_id):
            if key in self.document.selections:
                return self.document.selections[key]
        if self.mode == "play" and self.default_id is not None and SESSION_KEY.fullmatch(session_id):
            return next((listed.preset for listed in self.catalogue() if listed.id == self.default_id), None)
        return None

    def has_selection(self, session_id: str) -> bool:
        """Whether a session has an entry of its own or in an older scope, off included."""
        return any(key in self.document.selections for key in self._lookup(session_id))

    def copy_selection(self, source: str, target: str) -> None:
        """Give a fork or child what its parent has, absence as an explicit off, in each scope it lacks.

        Raises:
            InvalidAssembly: ``SESSION_ID_INVALID``.
        """
        self._own_key(source)
        self._own_key(target)
        selections = dict(self.document.selections)
        for mode in self._scopes():
            key = self._key(target, mode)
            if key not in selections:
                selections[key] = attrs.evolve(self, mode=mode).selection(source)
        self._commit(attrs.evolve(self.document, selections=selections))

    def migrate_legacy(self, old: StoreDocument) -> bool:
        """Add what an older store has and this one lacks; True when something was added."""
        presets = {key: preset for key, preset in old.presets.items() if key not in self.document.presets}
        selections = {key: preset for key, preset in old.selections.items() if key not in self.document.selections}
        if not presets and not selections:
            return False
        self._commit(StoreDocument({**self.document.presets, **presets}, {**self.document.selections, **selections}))
        return True

    def _scopes(self) -> tuple[Mode | None, ...]:
        return (self.mode,) if self.unified or self.mode is None else _MODES

    def _key(self, session_id: str, mode: Mode | None) -> str:
        return session_id if self.unified or mode is None else f"{mode}:{session_id}"

    def _own_key(self, session_id: str) -> str:
        if not isinstance(session_id, str) or not SESSION_KEY.fullmatch(session_id):
            raise InvalidAssembly(f"{session_id!r} is no session id", code="SESSION_ID_INVALID")
        return self._key(session_id, self.mode)

    def _lookup(self, session_id: str) -> list[str]:
        if not isinstance(session_id, str) or not SESSION_KEY.fullmatch(session_id):
            return []
        keys = [self._key(session_id, self.mode)]
        if self.mode is None:
            keys += [f"{mode}:{session_id}" for mode in _MODES]
        elif self.unified:
            keys.append(f"{self.mode}:{session_id}")
        if self.mode == "play":
            keys.append(session_id)
        return keys

    def _select(self, key: str, preset: Selection) -> Selection:
        self._commit(attrs.evolve(self.document, selections={**self.document.selections, key: preset}))
        return preset

    def _commit(self, document: StoreDocument) -> None:
        document.to_json()
        self.document = document
