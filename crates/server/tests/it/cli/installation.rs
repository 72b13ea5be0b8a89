//! From nothing to a running service, and its end.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::backups::{ended, signal, takes_signals};
use super::on_both;
use super::place::{Place, Ran, text};
use super::server::{Server, client};

on_both!(
    init_prints_exactly_what_programs_read,
    the_first_start_is_enough,
    a_term_signal_ends_it_in_order,
    a_worker_serves_nobody_but_can_be_watched,
    without_its_key_an_installation_stays_shut,
    what_no_flag_helps_against_names_none,
);

#[test]
fn help_begins_with_examples_and_ends_with_exit_codes() {
    let place = Place::sqlite();
    insta::assert_snapshot!(place.run(&["--help"]).data);
    for command in [
        &["serve"] as &[&str],
        &["init"],
        &["organization", "set"],
        &["keys", "create"],
        &["signing-keys", "rotate"],
        &["attempts", "resolve"],
        &["refunds", "resolve"],
        &["receipt", "verify"],
        &["receipt", "address"],
        &["listen"],
        &["trigger"],
        &["events", "resend"],
        &["logs", "tail"],
        &["doctor"],
        &["verify"],
        &["repair"],
        &["backup"],
        &["restore"],
        &["completions"],
        &["man"],
    ] {
        let help = place.run(&[command, &["--help"]].concat());
        assert_eq!(help.code, 0, "{command:?}");
        if !matches!(command, ["signing-keys", "rotate"] | ["receipt", _]) {
            assert!(help.data.starts_with("Examples:\n"), "{command:?}: {}", help.data);
        }
        let parent = place.run(&[command[0], "--help"]);
        assert!(parent.data.starts_with("Examples:\n"), "{command:?}: {}", parent.data);
    }
    assert!(place.run(&["init", "--help"]).data.contains("--key-file /var/lib/dalasi/master.key"));
    let wrong = place.run(&["serv"]);
    assert_eq!((wrong.code, wrong.data.as_str()), (2, ""), "{wrong:?}");
    assert_eq!(place.run(&["serve", "--listen", "everywhere"]).code, 2);
}

#[test]
fn a_shell_completes_commands() {
    let place = Place::sqlite();
    for shell in ["bash", "zsh", "fish"] {
        let script = place.run(&["completions", shell]);
        assert_eq!((script.code, script.messages.as_str()), (0, ""), "{shell}");
        assert!(script.data.contains("signing-keys"), "{shell}: {}", script.data);
        std::fs::write(place.folder().join(shell), script.data).unwrap();
    }
    assert_eq!(place.run(&["completions", "cmd"]).code, 2);
    // As a person who types `dalasi organization se` and the tabulator.
    let typed = "source ./bash; COMP_WORDS=(dalasi organization se); COMP_CWORD=2; _dalasi dalasi se organization; echo ${COMPREPLY[@]}";
    let completed = Command::new("bash").args(["-c", typed]).current_dir(place.folder()).output().unwrap();
    assert_eq!(Ran::of(completed).data, "set\n");
}

#[test]
fn every_command_has_a_page_of_the_manual() {
    let place = Place::sqlite();
    let pages = place.folder().join("man1");
    let absent = place.run(&["man", "man1"]);
    assert_eq!((absent.code, absent.data.as_str()), (1, ""), "{absent:?}");
    std::fs::create_dir(&pages).unwrap();
    let written = place.run(&["man", "man1"]);
    assert_eq!(written.code, 0, "{written:?}");
    let files: Vec<&str> = written.data.lines().collect();
    assert_eq!(files.len(), std::fs::read_dir(&pages).unwrap().count());
    for page in ["dalasi.1", "dalasi-serve.1", "dalasi-doctor.1", "dalasi-attempts-resolve.1", "dalasi-man.1"] {
        assert!(files.contains(&format!("man1/{page}").as_str()), "{page}: {files:?}");
    }
    let page = |name: &str| std::fs::read_to_string(pages.join(name)).unwrap();
    let main = place.run(&["man"]);
    assert_eq!(main.data.trim_end(), page("dalasi.1").trim_end());
    let serve = page("dalasi-serve.1");
    for words in [".SH EXAMPLES\n", "DALASI_PUBLIC_URL", "dalasi serve \\-\\-config /etc/dalasi/dalasi.toml"] {
        assert!(serve.contains(words), "{words} is not in {serve}");
    }
    assert!(main.data.contains("Exit codes"), "{}", main.data);
    // Over those of an older version.
    assert_eq!(place.run(&["man", "man1"]).code, 0);
}

