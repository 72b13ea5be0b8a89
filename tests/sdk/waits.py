"""How long something took, many times over."""

import statistics
from random import Random

DRAWS = 4_000


def p99(seconds):
    """All but one of a hundred took less."""
    return sorted(seconds)[len(seconds) * 99 // 100]


def times_as_long(alone, beside):
    """It takes so many times as long beside something, in rounds that took turns."""
    return statistics.median(beside) / statistics.median(alone)


def surely_times_as_long(alone, beside):
    """The least that it may be: of a hundred draws from such rounds, so many say more that chance alone would be 1 in 40. Where
    that is within a limit which the middle is above, the machine is too uneven to tell."""
    random = Random(0)
    draws = (times_as_long(*(random.choices(some, k=len(some)) for some in (alone, beside))) for _ in range(DRAWS))
    return sorted(draws)[DRAWS // 40]


def too_uneven(alone, beside):
    """Why there is no verdict."""
    ratio, least = times_as_long(alone, beside), surely_times_as_long(alone, beside)
    return f"the machine is too uneven to tell: {ratio:.2f} times as long, or {least:.2f}, after {len(alone)} rounds"
