//! What a soak's figures say. Pure.
//!
//! A short run can't tell a leak from a cache that still fills, nor a drift from an unquiet machine. Then the answer is that it was
//! too short, with the figure and its error, and never that all is well.

/// MiB an hour.
const MOST_GROWTH: f64 = 1.0;
/// Caches that still fill take no more, MiB: what grows by less in the whole run proves no leak.
const STILL_FILLS: f64 = 16.0;
/// Of the 99th percentile, from the first to the last minute.
const MOST_DRIFT: f64 = 0.10;
/// A drift of a shorter run, hours, is the machine's.
const SHORTEST_DRIFT: f64 = 0.5;
/// MiB.
const LARGEST_LOG: f64 = 64.0;
/// Connections that happen to be open.
const DESCRIPTORS: f64 = 16.0;
/// Two-sided, 99 % of a normal distribution.
const QUANTILE: f64 = 2.576;
const FEWEST: usize = 8;

/// One of the equal parts that the time after the warm-up is cut into.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    /// Since the warm-up, hours.
    pub(crate) at: f64,
    /// MiB that are the process's own.
    pub(crate) memory: f64,
    pub(crate) descriptors: f64,
    /// The 99th percentile, milliseconds.
    pub(crate) slowest: f64,
    /// The database's log at its largest, MiB.
    pub(crate) log: f64,
    pub(crate) is_beside_reader: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    Holds(String),
    TooShort(String),
    Broken(String),
}

pub(crate) fn all(parts: &[Part]) -> [Verdict; 4] {
    [memory(parts), descriptors(parts), drift(parts), log(parts)]
}

pub(crate) fn memory(parts: &[Part]) -> Verdict {
    let points: Vec<_> = parts.iter().map(|part| (part.at, part.memory)).collect();
    let Some(slope) = Slope::of(&points) else { return Verdict::TooShort("memory was hardly looked at".to_owned()) };
    let told = format!("memory grows by {:.2} MiB an hour (99 %: {:.2} to {:.2})", slope.middle, slope.low, slope.high);
    if slope.high < MOST_GROWTH {
        Verdict::Holds(told)
    } else if slope.low > MOST_GROWTH && slope.low * length(parts) > STILL_FILLS {
        Verdict::Broken(told)
    } else {
        // With as many parts, each as unquiet as now, the error goes down as the time goes up; and what fills takes its time.
        let error = (slope.high - slope.low) / 2.0;
        let hours = (length(parts) * error / MOST_GROWTH).max(STILL_FILLS / MOST_GROWTH);
        Verdict::TooShort(format!("{told}; some {hours:.0} hours after the warm-up would tell"))
    }
}

/// Without the parts beside the reader, who is a load of his own.
pub(crate) fn drift(parts: &[Part]) -> Verdict {
    let alone = parts.iter().filter(|part| !part.is_beside_reader && part.slowest > 0.0);
    let points: Vec<_> = alone.map(|part| (part.at, part.slowest.ln())).collect();
    let Some(slope) = Slope::of(&points) else { return Verdict::TooShort("hardly anything was timed".to_owned()) };
    let whole = |of: f64| (of * length(parts)).exp() - 1.0;
    let (middle, low, high) = (whole(slope.middle), whole(slope.low), whole(slope.high));
    let told = format!(
        "the 99th percentile went up by {:.0} % (99 %: {:.0} to {:.0})",
        middle * 100.0,
        low * 100.0,
        high * 100.0
    );
    if length(parts) < SHORTEST_DRIFT {
        Verdict::TooShort(told)
    } else if high < MOST_DRIFT {
        Verdict::Holds(told)
    } else if low > MOST_DRIFT {
        Verdict::Broken(told)
    } else {
        Verdict::TooShort(told)
    }
}

pub(crate) fn descriptors(parts: &[Part]) -> Verdict {
    let quarter = parts.len() / 4;
    if quarter == 0 {
        return Verdict::TooShort("descriptors were hardly looked at".to_owned());
    }
    let middle = |parts: &[Part]| median(parts.iter().map(|part| part.descriptors).collect());
    let (first, last) = (middle(&parts[..quarter]), middle(&parts[parts.len() - quarter..]));
    let told = format!("{first:.0} descriptors in the first quarter, {last:.0} in the last");
    if last > first + DESCRIPTORS { Verdict::Broken(told) } else { Verdict::Holds(told) }
}

pub(crate) fn log(parts: &[Part]) -> Verdict {
    let largest = |is_beside: bool| {
        let of = parts.iter().filter(|part| part.is_beside_reader == is_beside).map(|part| part.log);
        of.fold(0.0, f64::max)
    };
    let (beside, alone) = (largest(true), largest(false));
    let told = format!("the log had {beside:.0} MiB beside the reader, {alone:.0} MiB without");
    if beside.max(alone) > LARGEST_LOG { Verdict::Broken(told) } else { Verdict::Holds(told) }
}

