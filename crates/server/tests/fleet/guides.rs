//! The rules and the dashboard of `docs/deploy`, held against what real processes serve.

use std::collections::BTreeSet;

use crate::place::client;
use crate::processes::Fleet;

/// Whoever copies the rules and the dashboard must not wait for a name that is never served.
pub(crate) async fn what_they_ask_for_is_served(fleet: &Fleet) {
    let mut served = String::new();
    for url in fleet.members.iter().filter_map(|member| member.url()) {
        served += &client().get(format!("{url}/metrics")).send().await.unwrap().text().await.unwrap();
    }
    let is_served = |name: &str| {
        let plain = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        served.contains(&format!("# TYPE {plain} "))
    };
    for file in ["alerts.yml", "dashboard.json"] {
        let asked = guide(file);
        let names = asked.split(|c: char| !(c.is_ascii_lowercase() || c == '_'));
        let names: Vec<_> = names.filter(|name| name.starts_with("dalasi_")).collect();
        assert!(names.len() > 5, "{file} asks for hardly anything");
        for name in names {
            assert!(is_served(name), "{file} asks for {name}, which is not in\n{served}");
        }
    }
    assert!(!is_served("dalasi_nothing_of_the_kind"));
    every_queue_has_its_alarms(&guide("alerts.yml"), &served);
}

fn guide(file: &str) -> String {
    let path = format!("{}/../../docs/deploy/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

/// Each queue is looked at by one alarm of each severity that it ought to have, and by no other.
fn every_queue_has_its_alarms(rules: &str, served: &str) {
    let queue_of =
        |line: &str| line.strip_prefix("dalasi_backlog_seconds{queue=\"")?.split('"').next().map(str::to_owned);
    let queues: BTreeSet<String> = served.lines().filter_map(queue_of).collect();
    assert!(queues.len() > 5, "hardly any queue is in\n{served}");
    for queue in &queues {
        let wanted: &[&str] = match queue.as_str() {
            // Made before anybody asks for it: it waits while there is anything else to do.
            "jobs_ahead" => &[],
            // A bulk mailing, a mail server or a receiver makes them late, which is nothing to wake anybody for at first.
            "mails" | "webhooks" => &["page", "ticket"],
            _ => &["page"],
        };
        let mut found: Vec<&str> =
            rules.split("- alert: ").filter(|rule| is_about(rule, queue)).map(severity).collect();
        found.sort_unstable();
        assert_eq!(found, wanted, "the alarms of {queue}");
    }
}

/// Whether a rule selects the backlog of this queue.
fn is_about(rule: &str, queue: &str) -> bool {
    let Some((_, selector)) = rule.split_once("dalasi_backlog_seconds{queue") else { return false };
    let mut parts = selector.split('"');
    let (operator, names) = (parts.next().unwrap(), parts.next().unwrap());
    let is_named = names.split('|').any(|name| name == queue);
    match operator {
        "=" | "=~" => is_named,
        "!=" | "!~" => !is_named,
        other => panic!("{other} selects nothing"),
    }
}

fn severity(rule: &str) -> &str {
    let (_, rest) = rule.split_once("severity: ").unwrap();
    rest.split(' ').next().unwrap()
}
