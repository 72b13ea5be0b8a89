//! The rules and the dashboard of `docs/deploy`, held against what real processes serve.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::cluster::{missing, on_path};
use crate::place::client;
use crate::processes::Fleet;

/// Whoever copies the rules and the dashboard must not wait for a name that is never served.
pub(crate) async fn what_they_ask_for_is_served(fleet: &Fleet) {
    let mut served = String::new();
    for url in fleet.members.iter().filter_map(|member| member.url()) {
        let metrics = client().get(format!("{url}/metrics")).send().await.unwrap().text().await.unwrap();
        takes(promtool(&["check", "metrics"], &metrics));
        served += &metrics;
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

const GUIDES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/deploy");

fn guide(file: &str) -> String {
    std::fs::read_to_string(format!("{GUIDES}/{file}")).unwrap()
}

#[test]
fn an_alarm_is_raised_when_it_should_be_and_not_before() {
    takes(promtool(&["test", "rules", "alerts_test.yml"], ""));
    let (rules, cases) = (guide("alerts.yml"), guide("alerts_test.yml"));
    let names: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(names.len() > 10, "hardly an alarm is in alerts.yml");
    for name in names {
        assert!(cases.contains(&format!("alertname=\"{name}\"")), "alerts_test.yml never expects {name}");
    }
}

/// With the rules where the guide wants them.
#[test]
fn prometheus_takes_the_settings_of_the_guide() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prometheus");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("dalasi-alerts.yml"), guide("alerts.yml")).unwrap();
    std::fs::write(folder.join("db-ca.pem"), "").unwrap();
    let guide = guide("monitoring.md");
    let (_, rest) = guide.split_once("```yaml\n# prometheus.yml\n").unwrap();
    let (settings, _) = rest.split_once("```").unwrap();
    let file = folder.join("prometheus.yml");
    std::fs::write(&file, settings.replace("/etc/prometheus", folder.to_str().unwrap())).unwrap();
    takes(promtool(&["check", "config", file.to_str().unwrap()], ""));
}

/// Prometheus' own judge, in the guides' folder; nothing where there is none.
fn promtool(arguments: &[&str], input: &str) -> Option<Output> {
    let Some(program) = on_path("promtool") else {
        crate::not_run("Prometheus' judgement", missing("there is no promtool (Debian: prometheus)"));
        return None;
    };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(Path::new(GUIDES));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Some(child.wait_with_output().unwrap())
}

fn takes(ran: Option<Output>) {
    if let Some(ran) = ran {
        let said = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert!(ran.status.success(), "{said}");
    }
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
            "jobs_test" | "mails_test" | "webhooks_test" => &["ticket"],
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
