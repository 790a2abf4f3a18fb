"""Model providers: the port, the OpenAI-compatible one, and a scripted double."""

from .chunks import BlockEnd as BlockEnd
from .chunks import BlockStart as BlockStart
from .chunks import Chunk as Chunk
from .chunks import Failure as Failure
from .chunks import Finish as Finish
from .chunks import ReasoningDelta as ReasoningDelta
from .chunks import Reply as Reply
from .chunks import TextDelta as TextDelta
from .chunks import ToolCallDelta as ToolCallDelta
from .chunks import UsageChunk as UsageChunk
from .chunks import has_output as has_output
from .configured import open_configured_provider as open_configured_provider
from .openai import Deadlines as Deadlines
from .openai import OpenAiProvider as OpenAiProvider
from .openai import OpenAiSettings as OpenAiSettings
from .openai import open_openai_provider as open_openai_provider
from .port import CallConfig as CallConfig
from .port import ModelRequest as ModelRequest
from .port import PreparedCall as PreparedCall
from .port import Provider as Provider
from .port import ProviderError as ProviderError
from .port import Providers as Providers
from .port import Sink as Sink
from .scripted import Crash as Crash
from .scripted import Pause as Pause
from .scripted import ScriptedProvider as ScriptedProvider
