"""The text one book is matched against.

Source: spec/activation §4.
"""

import attrs

from tapster.engine.ecma import utf16_length, utf16_slice
from tapster.engine.projection import ActivationContext

from .options import ActivationOptions


@attrs.frozen
class ScanText:
    """The text, and the length it had before it was cut (code units); ``cut`` when something is missing."""

    text: str
    cut: bool
    original_characters: int


def scan_text(
    context: ActivationContext | None, conversation_text: str, scan_depth: int | None, options: ActivationOptions
) -> ScanText:
    """The scan text of a book.

    Args:
        context: the request's messages.
        conversation_text: used where no message has text; it knows no messages, so no depth applies to it.
        scan_depth: the book's depth in messages; None is all.
        options: message and character caps.
    """
    upstream_cut = context is not None and context.metadata.truncated
    known = 0 if context is None else context.metadata.input_characters or 0
    texts = [] if context is None else [message.text for message in context.messages if message.text]
    joined, dropped = conversation_text, False
    if texts:
        depth = len(texts) if scan_depth is None else scan_depth
        window = texts[len(texts) - min(depth, len(texts)) :]
        dropped = len(window) > options.max_scan_messages
        joined = "\n".join(window[-options.max_scan_messages :])
    length = utf16_length(joined)
    if length <= options.max_scan_characters:
        return ScanText(joined, dropped or upstream_cut, max(length, known))
    text = utf16_slice(joined, length - options.max_scan_characters)
    return ScanText(text, True, max(length, known))