async fn init_prints_exactly_what_programs_read(place: &Place) {
    let answer = place.init();
    assert!(text(&answer, "/organization_id").starts_with("org_"));
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let set = |names: [&str; 2]| BTreeSet::from(names.map(str::to_owned));
    assert_eq!(names(&answer), set(["keys", "organization_id"]));
    assert_eq!(names(&answer["keys"]), set(["live", "test"]));
    for mode in ["test", "live"] {
        assert_eq!(names(&answer["keys"][mode]), set(["publishable", "secret"]));
        assert!(text(&answer, &format!("/keys/{mode}/secret")).starts_with(&format!("sk_{mode}_")));
        assert!(text(&answer, &format!("/keys/{mode}/publishable")).starts_with(&format!("pk_{mode}_")));
    }
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.key_file()), 0o600);
    assert_eq!(mode(place.key_file().parent().unwrap()), 0o700);

    let key = std::fs::read(place.key_file()).unwrap();
    let again = place.run(&["init", "--organization", "Another", "--json"]);
    assert_eq!((again.code, again.data.as_str()), (5, ""), "{again:?}");
    assert_eq!(std::fs::read(place.key_file()).unwrap(), key);
}

async fn the_first_start_is_enough(place: &Place) {
    let server = Server::start(place);
    let curl = server.said.lines().find(|line| line.trim().starts_with("curl ")).unwrap().to_owned();
    // As pasted into a shell.
    let output = Command::new("sh").args(["-c", &curl]).output().unwrap();
    let answer = Ran::of(output);
    let checkout: Value = serde_json::from_str(&answer.data).unwrap_or_else(|_| panic!("{curl}\n{answer:?}"));
    let page = client().get(text(&checkout, "/data/payment_url")).send().await.unwrap();
    assert_eq!(page.status().as_u16(), 200);
    let docs = server.said.split_whitespace().find(|word| word.ends_with("/docs")).unwrap();
    assert!(docs.starts_with(&server.url), "{docs}");

    assert_eq!(server.stop(), 0);
    let second = Server::start(place);
    assert_eq!(second.said, "", "keys are shown once");
    assert_eq!(second.stop(), 0);
}

async fn a_term_signal_ends_it_in_order(place: &Place) {
    let keys = place.init();
    let key = text(&keys, "/keys/test/secret");
    let server = Server::start(place);
    let id = server.pay(key, "afrimoney", "+2207000000").await;
    server.until(key, &id, |checkout| checkout["status"] == "completed").await;
    // Requests that were accepted before the signal are answered after it.
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let request = client().post(format!("{}/v1/checkouts", server.url)).bearer_auth(key);
            tokio::spawn(request.header("content-type", "application/json").body(r#"{"amount":"1.00"}"#).send())
        })
        .collect();
    server.call("GET", "/v1/health", key, Value::Null).await;
    let url = server.url.clone();
    assert_eq!(server.stop(), 0);
    for call in calls {
        if let Ok(answer) = call.await.unwrap() {
            assert_eq!(answer.status().as_u16(), 201);
        }
    }
    assert!(client().get(format!("{url}/health")).send().await.is_err());
    place.has_clean_books();
}

