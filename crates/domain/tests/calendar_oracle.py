"""Cases about times, and what an independent calendar says of each: one a line, parts separated by tabs.

    read   TEXT    MICROSECONDS or "refused"
    day    TEXT    FIRST and LAST MICROSECOND, or "refused"
    print  MICROSECONDS    TEXT    TEXT with microseconds    MONTH    YEAR

Usage: calendar_oracle.py SEED COUNT [summer|months]. The last word makes it wrong on purpose.
"""

import sys
from datetime import datetime, timedelta, timezone
from random import Random
from zoneinfo import ZoneInfo

ZONES = """Africa/Banjul Africa/Cairo Africa/Casablanca Africa/Dakar Africa/Johannesburg Africa/Lagos Africa/Monrovia
America/Anchorage America/Argentina/Buenos_Aires America/Bogota America/Caracas America/Chicago America/Denver America/Havana
America/Los_Angeles America/New_York America/Noronha America/Sao_Paulo America/St_Johns Antarctica/Troll Asia/Baghdad
Asia/Dubai Asia/Kathmandu Asia/Kolkata Asia/Pyongyang Asia/Shanghai Asia/Tehran Asia/Tokyo Asia/Yangon Atlantic/Azores
Australia/Adelaide Australia/Eucla Australia/Lord_Howe Europe/Dublin Europe/London Europe/Moscow Europe/Paris Pacific/Apia
Pacific/Chatham Pacific/Kiritimati""".split()
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MICROSECOND = timedelta(microseconds=1)
SECOND = 1_000_000
DAY = 86_400 * SECOND
LATEST = (datetime(9999, 12, 30, 21, 59, 59, 999_999, tzinfo=timezone.utc) - EPOCH) // MICROSECOND
SHORT = {2: (29, 30, 31), 4: (31,), 6: (31,), 9: (31,), 11: (31,)}


def micros(moment):
    return (moment - EPOCH) // MICROSECOND


def moment(number):
    return EPOCH + number * MICROSECOND


def bounded(number):
    return number if 0 <= number <= LATEST else "refused"


def transition(random, zone):
    """A moment at which a zone changes its offset; any moment if it doesn't that year."""
    start = micros(datetime(random.randrange(1971, 2037), 1, 1, tzinfo=timezone.utc))
    steps = [start + week * 7 * DAY for week in range(53)]
    offset = lambda number: moment(number).astimezone(zone).utcoffset()
    for before, after in zip(steps, steps[1:]):
        if offset(before) != offset(after):
            while after - before > 1:
                middle = (before + after) // 2
                before, after = (middle, after) if offset(middle) == offset(before) else (before, middle)
            return after
    return random.choice(steps)


def edge(random, zone):
    """A moment where calendars go wrong, or one microsecond beside it."""
    year = random.choice([1970, 1972, 1999, 2000, 2024, 2038, 2100, 9999, random.randrange(1970, 9999)])
    kind = random.randrange(8)
    if kind == 0:
        number = transition(random, zone)
    elif kind == 1:
        number = random.choice([0, 2**31 * SECOND, 2**32 * SECOND, LATEST])
    elif kind == 2:
        leap = year - year % 4 if year >= 1972 else 1972
        is_leap = leap % 100 != 0 or leap % 400 == 0
        number = micros(datetime(leap, 2 if is_leap else 3, 29 if is_leap else 1, tzinfo=timezone.utc))
    elif kind in (3, 4):
        number = micros(datetime(year, random.randrange(1, 13), 1, tzinfo=timezone.utc))
    else:
        number = random.randrange(LATEST + 1)
    return number + random.choice([-1, 0, 1, 0])


def read(random, wrong):
    zone = ZoneInfo(random.choice(ZONES))
    number = edge(random, zone)
    try:
        local = moment(number).astimezone(zone)
    except OverflowError:
        return None
    digits = random.choice([0, 0, 3, 6, 9, random.randrange(1, 12)])
    nanoseconds = f"{local.microsecond:06}{random.randrange(10**6):06}"[:digits]
    seconds = 60 if local.second == 59 and random.randrange(4) == 0 else local.second
    clock = f"{local.hour:02}:{local.minute:02}:{seconds:02}"
    fraction = f".{nanoseconds}" if digits else ""
    # What the digits that are left out said is gone.
    kept = number - local.microsecond + int(nanoseconds.ljust(6, "0")[:6])
    offset = local.utcoffset() // timedelta(seconds=1)
    sign, hours, rest = "-" if offset < 0 else "+", abs(offset) // 3600, abs(offset) % 3600
    suffix = f"{sign}{hours:02}:{rest // 60:02}"
    expected = bounded(kept)
    if rest % 60:
        suffix += f":{rest % 60:02}"
        expected = "refused"
    elif offset == 0:
        suffix = random.choice(["Z", "z", "", "+00:00", "-00:00"])
    if digits > 9:
        expected = "refused"
    separator = random.choice("Tt ")
    if wrong == "summer" and expected != "refused":
        winter = datetime(local.year, 1, 1, tzinfo=zone).utcoffset() // timedelta(seconds=1)
        expected = bounded(kept + (offset - winter) * SECOND)
    return f"read\t{local.year:04}-{local.month:02}-{local.day:02}{separator}{clock}{fraction}{suffix}\t{expected}"


def malformed(random):
    month = random.choice(list(SHORT))
    year, day = random.randrange(1970, 9999), random.choice(SHORT[month])
    if month == 2 and day == 29:
        year = random.choice([1900, 2100, 2200, 2300, 2023, 2025])
    text = random.choice([
        f"{year}-{month:02}-{day:02}T00:00:00Z",
        f"{year}-13-01T00:00:00Z", f"{year}-00-01T00:00:00Z", f"{year}-01-00T00:00:00Z", f"{year}-01-32T00:00:00Z",
        f"{year}-01-01T24:00:00Z", f"{year}-01-01T23:60:00Z", f"{year}-01-01T23:59:61Z",
        f"{year}-01-01T00:00:00+{random.randrange(24, 100)}:00", f"{year}-01-01T00:00:00-{random.randrange(24, 100)}:30",
        f"{year}-01-01T00:00:00+02:{random.randrange(60, 100)}", f"{year}-01-01T00:00:00+02",
    ])
    return f"read\t{text}\trefused"


def day(random, wrong):
    year, month, number = random.randrange(1960, 10_000), random.randrange(1, 13), random.randrange(1, 32)
    text = f"{year:04}-{month:02}-{number:02}"
    try:
        first = micros(datetime(year, month, number, tzinfo=timezone.utc))
    except ValueError:
        first = None
    if first is None or first < 0 or first + DAY - 1 > LATEST or (wrong == "months" and number == 31):
        return f"day\t{text}\trefused"
    return f"day\t{text}\t{first}\t{first + DAY - 1}"


def printed(random):
    number = bounded(edge(random, ZoneInfo(random.choice(ZONES))))
    if number == "refused":
        return None
    at = moment(number)
    text = f"{at.year:04}-{at.month:02}-{at.day:02}T{at.hour:02}:{at.minute:02}:{at.second:02}"
    return f"print\t{number}\t{text}Z\t{text}.{at.microsecond:06}Z\t{at.year:04}-{at.month:02}\t{at.year:04}"


def main(seed, count, wrong=None):
    random = Random(int(seed))
    left = int(count)
    while left:
        kind = random.randrange(8)
        if kind < 4:
            line = read(random, wrong)
        elif kind == 4:
            line = malformed(random)
        elif kind == 5:
            line = day(random, wrong)
        else:
            line = printed(random)
        if line is not None:
            print(line)
            left -= 1


main(*sys.argv[1:])
