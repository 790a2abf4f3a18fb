"""The command line. Commands live in modules of their own and are loaded when they are called."""

from .main import main as main