/// Whoever closes a terminal sends it twice: to the shell, which tells it on, and to the process itself.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_that_goes_away_ends_it_in_order() {
    let place = Place::sqlite();
    place.init();
    let spawned = |mut command: Command| command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let serving = spawned(place.command(&serve));
    takes_signals(&serving).await;
    signal(serving.id(), "-HUP");
    signal(serving.id(), "-HUP");
    let (code, said) = ended(serving).await;
    assert_eq!(code, 0, "{said}");

    let mut serving = spawned(place.command_by(&["nohup"], &serve));
    takes_signals(&serving).await;
    signal(serving.id(), "-HUP");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(serving.try_wait().unwrap().is_none(), "it was begun to outlive its terminal");
    signal(serving.id(), "-TERM");
    let (code, said) = ended(serving).await;
    assert_eq!(code, 0, "{said}");
    place.has_clean_books();
}

/// Nor is it tried again, by the unit, where that mends nothing.
#[test]
fn what_a_start_is_refused_for_anyhow_is_seen_before_there_is_a_database() {
    let place = Place::sqlite();
    std::fs::write(place.folder().join("no.key"), "dalasi").unwrap();
    let mail = ["--smtp-url", "smtp://shop@127.0.0.1:1", "--mail-from", "bills@shop.example"];
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (free, taken_address) = ("127.0.0.1:0", taken.local_addr().unwrap().to_string());
    for (listen, more, code, words) in [
        (free, &["--tls-cert", "absent.pem", "--tls-key", "absent.pem"] as &[&str], 2, "absent.pem can't be read"),
        (free, &[&mail[..], &["--smtp-password-file", "absent"]].concat(), 2, "absent can't be read"),
        (free, &["--key-file", "no.key"], 2, "no.key"),
        (&taken_address, &[], 1, "can't listen on"),
    ] {
        let refused = place.run(&[&["serve", "--listen", listen], more].concat());
        assert_eq!((refused.code, refused.data.as_str()), (code, ""), "{refused:?}");
        assert!(refused.messages.contains(words), "{words:?} is not in {refused:?}");
        assert!(!place.folder().join("data").exists(), "{refused:?}");
    }
}

/// Whoever is told that nothing was changed can go on with the older program.
#[test]
fn init_leaves_the_database_of_an_older_version_as_it_is() {
    let place = Place::sqlite();
    place.init();
    let forgotten = "delete from schema_migrations where number = (select max(number) from schema_migrations)";
    assert_eq!(place.raw_sqlite().execute(forgotten, []).unwrap(), 1);
    let applied = || -> i64 {
        let newest = "select max(number) from schema_migrations";
        place.raw_sqlite().query_row(newest, [], |row| row.get(0)).unwrap()
    };
    let before = applied();
    let again = place.run(&["init", "--organization", "Another"]);
    assert_eq!((again.code, again.data.as_str(), applied()), (5, "", before), "{again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_leads_payers_nowhere_is_told_at_the_start() {
    const TOLD: &str = "public-url is not set, and there is a proxy in front";
    let place = Place::sqlite();
    let first = Server::start_with(&place, &["--trusted-proxies", "1"]);
    assert!(first.said.contains(TOLD), "{}", first.said);
    assert_eq!(first.stop(), 0);
    let log = |more: &[&str]| Server::start_unread(&place, more).stop_and_read();
    let (code, said) = log(&["--trusted-proxies", "1"]);
    assert!(code == 0 && said.contains(TOLD), "{code}: {said}");
    for well in [&[] as &[&str], &["--trusted-proxies", "1", "--public-url", "https://pay.example"]] {
        let (code, said) = log(well);
        assert!(code == 0 && !said.contains("public-url"), "{code}: {said}");
    }
}

/// Takes connections as PostgreSQL does, or a pooler before it, and answers no query. Where it is.
async fn mute_postgres() -> String {
    // "You are in", and "ready for a query".
    const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgres://nobody@{}/none", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut asked = [0; 1024];
                if stream.read(&mut asked).await.is_ok() && stream.write_all(WELCOME).await.is_ok() {
                    while stream.read(&mut asked).await.is_ok_and(|read| read > 0) {}
                }
            });
        }
    });
    url
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_never_answers_holds_up_neither_a_command_nor_a_stop() {
    let (place, url) = (Place::sqlite(), mute_postgres().await);
    let spawned = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.env_remove("DALASI_DATA_DIR").env("DALASI_DATABASE_URL", &url).env("DALASI_KEY_FILE", place.key_file());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let (code, said) = ended(spawned(&["verify"])).await;
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("gave no answer"), "{said}");
    let serving = spawned(&["serve", "--listen", "127.0.0.1:0"]);
    takes_signals(&serving).await;
    signal(serving.id(), "-TERM");
    let (code, said) = ended(serving).await;
    assert_eq!(code, 0, "stopped, and not given up: {said}");
}

