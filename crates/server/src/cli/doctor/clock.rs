//! This machine's clock, held against others and against what was stored by it.

use std::time::Duration;

use domain::Timestamp;

use super::report::{Finding, Status};

/// What others would notice. Clocks that are kept by NTP differ by much less.
const NOTICED: Duration = Duration::from_secs(2);
/// The shortest lease between two processes: from here on work is taken from whoever still does it.
const HARMFUL: Duration = Duration::from_secs(10);

const SET_IT: &str = "Run NTP on every machine and set the clock: expiries, leases between processes and the signatures \
                      of webhooks go by it.";

/// Another clock, and ours just before and just after it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) whose: String,
    pub(super) before_us: i64,
    pub(super) after_us: i64,
    pub(super) said_us: i64,
    /// What it says is a whole number of these.
    pub(super) unit_us: i64,
}

impl Asked {
    /// By how much it is ahead of ours, as far as that is certain.
    fn ahead_us(&self) -> i64 {
        let (least, most) = (self.said_us, self.said_us.saturating_add(self.unit_us));
        if least > self.after_us {
            least - self.after_us
        } else if most < self.before_us {
            most - self.before_us
        } else {
            0
        }
    }
}

/// The clocks inside the installation.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// The database server's.
    pub(super) server: Option<Asked>,
    /// What was stored last, and ours when that was seen.
    pub(super) newest: Option<(Timestamp, i64)>,
}

pub(super) fn judge(times: &Times, date: Option<Asked>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = times.server.iter().chain(&date).map(compared).collect();
    if let Some((newest, now_us)) = times.newest {
        let ahead_us = newest.micros().saturating_sub(now_us);
        findings.push(match status(ahead_us.max(0)) {
            Status::Ok => Finding::ok(format!("nothing stored is newer than now; the last is of {}", newest.to_text())),
            status => {
                let found = format!(
                    "the last that was stored is of {}, {} ahead of this machine's clock: it was set back, or another \
                     process has one that is ahead",
                    newest.to_text(),
                    seconds(ahead_us)
                );
                Finding::of(status, found, SET_IT)
            }
        });
    }
    if times.server.is_none() && date.is_none() {
        findings.push(Finding::ok("there is no other clock to hold this machine's against"));
    }
    findings
}

fn compared(asked: &Asked) -> Finding {
    let (ahead_us, whose) = (asked.ahead_us(), &asked.whose);
    let found = match ahead_us {
        0 => format!("this machine's clock agrees with that of {whose}"),
        ahead if ahead > 0 => format!("this machine's clock is {} behind that of {whose}", seconds(ahead)),
        behind => format!("this machine's clock is {} ahead of that of {whose}", seconds(behind)),
    };
    Finding::of(status(ahead_us), found, SET_IT)
}

fn status(difference_us: i64) -> Status {
    match Duration::from_micros(difference_us.unsigned_abs()) {
        difference if difference > HARMFUL => Status::Failed,
        difference if difference > NOTICED => Status::Warning,
        _ => Status::Ok,
    }
}

fn seconds(us: i64) -> String {
    format!("{:.1} s", Duration::from_micros(us.unsigned_abs()).as_secs_f64())
}
