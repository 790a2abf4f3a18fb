"""Chat-completion presets."""

from .model import Preset as Preset
from .model import PresetFormat as PresetFormat
from .model import PresetPrompt as PresetPrompt
from .model import PresetSource as PresetSource
from .model import Role as Role
from .model import Sampling as Sampling
from .model import SystemPromptMode as SystemPromptMode