/// What nobody is owed is not waited for: whoever is too late is killed.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_hangs_holds_up_no_stop() {
    let Some(place) = Place::postgres("a database that hangs holds up no stop").await else { return };
    let keys = place.init();
    let server = Server::start_with(&place, &["--database-connections", "7"]);
    let (status, _) = server.call("GET", "/v1/checkouts", text(&keys, "/keys/test/secret"), Value::Null).await;
    assert_eq!(status, 200);
    let holder = place.raw_postgres().await;
    keeps_connections(&holder, 7).await;
    holder.batch_execute("begin; lock table api_keys in access exclusive mode").await.unwrap();
    let stopped = tokio::time::timeout(Duration::from_secs(10), tokio::task::spawn_blocking(|| server.stop()));
    assert_eq!(stopped.await.expect("it ends in time").unwrap(), 0);
    drop(holder);
    place.end().await;
}

async fn keeps_connections(database: &tokio_postgres::Client, wanted: i64) {
    let ours =
        "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'dalasi'";
    let kept = async {
        while database.query_one(ours, &[]).await.unwrap().get::<_, i64>(0) != wanted {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), kept).await.expect("as many connections as were asked for");
}

async fn a_worker_serves_nobody_but_can_be_watched(place: &Place) {
    if !place.is_postgres() {
        place.init();
        let refused = place.run(&["serve", "--role", "worker"]);
        assert_eq!(refused.code, 2);
        assert!(refused.messages.contains("PostgreSQL"), "{refused:?}");
        return;
    }
    let keys = place.init();
    let key = text(&keys, "/keys/test/secret");
    let api = Server::start_with(place, &["--role", "api"]);
    let id = api.pay(key, "afrimoney", "+2207000000").await;
    let worker = Server::start_with(place, &["--role", "worker"]);
    api.until(key, &id, |checkout| checkout["status"] == "completed").await;
    let (status, health) = worker.call("GET", "/health", key, Value::Null).await;
    assert_eq!((status, health), (200, json!({ "data": { "status": "ok" } })));
    assert_eq!(worker.call("GET", "/metrics", key, Value::Null).await.0, 200);
    assert_eq!(worker.call("GET", "/v1/checkouts", key, Value::Null).await.0, 404);
    assert_eq!((api.stop(), worker.stop()), (0, 0));
}

async fn without_its_key_an_installation_stays_shut(place: &Place) {
    place.init();
    let aside = place.folder().join("aside.key");
    std::fs::rename(place.key_file(), &aside).unwrap();
    for command in [&["serve", "--listen", "127.0.0.1:0"] as &[&str], &["keys", "create"]] {
        let refused = place.run(command);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.messages.contains("master key") && !place.key_file().exists(), "{refused:?}");
    }
    // Somebody else's key opens nothing either.
    let other = Place::sqlite();
    other.init();
    std::fs::copy(other.key_file(), place.key_file()).unwrap();
    for command in [&["serve", "--listen", "127.0.0.1:0"] as &[&str], &["keys", "create"]] {
        let refused = place.run(command);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.messages.contains("does not belong"), "{refused:?}");
    }
    std::fs::rename(&aside, place.key_file()).unwrap();
    assert_eq!(place.run(&["keys", "create"]).code, 0);
}

