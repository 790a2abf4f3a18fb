"""The reading profiles: whose rules decide when a file is odd.

Source: issue "Every format and every world-book rule", "Reading profiles".
"""

from typing import Literal

Profile = Literal["contract", "sillytavern", "lenient"]
"""``contract``: the letter of spec/resources. ``sillytavern``: what SillyTavern 1.19 does. ``lenient``: the contract
first, then SillyTavern, then whatever a person would accept; the answer says which one it was."""
