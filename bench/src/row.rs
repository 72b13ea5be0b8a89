//! One line of the table: what was wanted, what was found. Pure.

use serde::{Deserialize, Serialize};

use crate::sample::Middle;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) goal: String,
    pub(crate) what: String,
    pub(crate) found: Found,
    pub(crate) wanted: Wanted,
    /// Requests, starts or syncs that the figure rests on.
    pub(crate) count: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Found {
    Figure { median: f64, low: f64, high: f64 },
    NotRun(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Wanted {
    AtLeast(f64, Unit),
    AtMost(f64, Unit),
    /// Told, and judged by nothing.
    Told(Unit),
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Unit {
    Share,
    Times,
    Kilobytes,
    Megabytes,
    Milliseconds,
    PerSecond,
}

impl Row {
    pub(crate) fn new(goal: &str, what: &str, figures: &[f64], wanted: Wanted, count: u64) -> Self {
        let Middle { median, low, high } = Middle::of(figures);
        let found = Found::Figure { median, low, high };
        Self { goal: goal.to_owned(), what: what.to_owned(), found, wanted, count }
    }

    pub(crate) fn not_run(goal: &str, what: &str, why: &str) -> Self {
        let found = Found::NotRun(why.to_owned());
        Self { goal: goal.to_owned(), what: what.to_owned(), found, wanted: Wanted::Told(Unit::Share), count: 0 }
    }

    pub(crate) fn verdict(&self) -> &'static str {
        let Found::Figure { median, .. } = self.found else { return "NOT RUN" };
        match self.wanted {
            Wanted::AtLeast(least, _) if median >= least => "pass",
            Wanted::AtMost(most, _) if median <= most => "pass",
            Wanted::Told(_) => "told",
            Wanted::AtLeast(..) | Wanted::AtMost(..) => "short",
        }
    }

    /// The goal, what, wanted, found, spread, count and verdict.
    pub(crate) fn cells(&self) -> [String; 7] {
        let (sign, wanted, unit) = match self.wanted {
            Wanted::AtLeast(figure, unit) => ("≥ ", unit.show(figure), unit),
            Wanted::AtMost(figure, unit) => ("≤ ", unit.show(figure), unit),
            Wanted::Told(unit) => ("", String::new(), unit),
        };
        let (found, spread) = match &self.found {
            Found::Figure { median, low, high } => {
                (unit.show(*median), format!("{} – {}", unit.show(*low), unit.show(*high)))
            }
            Found::NotRun(why) => (String::new(), why.clone()),
        };
        let count = if self.count == 0 { String::new() } else { self.count.to_string() };
        let verdict = self.verdict().to_owned();
        [self.goal.clone(), self.what.clone(), format!("{sign}{wanted}"), found, spread, count, verdict]
    }
}

impl Unit {
    fn show(self, figure: f64) -> String {
        match self {
            Self::Share => format!("{:.1} %", figure * 100.0),
            Self::Times => format!("{figure:.2} ×"),
            Self::Kilobytes => format!("{figure:.1} KB"),
            Self::Megabytes => format!("{figure:.1} MB"),
            Self::Milliseconds => format!("{figure:.2} ms"),
            Self::PerSecond => format!("{figure:.0}/s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(wanted: Wanted, figures: &[f64]) -> &'static str {
        Row::new("G1", "what", figures, wanted, 1).verdict()
    }

    #[test]
    fn the_median_decides() {
        let least = Wanted::AtLeast(0.4, Unit::Share);
        assert_eq!(verdict(least, &[0.1, 0.4, 0.5]), "pass");
        assert_eq!(verdict(least, &[0.39, 0.39, 0.9]), "short");
        let most = Wanted::AtMost(25.0, Unit::Megabytes);
        assert_eq!(verdict(most, &[25.0]), "pass");
        assert_eq!(verdict(most, &[25.1]), "short");
    }

    #[test]
    fn what_was_not_measured_never_passes() {
        assert_eq!(Row::not_run("G10", "a peer", "it is not installed").verdict(), "NOT RUN");
    }

    #[test]
    fn figures_wear_their_units() {
        let cells = Row::new("G1", "create", &[0.401], Wanted::AtLeast(0.4, Unit::Share), 9).cells();
        assert_eq!(cells, ["G1", "create", "≥ 40.0 %", "40.1 %", "40.1 % – 40.1 %", "9", "pass"]);
    }
}
