"""The 53-bit string hash (cyrb53) and the seeded ARC4 generator that SillyTavern's stable choices are made of."""

from collections.abc import Iterator

from tapster.engine.ecma import utf16_units

_M32 = 0xFFFFFFFF


def string_hash(text: str, seed: int = 0) -> int:
    """cyrb53 of a text's UTF-16 units."""
    first, second = 0xDEADBEEF ^ seed, 0x41C6CE57 ^ seed
    for unit in utf16_units(text):
        first = (first ^ unit) * 2654435761 & _M32
        second = (second ^ unit) * 1597334677 & _M32
    first = _avalanche(first, second)
    second = _avalanche(second, first)
    return 4294967296 * (2097151 & second) + first


def _avalanche(state: int, other: int) -> int:
    return (((state ^ (state >> 16)) * 2246822507) & _M32) ^ (((other ^ (other >> 13)) * 3266489909) & _M32)


def seeded_random(seed: str) -> float:
    """The first number in [0, 1) of the ARC4 generator seeded with a string (52 random bits, as seedrandom gives)."""
    stream = _arc4(_mix_key(seed))
    number, divisor, extra = 0, 1 << 48, 0
    for _ in range(6):
        number = number * 256 + next(stream)
    while number < 1 << 52:
        number = (number + extra) * 256
        divisor *= 256
        extra = next(stream)
    while number >= 1 << 53:
        number, divisor, extra = number // 2, divisor // 2, extra >> 1
    return (number + extra) / divisor


def _mix_key(seed: str) -> list[int]:
    key: list[int] = []
    smear = 0
    for index, unit in enumerate(utf16_units(seed)):
        place = index & 255
        smear ^= (key[place] * 19) if place < len(key) else 0
        mixed = (smear + unit) & 255
        if place < len(key):
            key[place] = mixed
        else:
            key.append(mixed)
    return key or [0]


def _arc4(key: list[int]) -> Iterator[int]:
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + key[i % len(key)] + state[i]) & 255
        state[i], state[j] = state[j], state[i]
    i = j = 0
    for produced in range(1 << 62):
        i = (i + 1) & 255
        j = (j + state[i]) & 255
        state[i], state[j] = state[j], state[i]
        if produced >= 256:
            yield state[(state[i] + state[j]) & 255]
