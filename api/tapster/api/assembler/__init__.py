"""The assembler's HTTP root, ``/dsh-prompt-assembler/api/v1``, and its older place below the contract's root."""

from .root import ASSEMBLER_ROOT as ASSEMBLER_ROOT
from .root import AssemblerRoot as AssemblerRoot
from .root import is_assembler_path as is_assembler_path