/// That is how a variable is unset in many a deployment.
#[test]
fn an_empty_variable_is_none() {
    let place = Place::sqlite();
    place.init();
    let variables = [
        "CONFIG",
        "LISTEN",
        "DATABASE_URL",
        "KEY_FILE",
        "PUBLIC_URL",
        "PAY_URL",
        "DONATE_URL",
        "TRUSTED_PROXIES",
        "TLS_CERT",
        "TLS_KEY",
        "ALLOW_LOOPBACK_WEBHOOKS",
        "SMTP_URL",
        "SMTP_PASSWORD_FILE",
        "MAIL_FROM",
        "RATE_LIMIT",
        "ROLE",
        "UNSAFE",
        "LOG_FORMAT",
    ];
    for command in [&["verify"] as &[&str], &["doctor"], &["keys", "create"]] {
        for name in variables {
            let ran = Ran::of(place.command(command).env(format!("DALASI_{name}"), "").output().unwrap());
            assert_eq!(ran.code, 0, "{command:?} with an empty DALASI_{name}: {ran:?}");
        }
        let mut all = place.command(command);
        let ran = Ran::of(all.envs(variables.map(|name| (format!("DALASI_{name}"), ""))).output().unwrap());
        assert_eq!(ran.code, 0, "{command:?}: {ran:?}");
    }
}

/// Nor does starting again, which the unit therefore leaves.
async fn what_no_flag_helps_against_names_none(place: &Place) {
    let Some(admin) = place.admin() else { return };
    let refused = |url: &str| {
        let mut command = place.command(&["serve", "--listen", "127.0.0.1:0"]);
        let refused = Ran::of(command.env("DALASI_DATABASE_URL", url).output().unwrap());
        assert_eq!((refused.code, refused.data.as_str()), (2, ""), "{refused:?}");
        assert!(!refused.messages.contains("--unsafe") && !refused.messages.contains("hunter2"), "{refused:?}");
        refused.messages
    };
    assert!(refused("postgres://shop:hunter2@db.invalid/shop").contains("sslmode=verify-full"));
    assert!(refused("postgres://shop:hunter2@localhost/shop?sslmode=perhaps").contains("sslmode=perhaps"));

    let client = super::place::postgres_client(admin).await;
    let name = format!("it_ascii_{}", std::process::id());
    let create = format!("create database {name} template template0 encoding 'SQL_ASCII' locale 'C'");
    client.batch_execute(&create).await.unwrap();
    let (server, _) = admin.rsplit_once('/').unwrap();
    let said = refused(&format!("{server}/{name}"));
    client.batch_execute(&format!("drop database {name} with (force)")).await.unwrap();
    assert!(said.contains("SQL_ASCII"), "{said}");
}

/// Whatever the shell or the unit allows.
#[cfg(target_os = "linux")]
#[test]
fn a_server_that_breaks_leaves_no_core() {
    let place = Place::sqlite();
    let server = Server::start(&place);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.id())).unwrap();
    let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().collect::<Vec<_>>(), ["0", "0", "bytes"]);
    assert_eq!(server.stop(), 0);
}

#[test]
fn one_process_serves_an_embedded_database() {
    let place = Place::sqlite();
    let server = Server::start(&place);
    let second = place.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.code, 5, "{second:?}");
    assert_eq!(place.run(&["init", "--organization", "x"]).code, 5);
    assert_eq!(server.stop(), 0);
}

#[test]
fn nothing_is_installed_where_the_port_is_taken() {
    let place = Place::sqlite();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let refused = place.run(&["serve", "--listen", &taken.local_addr().unwrap().to_string()]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.messages.contains("--listen"), "{refused:?}");
    // So no key was made that nobody saw.
    place.init();
}
