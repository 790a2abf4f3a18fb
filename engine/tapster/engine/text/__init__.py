"""Macros, JS regex, regex scripts, templates and the ports they run through."""
