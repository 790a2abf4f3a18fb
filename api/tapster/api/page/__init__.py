"""The server-rendered page: library, sessions, chat, preview and traces, in Chinese and English."""

from .routes import add_page as add_page
