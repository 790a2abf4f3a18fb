"""The refusals of the assembler.

RequestError
├── InvalidAssembly     a preset, source, output or policy that breaks a rule of the contract
└── StrategyInvalid     an ordering strategy answered outside its contract (409)
TapsterError
└── AssemblyRefused     a request that can't be built as asked; ``code`` and ``status`` come from the tables

Each raise passes its own stable code. Source: spec/assembler §3-§20, spec/history_policy §1.
"""

from tapster.engine.errors import RequestError, TapsterError


class InvalidAssembly(RequestError):
    """A preset, source definition, source output or policy is not valid."""

    code = "ASSEMBLY_INVALID"


class StrategyInvalid(RequestError):
    """An ordering strategy answered outside its contract."""

    code = "POSITION_STRATEGY_INVALID"
    status = 409


class AssemblyRefused(TapsterError):
    """The request can't be built as the preset asks."""

    code = "ASSEMBLY_REFUSED"


def unsupported(detail: str) -> AssemblyRefused:
    """The refusal of the standard backend; ``detail`` says what it can't keep."""
    return AssemblyRefused(
        f"the standard backend can't keep this strategy: {detail}",
        code="ASSEMBLY_NATIVE_UNSUPPORTED",
        status=409,
        details={"detail": detail},
    )


def layout_unsupported(detail: str) -> AssemblyRefused:
    """The refusal of a resource layout that moves something fixed."""
    return AssemblyRefused(detail, code="ASSEMBLY_LAYOUT_UNSUPPORTED", status=409)
