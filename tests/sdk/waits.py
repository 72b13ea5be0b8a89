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


def least_times_as_long(alone, beside):
    """The lower end of its 95 % confidence interval, by bootstrap."""
    random = Random(0)
    draws = (times_as_long(*(random.choices(some, k=len(some)) for some in (alone, beside))) for _ in range(DRAWS))
    return sorted(draws)[DRAWS // 40]


def judge(alone, beside, most):
    """("slower", how much), ("undecided", why) or nothing: above the limit only by what chance explains is no verdict."""
    ratio, least = times_as_long(alone, beside), least_times_as_long(alone, beside)
    if ratio <= most:
        return None, ""
    if least <= most:
        return "undecided", f"the machine is too uneven to tell: {ratio:.2f} times as long, or {least:.2f}, after {len(alone)} rounds"
    return "slower", f"{ratio:.2f} times as long"