fn length(parts: &[Part]) -> f64 {
    parts.last().map_or(0.0, |part| part.at)
}

/// Theil and Sen: the median of the slopes between any two points, which a few wild ones don't move, with Sen's interval.
#[derive(Debug, Clone, Copy)]
struct Slope {
    middle: f64,
    low: f64,
    high: f64,
}

impl Slope {
    fn of(points: &[(f64, f64)]) -> Option<Self> {
        if points.len() < FEWEST {
            return None;
        }
        let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
        for (place, from) in points.iter().enumerate() {
            slopes.extend(points[place + 1..].iter().map(|to| (to.1 - from.1) / (to.0 - from.0)));
        }
        slopes.sort_by(f64::total_cmp);
        let (count, pairs) = (points.len() as f64, slopes.len() as f64);
        let spread = QUANTILE * (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt();
        let at = |rank: f64| slopes[(rank.max(0.0) as usize).min(slopes.len() - 1)];
        Some(Self {
            low: at((pairs - spread) / 2.0 - 1.0),
            high: at((pairs + spread) / 2.0),
            middle: median(slopes.clone()),
        })
    }
}

pub(crate) fn median(figures: Vec<f64>) -> f64 {
    crate::sample::Middle::of(&figures).median
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::mix;

    const PARTS: usize = 60;

    /// So many hours, in which memory and descriptors grow by so much an hour and answers take so much longer in the end.
    fn parts(hours: f64, memory: f64, descriptors: f64, slower: f64) -> Vec<Part> {
        let noise = |place: usize, of: u64| (mix(place as u64 + of * 1_000) % 1_000) as f64 / 1_000.0 - 0.5;
        let part = |place: usize| {
            let at = hours * (place + 1) as f64 / PARTS as f64;
            Part {
                at,
                memory: 120.0 + memory * at + 2.0 * noise(place, 1),
                descriptors: 60.0 + descriptors * at + 6.0 * noise(place, 2),
                slowest: 4.0 * (1.0 + slower * at / hours) * (1.0 + 0.05 * noise(place, 3)),
                log: 12.0,
                is_beside_reader: place < PARTS / 3,
            }
        };
        (0..PARTS).map(part).collect()
    }

    fn is_broken(verdict: &Verdict) -> bool {
        matches!(verdict, Verdict::Broken(_))
    }

    #[test]
    fn a_day_tells_a_leak_from_none() {
        for verdict in all(&parts(24.0, 0.0, 0.0, 0.0)) {
            assert!(matches!(verdict, Verdict::Holds(_)), "{verdict:?}");
        }
        assert!(is_broken(&memory(&parts(24.0, 2.0, 0.0, 0.0))));
        assert!(is_broken(&descriptors(&parts(24.0, 0.0, 2.0, 0.0))));
        assert!(is_broken(&drift(&parts(24.0, 0.0, 0.0, 0.3))));
    }

    #[test]
    fn a_minute_tells_a_large_leak_and_is_too_short_for_the_rest() {
        let minute = 1.0 / 60.0;
        assert!(matches!(memory(&parts(minute, 0.0, 0.0, 0.0)), Verdict::TooShort(_)));
        // Caches that fill.
        assert!(matches!(memory(&parts(minute, 600.0, 0.0, 0.0)), Verdict::TooShort(_)));
        // A thousand requests a second, a kibibyte each.
        assert!(is_broken(&memory(&parts(minute, 3_500.0, 0.0, 0.0))));
        assert!(matches!(drift(&parts(minute, 0.0, 0.0, 0.3)), Verdict::TooShort(_)));
        assert!(matches!(memory(&parts(minute, 0.0, 0.0, 0.0)[..5]), Verdict::TooShort(_)));
    }

    #[test]
    fn a_few_wild_moments_are_no_leak() {
        let mut parts = parts(24.0, 0.0, 0.0, 0.0);
        for wild in parts.iter_mut().skip(50).step_by(4) {
            wild.memory += 200.0;
            wild.slowest *= 9.0;
        }
        assert!(matches!(memory(&parts), Verdict::Holds(_)), "{:?}", memory(&parts));
        assert!(!is_broken(&drift(&parts)));
    }

    #[test]
    fn one_moment_with_a_large_log_is_enough() {
        let mut parts = parts(1.0, 0.0, 0.0, 0.0);
        parts[7].log = 65.0;
        assert!(is_broken(&log(&parts)));
    }
}
