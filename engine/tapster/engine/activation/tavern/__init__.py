"""Activation in mode ``tavern``: the contract's deterministic selection of lore."""

from .adapter import AdapterResult as AdapterResult
from .adapter import BookReport as BookReport
from .adapter import BookRequest as BookRequest
from .adapter import EmbeddedBook as EmbeddedBook
from .adapter import LibraryBook as LibraryBook
from .adapter import activate_books as activate_books
from .adapter import embedded_book as embedded_book
from .candidate import Candidate as Candidate
from .compiled import CompiledBook as CompiledBook
from .compiled import compile_book as compile_book
from .compiled import compile_book_in_parts as compile_book_in_parts
from .compose import BookSelection as BookSelection
from .compose import compose_books as compose_books
from .decision import Decision as Decision
from .evaluate import PRODUCT_MATCHING as PRODUCT_MATCHING
from .evaluate import Evaluation as Evaluation
from .evaluate import MatchDefaults as MatchDefaults
from .evaluate import evaluate_entry as evaluate_entry
from .options import ActivationOptions as ActivationOptions
from .options import Rolls as Rolls
from .projector import ActivationDiagnostic as ActivationDiagnostic
from .projector import LoreEntry as LoreEntry
from .projector import lore_id as lore_id
from .run import Activation as Activation
from .run import BudgetUse as BudgetUse
from .run import activate_book as activate_book
