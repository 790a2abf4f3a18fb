"""Character cards."""

from .model import Card as Card
from .model import CardContainer as CardContainer
from .model import CardData as CardData
from .model import CardFormat as CardFormat
from .model import CardSource as CardSource
from .model import Compatibility as Compatibility
from .model import Finding as Finding
