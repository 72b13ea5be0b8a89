//! How long lists are, kept on a connection until something changes: whoever turns the pages of a long list doesn't have
//! it counted anew for each.
//!
//! What is kept is used only for a snapshot that shows exactly what the one showed in which it was counted, whoever writes
//! meanwhile and from which process. While everything changes all the time, everything is counted all the time.

use crate::sql::Value;

/// Lists of one connection. With each more, the oldest is forgotten.
const MOST: usize = 32;
/// Shorter lists are counted sooner than it is known whether anything has changed.
const WORTH_KEEPING: i64 = 1000;

/// What tells the snapshots of one connection apart: where two marks are equal, so is all that they show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark(pub(crate) String);

/// Matches of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) count: i64,
    /// The clock under which it was counted, and the one from which it may be another although nothing has changed: in
    /// microseconds, as all times. `None`: never.
    pub(crate) from: i64,
    pub(crate) until: Option<i64>,
}

impl Total {
    fn holds_at(&self, now: i64) -> bool {
        now >= self.from && self.until.is_none_or(|until| now < until)
    }
}

pub(crate) struct Totals {
    /// Of all that is kept.
    mark: Option<Mark>,
    kept: Vec<(String, Vec<Value>, Total)>,
    worth_keeping: i64,
}

impl Totals {
    pub(crate) fn new() -> Self {
        Self { mark: None, kept: Vec::new(), worth_keeping: WORTH_KEEPING }
    }

    /// Keeps the shortest ones too, so that simulations with few rows see what comes of it.
    #[cfg(feature = "inline")]
    pub(crate) fn of_short_lists() -> Self {
        Self { worth_keeping: 0, ..Self::new() }
    }

    /// Whether it is worth asking for the mark: something is kept that may hold.
    pub(crate) fn may_know(&self, sql: &str, values: &[Value], now: i64) -> bool {
        self.find(sql, values).is_some_and(|total| total.holds_at(now))
    }

    /// In a snapshot of this mark.
    pub(crate) fn known(&self, mark: &Mark, sql: &str, values: &[Value], now: i64) -> Option<Total> {
        self.find(sql, values).filter(|total| self.mark.as_ref() == Some(mark) && total.holds_at(now))
    }

    pub(crate) fn is_worth_keeping(&self, total: Total) -> bool {
        total.count >= self.worth_keeping
    }

    /// Counted in a snapshot of this mark.
    pub(crate) fn keep(&mut self, mark: Mark, sql: &str, values: &[Value], total: Total) {
        if self.mark.as_ref() != Some(&mark) {
            self.forget();
        }
        self.mark = Some(mark);
        self.kept.retain(|(of, with, _)| of != sql || with != values);
        if self.kept.len() == MOST {
            self.kept.remove(0);
        }
        self.kept.push((sql.to_owned(), values.to_vec(), total));
    }

    pub(crate) fn forget(&mut self) {
        self.mark = None;
        self.kept.clear();
    }

    fn find(&self, sql: &str, values: &[Value]) -> Option<Total> {
        self.kept.iter().find(|(of, with, _)| of == sql && with == values).map(|(_, _, total)| *total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(text: &str) -> Mark {
        Mark(text.into())
    }

    #[test]
    fn a_total_holds_for_its_snapshot_its_list_and_its_time() {
        let mut totals = Totals::new();
        let (sql, values) = ("select", [Value::from(1)]);
        let total = Total { count: 5000, from: 10, until: Some(20) };
        totals.keep(mark("a"), sql, &values, total);
        for (name, seen, sql, value, now, is_known) in [
            ("the same", "a", sql, 1, 10, true),
            ("the last moment", "a", sql, 1, 19, true),
            ("another row is there", "b", sql, 1, 10, false),
            ("another list", "a", "select 1", 1, 10, false),
            ("of others", "a", sql, 2, 10, false),
            ("one has expired", "a", sql, 1, 20, false),
            ("another clock, behind", "a", sql, 1, 9, false),
        ] {
            let known = totals.known(&mark(seen), sql, &[Value::from(value)], now);
            assert_eq!(known, is_known.then_some(total), "{name}");
        }
        totals.keep(mark("b"), "another", &values, total);
        assert!(!totals.may_know(sql, &values, 10), "what was before a change is forgotten");
    }

    #[test]
    fn it_keeps_so_many_and_no_more() {
        let mut totals = Totals::new();
        let total = Total { count: 5000, from: 0, until: None };
        for round in 0..3 {
            for list in 0..MOST {
                totals.keep(mark("a"), "select", &[Value::from(i64::try_from(list).unwrap())], total);
                assert!(totals.kept.len() <= MOST && totals.kept.capacity() <= 2 * MOST, "{round}");
            }
        }
        totals.keep(mark("a"), "one more", &[], total);
        assert_eq!(totals.kept.len(), MOST);
        assert!(!totals.may_know("select", &[Value::from(0)], 0) && totals.may_know("one more", &[], 0));
    }
}
