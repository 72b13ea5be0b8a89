"""How long something took, many times over."""

import statistics


def p99(seconds):
    """All but one of a hundred took less."""
    return sorted(seconds)[len(seconds) * 99 // 100]


def times_as_long(alone, beside):
    """It takes so many times as long beside something, in rounds that took turns."""
    return statistics.median(beside) / statistics.median(alone)
