//! What the checks found, and how it is told.

use std::io::IsTerminal as _;

use serde::Serialize;

use crate::cli::output;
use crate::cli::problem::Problem;
use crate::pages::text::plain;

/// The worse, the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Ok,
    /// It works, and somebody should look at it.
    Warning,
    Failed,
}

impl Status {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) status: Status,
    pub(super) found: String,
    /// What to do about it.
    pub(super) next: Option<String>,
}

impl Finding {
    pub(super) fn ok(found: impl Into<String>) -> Self {
        Self { status: Status::Ok, found: found.into(), next: None }
    }

    pub(super) fn warning(found: impl Into<String>, next: impl Into<String>) -> Self {
        Self::of(Status::Warning, found, next)
    }

    pub(super) fn failed(found: impl Into<String>, next: impl Into<String>) -> Self {
        Self::of(Status::Failed, found, next)
    }

    pub(super) fn of(status: Status, found: impl Into<String>, next: impl Into<String>) -> Self {
        let next = Some(next.into()).filter(|next| !next.is_empty() && status != Status::Ok);
        Self { status, found: found.into(), next }
    }
}

/// Everything that was looked at under one name. The names are the same in every version.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    name: &'static str,
    status: Status,
    findings: Vec<Finding>,
}

impl Check {
    pub(super) fn of(name: &'static str, findings: Vec<Finding>) -> Self {
        let status = findings.iter().map(|finding| finding.status).max().unwrap_or(Status::Ok);
        Self { name, status, findings }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Report {
    status: Status,
    checks: Vec<Check>,
}

impl Report {
    pub(super) fn of(checks: Vec<Check>) -> Self {
        let status = checks.iter().map(|check| check.status).max().unwrap_or(Status::Ok);
        Self { status, checks }
    }

    pub(super) fn failed(&self) -> Vec<&'static str> {
        let failed = self.checks.iter().filter(|check| check.status == Status::Failed);
        failed.map(|check| check.name).collect()
    }

    /// A person gets the next step below what was found, a program four cells.
    pub(super) fn show(&self) -> Result<(), Problem> {
        let all = self.checks.iter().flat_map(|check| check.findings.iter().map(|finding| (check.name, finding)));
        if std::io::stdout().is_terminal() {
            return all.map(|(name, finding)| lines(name, finding)).try_for_each(|lines| output::line(&lines));
        }
        let row = |(name, finding): (&str, &Finding)| {
            let next = finding.next.clone().unwrap_or_default();
            vec![name.to_owned(), finding.status.as_str().to_owned(), finding.found.clone(), next]
        };
        output::table(&["check", "status", "found", "next"], &all.map(row).collect::<Vec<_>>())
    }
}

fn lines(name: &str, finding: &Finding) -> String {
    // Some of the words are another's: a mail server's, a certificate's.
    let first = format!("{:<8} {name:<9} {}", finding.status.as_str(), plain(&finding.found));
    match &finding.next {
        Some(next) => format!("{first}\n{:18} → {}", "", plain(next)),
        None => first,
    }
}
