"""Character cards."""

from .edit import edit_card as edit_card
from .edit import replace_embedded_book as replace_embedded_book
from .file_names import safe_file_name as safe_file_name
from .model import Card as Card
from .model import CardContainer as CardContainer
from .model import CardData as CardData
from .model import CardFormat as CardFormat
from .model import CardSource as CardSource
from .model import Compatibility as Compatibility
from .model import Finding as Finding
from .read import detect_format as detect_format
from .read import parse_card as parse_card
from .validator import CardVersion as CardVersion
from .validator import fulfilled_version as fulfilled_version
from .write import blank_card as blank_card
from .write import card_file_name as card_file_name
from .write import export_card_json as export_card_json
from .write import export_card_png as export_card_png
