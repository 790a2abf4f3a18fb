"""Strategies at run time: which preset each session has applied, and the sources that its requests are made from."""

from .draws import RequestDraws as RequestDraws
from .library import Strategies as Strategies
from .library import open_strategies as open_strategies
from .opening import Workshop as Workshop
from .opening import open_workshop as open_workshop
from .policy_preview import preview_policy as preview_policy
from .stored_templates import StoredTemplates as StoredTemplates
from .stored_templates import open_stored_templates as open_stored_templates
from .templates import TavernTemplates as TavernTemplates
from .templates import template_data as template_data
from .variables import Variables as Variables
from .variables import VariablesUnavailable as VariablesUnavailable
from .variables import open_variables as open_variables
