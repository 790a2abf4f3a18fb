"""Why each prompt of a preset is in a request or not, in words (English and Chinese) and as data."""

from .explanation import PromptExplanation as PromptExplanation
from .sillytavern import explain_assembly as explain_assembly
from .tavern import explain_profile as explain_profile
