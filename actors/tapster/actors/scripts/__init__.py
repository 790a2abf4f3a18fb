"""JavaScript from cards and presets, run in QuickJS under limits."""

from .quickjs import QuickJsRegexEngine as QuickJsRegexEngine
from .quickjs import open_regex_engine as open_regex_engine
from .templates import QuickJsTemplateEngine as QuickJsTemplateEngine
from .worker import SCRIPT_THREADS as SCRIPT_THREADS
from .worker import CheckPattern as CheckPattern
from .worker import FindMatches as FindMatches
from .worker import RenderTemplate as RenderTemplate
from .worker import Scripts as Scripts
from .worker import ScriptWorker as ScriptWorker
