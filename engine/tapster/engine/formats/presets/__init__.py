"""Chat-completion presets."""

from .edit import edit_preset as edit_preset
from .model import Preset as Preset
from .model import PresetFormat as PresetFormat
from .model import PresetPrompt as PresetPrompt
from .model import PresetSource as PresetSource
from .model import Role as Role
from .model import Sampling as Sampling
from .model import SystemPromptMode as SystemPromptMode
from .old import default_prompts as default_prompts
from .old import is_old_preset as is_old_preset
from .read import ACTIVE_ORDER as ACTIVE_ORDER
from .read import blank_preset as blank_preset
from .read import parse_preset as parse_preset
from .write import export_preset as export_preset
from .write import preset_file_name as preset_file_name
from .write import preset_text as preset_text
from .write import restore_preset as restore_preset
