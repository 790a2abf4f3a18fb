"""How a session activates its world books: the mode, its quirks, and the settings of a scan.

Source: issue "Every format and every world-book rule": "the mode is a setting of the book or session".
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

import attrs

from tapster.engine.ecma import Json, is_number, is_record, is_safe_integer
from tapster.engine.errors import RequestError
from tapster.engine.limits import MAX_SCAN_SETTING

from .sillytavern.settings import Quirks, ScanSettings, Strategy

ActivationMode: TypeAlias = Literal["tavern", "sillytavern"]
ACTIVATION_MODES: Final[tuple[ActivationMode, ...]] = get_args(ActivationMode)


@attrs.frozen
class ActivationSettings:
    """The settings of one session.

    Attributes:
        scan: only used in mode ``sillytavern``; its quirks are the session's.
        card_scripts: whether regex scripts that a card brings may run; nobody was asked by default.
    """

    mode: ActivationMode = "tavern"
    scan: ScanSettings = attrs.field(factory=ScanSettings)
    card_scripts: bool = False

    def to_json(self) -> dict[str, Json]:
        """The settings as documents and answers hold them."""
        scan = attrs.asdict(self.scan)
        return {"mode": self.mode, "quirks": scan.pop("quirks"), "cardScripts": self.card_scripts, "scan": scan}

    @classmethod
    def from_json(cls, value: Json) -> "ActivationSettings":
        """Settings as they were stored; what can't be used has its default."""
        settings = cls()
        for name, member in value.items() if is_record(value) else ():
            members = member.items() if name == "scan" and is_record(member) else [(None, member)]
            for inner, each in members:
                try:
                    settings = settings.changed({name: each if inner is None else {inner: each}})
                except RequestError:
                    continue
        return settings

    def changed(self, patch: Json) -> "ActivationSettings":
        """The settings after a patch ``{mode?, quirks?, cardScripts?, scan?}``; what it leaves out stays.

        Raises:
            RequestError: a member is unknown or its value doesn't fit; the message says what it takes.
        """
        if not is_record(patch):
            raise RequestError("session settings are an object")
        _refuse_unknown(patch, ("mode", "quirks", "cardScripts", "scan"), "session settings")
        scan = _scan_changed(self.scan, patch.get("scan", {}))
        if "quirks" in patch:
            scan = attrs.evolve(scan, quirks=_checked("quirks", patch["quirks"], _one_of(*get_args(Quirks))))
        return ActivationSettings(
            _checked("mode", patch.get("mode", self.mode), _one_of(*ACTIVATION_MODES)),
            scan,
            _checked("cardScripts", patch.get("cardScripts", self.card_scripts), _FLAG),
        )


Rule: TypeAlias = tuple[str, Callable[[Json], bool]]
"""What a setting takes, in words and as a check."""


def _one_of(*words: str) -> Rule:
    return " or ".join(words), lambda value: value in words


def _is_count(value: Json) -> bool:
    return is_safe_integer(value) and 0 <= value <= MAX_SCAN_SETTING


_FLAG: Final[Rule] = ("true or false", lambda value: isinstance(value, bool))
_COUNT: Final[Rule] = (f"a whole number from 0 to {MAX_SCAN_SETTING}", _is_count)
_SCAN: Final[Mapping[str, Rule]] = {
    "depth": _COUNT,
    "budget_percent": ("a number from 0 to 100", lambda value: is_number(value) and 0 <= value <= 100),
    "budget_cap": _COUNT,
    "budget_tokens": (f"null, or {_COUNT[0]}", lambda value: value is None or _is_count(value)),
    "min_activations": _COUNT,
    "min_activations_depth_max": _COUNT,
    "recursive": _FLAG,
    "case_sensitive": _FLAG,
    "match_whole_words": _FLAG,
    "use_group_scoring": _FLAG,
    "strategy": _one_of(*get_args(Strategy)),
    "max_recursion_steps": _COUNT,
}


def _scan_changed(scan: ScanSettings, patch: Json) -> ScanSettings:
    if not is_record(patch):
        raise RequestError("scan must be an object of scan settings")
    _refuse_unknown(patch, tuple(_SCAN), "scan")
    return attrs.evolve(scan, **{name: _checked(name, value, _SCAN[name]) for name, value in patch.items()})


def _checked(name: str, value: Json, rule: Rule) -> Any:
    if not rule[1](value):
        raise RequestError(f"{name} is {value!r:.60}; it takes {rule[0]}")
    return value


def _refuse_unknown(patch: Mapping[str, Json], known: tuple[str, ...], what: str) -> None:
    unknown = sorted(set(patch) - set(known))
    if unknown:
        raise RequestError(f"{what} has no member {unknown[0]!r:.60}; known: {', '.join(known)}")
