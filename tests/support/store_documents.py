"""Which durable document of the product stands for a document of the user reports."""

from tapster.actors.store import DocumentKey


def key_of(document: str) -> DocumentKey:
    """``chat-…`` is a chat, everything else a settings document."""
    return DocumentKey("chats" if document.startswith("chat-") else "settings", document)
