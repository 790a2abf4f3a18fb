"""Every limit of the engine in one place, with its unit in the name or beside it.

Source: the section named beside each group.
"""

KIB = 1024
MIB = 1024 * KIB
