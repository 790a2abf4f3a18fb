"""Readers and writers of resource files; what they do not know they keep (spec/resources)."""

from .embedded_books import embedded_book as embedded_book
from .importing import Imported as Imported
from .importing import Kind as Kind
from .importing import Personas as Personas
from .importing import RegexScripts as RegexScripts
from .importing import Resource as Resource
from .importing import import_file as import_file
from .notes import Note as Note
from .notes import UnsupportedFile as UnsupportedFile
from .profiles import Profile as Profile
