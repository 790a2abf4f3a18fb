"""The contract's own JSON files as durable state."""

from .disk import Disk as Disk
from .engine import FilesEngine as FilesEngine
