"""Recursive descent over the JavaScript pattern syntax, as far as RE2 can follow it."""

import re
import string

import attrs

from .re2_translation import (
    CONTROLS,
    EMPTY,
    LINE_ENDS,
    MAX_CODE,
    SHORTHANDS,
    SYNTAX,
    Node,
    NotTranslatable,
    Ranges,
    Translation,
    alternate,
    class_node,
    complement,
    concatenate,
    fold,
    repeat,
)

MAX_DEPTH = 60
BRACES = re.compile(r"\{([0-9]{1,4})(?:(,)([0-9]{1,4})?)?\}")
GROUP_NAME = re.compile(r"\(\?<([A-Za-z_$][A-Za-z0-9_$]*)>")
ANYTHING: Ranges = ((0, MAX_CODE),)


class PatternParser:
    """Reads one pattern; ``translation`` may be called once."""

    def __init__(self, pattern: str, flags: str) -> None:
        self.pattern = pattern
        self.position = 0
        self.ignore_case = "i" in flags
        self.multiline = "m" in flags
        self.dot_all = "s" in flags
        self.unicode = "u" in flags
        if self.unicode and self.ignore_case:
            raise NotTranslatable  # full case folding reaches beyond ASCII even for ASCII letters
        self.groups = 0
        self.names: list[tuple[str, int]] = []
        self.plain_line_ends = False
        self.depth = 0

    def translation(self) -> Translation:
        """The whole pattern.

        Raises:
            NotTranslatable: when any part is outside the subset.
        """
        node = self.disjunction()
        if self.position < len(self.pattern):
            raise NotTranslatable
        return Translation(
            pattern=node.source,
            group_names=tuple(self.names),
            group_count=self.groups,
            astral_safe=self.unicode or (node.astral_safe and not node.nullable and not node.lazy_last),
            plain_line_ends=self.plain_line_ends,
            nullable=node.nullable,
            bounded=node.bounded,
        )

    def peek(self) -> str:
        return self.pattern[self.position : self.position + 1]

    def take(self, text: str) -> bool:
        if self.pattern.startswith(text, self.position):
            self.position += len(text)
            return True
        return False

    def disjunction(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise NotTranslatable
        branches = [self.alternative()]
        while self.take("|"):
            branches.append(self.alternative())
        self.depth -= 1
        return alternate(branches)

    def alternative(self) -> Node:
        node = EMPTY
        while self.peek() not in ("", "|", ")"):
            node = concatenate(node, self.quantified())
        return node

    def quantified(self) -> Node:
        node = self.atom()
        symbol = self.peek()
        if symbol and symbol in "*+?":
            self.position += 1
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[symbol]
            return repeat(node, least, most, lazy=self.take("?"))
        counts = BRACES.match(self.pattern, self.position)
        if counts is None:
            return node
        self.position = counts.end()
        least = int(counts[1])
        most = least if counts[2] is None else (None if counts[3] is None else int(counts[3]))
        if most is not None and most < least:
            raise NotTranslatable
        return repeat(node, least, most, lazy=self.take("?"))

    def atom(self) -> Node:
        character = self.peek()
        if character == "(":
            return self.group()
        if character == "[":
            return self.character_class()
        if character == "\\":
            return self.escape()
        self.position += 1
        if character == ".":
            return self.set(ANYTHING if self.dot_all else complement(LINE_ENDS))
        if character in "^$":
            return self.anchor(character)
        if character in "*+?" or (character in "{}]" and self.unicode):
            raise NotTranslatable
        if character == "{" and BRACES.match(self.pattern, self.position - 1):
            raise NotTranslatable
        return self.character(ord(character))

    def anchor(self, character: str) -> Node:
        if self.multiline:
            self.plain_line_ends = True
            return Node(f"(?m:{character})", nullable=True, assertion=True)
        return Node("\\A" if character == "^" else "\\z", nullable=True, assertion=True)

    def group(self) -> Node:
        name = GROUP_NAME.match(self.pattern, self.position)
        if name is not None:
            self.position = name.end()
            if any(name[1] == known for known, _ in self.names):
                raise NotTranslatable
            self.names.append((name[1], self.groups + 1))
        elif self.pattern.startswith("(?:", self.position):
            self.position += 3
            return self.close(self.disjunction(), "(?:")
        elif self.pattern.startswith("(?", self.position):
            raise NotTranslatable
        else:
            self.position += 1
        self.groups += 1
        return self.close(self.disjunction(), "(")

    def close(self, body: Node, opening: str) -> Node:
        if not self.take(")"):
            raise NotTranslatable
        return attrs.evolve(
            body,
            source=f"{opening}{body.source})",
            captures=body.captures or opening == "(",
            whole_surrogates=False,
            assertion=False,
        )

    def set(self, ranges: Ranges) -> Node:
        return class_node(ranges, code_points=self.unicode)

    def character(self, code: int) -> Node:
        if code > 0xFFFF and not self.unicode:
            following = self.peek()
            if following and following in "*+?{":
                raise NotTranslatable  # the quantifier would apply to the second half only
            return Node(f"\\x{{{code:x}}}")
        return self.set(fold(((code, code),)) if self.ignore_case else ((code, code),))

    def escape(self) -> Node:
        following = self.pattern[self.position + 1 : self.position + 2]
        if following == "b":
            self.position += 2
            return Node("\\b", nullable=True, assertion=True)
        if following == "B" or following.isdigit() or following in ("k", "p", "P", ""):
            raise NotTranslatable
        return self.escaped_set(in_class=False)

    def escaped_set(self, *, in_class: bool) -> Node:
        ranges = self.escape_ranges(in_class=in_class)
        single = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
        return self.character(ranges[0][0]) if single else self.set(ranges)

    def escape_ranges(self, *, in_class: bool) -> Ranges:
        """The characters an escape stands for; the cursor is at the backslash."""
        self.position += 1
        letter = self.peek()
        self.position += 1
        if letter.lower() in SHORTHANDS and letter:
            positive = SHORTHANDS[letter.lower()]
            return positive if letter.islower() else complement(positive)
        if letter in CONTROLS:
            code = CONTROLS[letter]
        elif letter == "x":
            code = self.hexadecimal(2)
        elif letter == "u":
            code = self.code_unit()
        elif in_class and letter == "b":
            code = 0x08
        elif in_class and letter == "-":
            code = 0x2D
        elif letter and (letter in SYNTAX or (not self.unicode and not letter.isalnum() and ord(letter) < 0x10000)):
            code = ord(letter)
        else:
            raise NotTranslatable
        return ((code, code),)

    def hexadecimal(self, digits: int) -> int:
        text = self.pattern[self.position : self.position + digits]
        if len(text) < digits or any(digit not in string.hexdigits for digit in text):
            raise NotTranslatable
        self.position += digits
        return int(text, 16)

    def code_unit(self) -> int:
        if not self.unicode or self.peek() != "{":
            code = self.hexadecimal(4)
            if 0xD800 <= code <= 0xDFFF:
                raise NotTranslatable
            return code
        end = self.pattern.find("}", self.position)
        text = self.pattern[self.position + 1 : end]
        if end < 0 or not 1 <= len(text) <= 6 or any(digit not in string.hexdigits for digit in text):
            raise NotTranslatable
        self.position = end + 1
        code = int(text, 16)
        if code > MAX_CODE or 0xD800 <= code <= 0xDFFF:
            raise NotTranslatable
        return code

    def character_class(self) -> Node:
        self.position += 1
        negated = self.take("^")
        ranges: list[tuple[int, int]] = []
        while not self.take("]"):
            ranges += self.class_item()
        folded = fold(tuple(ranges)) if self.ignore_case else tuple(ranges)
        return self.set(complement(folded) if negated else folded)

    def class_item(self) -> Ranges:
        first = self.class_atom()
        if self.peek() != "-" or self.pattern.startswith("-]", self.position):
            return first
        self.position += 1
        last = self.class_atom()
        low, high = first[0][0], last[0][0]
        if len(first) > 1 or len(last) > 1 or first[0][1] != low or last[0][1] != high or low > high:
            raise NotTranslatable
        return ((low, high),)

    def class_atom(self) -> Ranges:
        character = self.peek()
        if not character:
            raise NotTranslatable
        if character == "\\":
            if self.ignore_case and self.pattern[self.position + 1 : self.position + 2] in ("W", "S", "D"):
                raise NotTranslatable
            return self.escape_ranges(in_class=True)
        self.position += 1
        code = ord(character)
        if code > 0xFFFF and not self.unicode:
            raise NotTranslatable
        return ((code, code),)
