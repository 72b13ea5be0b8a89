use std::process::Command;

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    serve: ServeArguments,
}

fn arguments(flags: &[&str]) -> ServeArguments {
    Cli::try_parse_from([&["dalasi"], flags].concat()).expect("parses").serve
}

fn file(text: &str) -> ServeArguments {
    toml::from_str(text).expect("parses")
}

fn faults(arguments: ServeArguments) -> Vec<String> {
    ServeSettings::check(arguments).expect_err("refused").0
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let settings = ServeSettings::load(ServeArguments::default()).expect("sound");
    assert_eq!(settings.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(settings.store.database, Database::Sqlite { data_dir: "./dalasi-data".into() });
    assert_eq!(settings.store.key_file, Path::new("./dalasi-data/master.key"));
    assert_eq!(settings.rate, Rate::new(100));
    assert_eq!(settings.rate.expect("a rate").burst.get(), 200);
    assert_eq!(settings.roles, Roles { api: true, worker: true });
    assert!(settings.tls.is_none() && settings.trusted_proxies == 0);
    assert!(!settings.allow_loopback_webhooks && !settings.allow_unsafe_database);
    assert!((4..=16).contains(&settings.database_connections.get()), "{}", settings.database_connections);
    let addresses = settings.addresses("127.0.0.1:4321".parse().expect("an address"));
    assert_eq!(addresses.public_url, "http://127.0.0.1:4321");
    assert_eq!(addresses.pay_url, addresses.public_url);
    assert_eq!(addresses.donate_url, addresses.public_url);
    let anywhere = settings.addresses("[::]:80".parse().expect("an address"));
    assert_eq!(anywhere.public_url, "http://localhost:80");
}

#[test]
fn a_flag_wins_over_the_file() {
    let flags =
        arguments(&["--listen", "127.0.0.1:0", "--unsafe", "--allow-loopback-webhooks=false", "--rate-limit=0"]);
    let below = file(
        "listen = '0.0.0.0:1'\nunsafe = false\nallow-loopback-webhooks = true\nrate-limit = 7\ntrusted-proxies = 2\n\
         pay-url = 'https://pay.example/'\nlog-format = 'json'",
    );
    let settings = ServeSettings::check(flags.over(below)).expect("sound");
    assert_eq!(settings.listen.port(), 0);
    assert!(settings.allow_unsafe_database && !settings.allow_loopback_webhooks);
    assert_eq!(settings.rate, None);
    assert_eq!((settings.trusted_proxies, settings.log_format), (2, LogFormat::Json));
    let addresses = settings.addresses(settings.listen);
    assert_eq!(addresses.pay_url, "https://pay.example");
}

/// A unit's environment holds what a command beside its server doesn't see.
#[test]
fn a_command_beside_the_server_asks_for_no_more_than_it_uses() {
    let beside = |text: &str| BesideSettings::check(arguments(&[]).over(file(text)));
    let settings = beside(
        "mail-from = 'bills@shop.example'\ntls-key = 'key.pem'\nrole = 'cook'\ndonate-url = 'here'\nlisten = '[::1]:443'",
    );
    let settings = settings.expect("sound");
    assert!(settings.sends_mail);
    assert_eq!((settings.public_url.as_str(), settings.pay_url.as_str()), ("https://[::1]:443", "https://[::1]:443"));

    let settings = beside("pay-url = 'https://pay.example/'").expect("sound");
    assert!(!settings.sends_mail);
    assert_eq!(settings.public_url, crate::wire::DEFAULT_API_URL);
    assert_eq!(settings.pay_url, "https://pay.example");
    let served = ServeSettings::check(ServeArguments::default()).expect("sound");
    assert_eq!(settings.store, served.store);

    let found = beside("pay-url = 'https://pay.example/here'").expect_err("refused").0;
    assert!(found.concat().contains("use https://pay.example."), "{found:?}");

    let found =
        beside("listen = 'here'\npublic-url = 'a.example'\npay-url = 'a.example'\ndatabase-url = 'mysql://h/d'");
    let found = found.expect_err("refused").0;
    let names: Vec<_> = found.iter().filter_map(|fault| fault.split(':').next()).collect();
    assert_eq!(names, ["listen", "public-url", "pay-url", "database-url", "key-file"]);
}

#[test]
fn all_faults_come_at_once() {
    let found = faults(arguments(&[
        "--listen=here",
        "--public-url=https://a.example/v1",
        "--pay-url=pay.example",
        "--donate-url=ftp://a.example",
        "--tls-cert=a.pem",
        "--role=api",
        "--data-dir=/d",
        "--database-connections=0",
    ]));
    let names: Vec<_> = found.iter().filter_map(|fault| fault.split(':').next()).collect();
    assert_eq!(names, ["listen", "public-url", "pay-url", "donate-url", "tls-key", "role", "database-connections"]);
    assert!(found[1].contains("use https://a.example."), "{}", found[1]);
    assert!(found[5].contains("PostgreSQL only"));
}

#[test]
fn postgres_needs_a_key_file_and_allows_split_roles() {
    let found = faults(arguments(&["--database-url=mysql://u:hunter2@h/d", "--data-dir=/d", "--role=cook"]));
    let names: Vec<_> = found.iter().filter_map(|fault| fault.split(':').next()).collect();
    assert_eq!(names, ["role", "data-dir, database-url", "database-url", "key-file"]);
    assert!(!found.concat().contains("hunter2"));

    let given = arguments(&[
        "--database-url=postgres://u:hunter2@h/d",
        "--key-file=/k",
        "--role=worker",
        "--database-connections=7",
    ]);
    let settings = ServeSettings::check(given).expect("sound");
    assert_eq!(settings.database_connections.get(), 7);
    assert_eq!(settings.roles, Roles { api: false, worker: true });
    assert!(!format!("{settings:?}").contains("hunter2"));
    let Database::Postgres { url } = settings.store.database else { panic!("PostgreSQL") };
    assert!(url.expose().contains("hunter2"));
}

#[test]
fn public_addresses_lose_their_slash_only() {
    for (address, expected) in [
        ("https://a.example", Some("https://a.example")),
        ("https://a.example/", Some("https://a.example")),
        ("http://127.0.0.1:8080", Some("http://127.0.0.1:8080")),
        ("https://a.example/x", None),
        ("https://a.example/?x", None),
        ("https://u@a.example", None),
        ("a.example", None),
    ] {
        for name in ["--public-url", "--pay-url", "--donate-url"] {
            let checked = ServeSettings::check(arguments(&[name, address]));
            let shown = checked.map(|settings| {
                let Addresses { public_url, pay_url, donate_url } = settings.addresses(settings.listen);
                match name {
                    "--public-url" => public_url,
                    "--pay-url" => pay_url,
                    _ => donate_url,
                }
            });
            assert_eq!(shown.ok().as_deref(), expected, "{name} {address}");
        }
    }
}

#[test]
fn an_unknown_key_in_the_file_is_refused_by_name() {
    let path = std::env::temp_dir().join(format!("dalasi-config-{}.toml", std::process::id()));
    let load = |text: &str| {
        std::fs::write(&path, text).expect("writes");
        let settings = ServeSettings::load(ServeArguments { config: Some(path.clone()), ..Default::default() });
        settings.map_err(|faults| faults.to_string())
    };
    assert_eq!(load("listen = '127.0.0.1:9'").expect("sound").listen.port(), 9);
    let refused = load("# first\nlisten = '127.0.0.1:9'\nlissten = 'x'").expect_err("unknown key");
    assert!(refused.contains("`lissten`") && refused.contains("line 3"), "{refused}");
    let refused = load("config = 'x'").expect_err("a file does not name another");
    assert!(refused.contains("`config`"), "{refused}");
    let refused = load("rate-limit = 'many'\ndatabase-url = 'hunter2'").expect_err("a wrong type");
    assert!(refused.contains("line 1") && !refused.contains("hunter2"), "{refused}");
    std::fs::remove_file(&path).expect("removes");
    let refused = ServeSettings::load(ServeArguments { config: Some(path), ..Default::default() });
    assert!(refused.expect_err("no file").to_string().contains("can't be read"));
}

#[test]
fn the_sample_shows_every_setting() {
    let sample = include_str!("../../../../dalasi.toml.sample");
    assert_eq!(file(sample), ServeArguments::default(), "as it is, it sets nothing");
    let uncommented: String = sample
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(setting) if !setting.starts_with(' ') => format!("{setting}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let all = file(&uncommented);
    // Without `..`: a setting that is added has to be added here, and so to the sample.
    let ServeArguments {
        config: _,
        listen: Some(_),
        data_dir: Some(_),
        database_url: Some(_),
        database_connections: Some(4),
        key_file: Some(_),
        public_url: Some(_),
        pay_url: Some(_),
        donate_url: Some(_),
        trusted_proxies: Some(0),
        tls_cert: Some(_),
        tls_key: Some(_),
        allow_loopback_webhooks: Some(false),
        smtp_url: Some(_),
        smtp_password_file: Some(_),
        mail_from: Some(_),
        rate_limit: Some(DEFAULT_RATE_PER_SECOND),
        role: Some(_),
        allow_unsafe: Some(false),
        log_format: Some(LogFormat::Text),
    } = all.clone()
    else {
        panic!("a setting is missing or not its default: {all:?}");
    };
    for one in [ServeArguments { data_dir: None, ..all.clone() }, ServeArguments { database_url: None, ..all }] {
        ServeSettings::check(one).expect("the sample is sound");
    }
}

/// The environment can be set for another process only: this test runs itself in one.
#[test]
fn the_environment_is_between_flags_and_file() {
    const CHILD: &str = "DALASI_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        let below = file("listen = '127.0.0.1:1'\nrate-limit = 1\nrole = 'api'\npay-url = 'https://file.example'");
        let given = arguments(&["--listen", "127.0.0.1:3"]).over(below);
        assert_eq!(given.listen.as_deref(), Some("127.0.0.1:3"), "the flag");
        assert_eq!((given.rate_limit, given.role.as_deref()), (Some(2), Some("worker")), "the environment");
        assert_eq!(given.pay_url.as_deref(), Some("https://file.example"), "empty is not given");
        assert_eq!((given.allow_unsafe, given.allow_loopback_webhooks), (Some(true), Some(false)));
        assert_eq!(given.log_format, Some(LogFormat::Json));
        return;
    }
    let output = Command::new(std::env::current_exe().expect("a test binary"))
        .args(["--exact", "config::tests::the_environment_is_between_flags_and_file"])
        .envs([
            (CHILD, "1"),
            ("DALASI_LISTEN", "127.0.0.1:2"),
            ("DALASI_RATE_LIMIT", "2"),
            ("DALASI_ROLE", "worker"),
            ("DALASI_PAY_URL", ""),
            ("DALASI_UNSAFE", "yes"),
            ("DALASI_ALLOW_LOOPBACK_WEBHOOKS", "0"),
            ("DALASI_LOG_FORMAT", "json"),
        ])
        .output()
        .expect("runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// A variable and a file key for every flag, all of the same name.
#[test]
fn flags_variables_and_keys_have_the_same_names() {
    use clap::CommandFactory;
    #[derive(Parser)]
    struct Beside {
        #[command(flatten)]
        store: StoreArguments,
        #[command(flatten)]
        server: BesideArguments,
    }
    for argument in Cli::command().get_arguments().chain(Beside::command().get_arguments()) {
        let flag = argument.get_long().expect("a long flag");
        let variable = argument.get_env().expect("a variable").to_str().expect("text");
        assert_eq!(variable, format!("DALASI_{}", flag.replace('-', "_").to_uppercase()));
        let known = toml::from_str::<ServeArguments>(&format!("{flag} = []"));
        let message = known.expect_err("a wrong type or key").message().to_owned();
        assert_eq!(message.contains("unknown field"), flag == "config", "{flag}: {message}");
    }
}
