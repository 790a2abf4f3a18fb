"""Card texts in PNG files."""

from .chunks import SIGNATURE as SIGNATURE
from .chunks import Chunk as Chunk
from .chunks import PngLimits as PngLimits
from .chunks import is_png as is_png
from .chunks import iter_chunks as iter_chunks
from .chunks import write_png as write_png
from .lenient import decode_base64 as decode_base64
from .lenient import read_lenient_text as read_lenient_text
from .lenient import read_sillytavern_text as read_sillytavern_text
from .text import KEYWORDS as KEYWORDS
from .text import CardText as CardText
from .text import read_card_text as read_card_text
from .write import embed as embed
from .write import embed_raw as embed_raw
from .write import is_card_chunk as is_card_chunk
from .write import strip as strip
