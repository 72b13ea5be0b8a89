//! Which addresses of a mail server are taken, and what is said about the others.

use std::path::PathBuf;

use super::settings;
use crate::mail::settings::Password;
use crate::mail::{MailSettings, Mailer, Security};

fn refused(url: &str) -> String {
    let checked = MailSettings::check(Some(url.into()), None, Some("bills@shop.example".into()));
    checked.expect_err(url).join("\n")
}

#[test]
fn an_address_says_where_and_how() {
    let table = [
        ("smtp://mail.example", "mail.example", 587, Security::StartTls),
        ("smtp://mail.example:25", "mail.example", 25, Security::StartTls),
        ("smtp://mail.example/?tls=required", "mail.example", 587, Security::StartTls),
        ("smtp://mail.example?tls=opportunistic", "mail.example", 587, Security::StartTlsIfOffered),
        ("smtp://mail.example?tls=none", "mail.example", 587, Security::Nothing),
        ("smtps://mail.example", "mail.example", 465, Security::Tls),
        ("smtps://192.0.2.7:2465", "192.0.2.7", 2465, Security::Tls),
        ("smtps://[2001:db8::7]", "2001:db8::7", 465, Security::Tls),
        ("smtp://localhost:1025", "localhost", 1025, Security::StartTlsIfOffered),
        ("smtp://127.0.0.1:1025", "127.0.0.1", 1025, Security::StartTlsIfOffered),
        ("smtp://[::1]:1025", "::1", 1025, Security::StartTlsIfOffered),
        ("smtp://localhost:1025?tls=required", "localhost", 1025, Security::StartTls),
        ("smtp://localhost.example", "localhost.example", 587, Security::StartTls),
    ];
    for (url, host, port, security) in table {
        let settings = settings(url, "bills@shop.example");
        assert_eq!((settings.host.as_str(), settings.port, settings.security), (host, port, security), "{url}");
        assert!(settings.login.is_none());
    }
}

#[test]
fn user_and_password_are_read_as_they_were_meant() {
    let settings = settings("smtps://bills%40shop.example:p%3A%2F%C3%A9+@mail.example", "bills@shop.example");
    let login = settings.login.as_ref().expect("a login");
    let Password::Given(password) = &login.password else { panic!("it is in the address") };
    assert_eq!((login.user.as_str(), password.expose()), ("bills@shop.example", "p:/é+"));
    let shown = format!("{settings:?}");
    assert!(!shown.contains("p:/é+"), "{shown}");
}

#[test]
fn a_wrong_address_is_explained_without_repeating_it() {
    for url in [
        "mail.example:587",
        "http://mail.example",
        "smtp://",
        "smtp:mail.example",
        "smtp://user:hunt/er2@mail.example",
        "smtp://user:hunt#er2@mail.example",
        "smtp://user:hunt?er2@mail.example",
        "smtp://user:hunter2@mail.example/path",
        "smtp://user:hunter2@mail.example#x",
        "smtp://user:hunter2@ma il.example",
        "smtp://user:hunter2@mail.example:port",
        "smtp://user:%ff@mail.example",
        "smtp://user:hunter2%00@mail.example",
        "smtp://user@mail.example",
        "smtp://:hunter2@mail.example",
        "smtp://user:hunter2@mail.example?tls=yes",
        "smtp://user:hunter2@mail.example?tls=required&tls=none",
        "smtp://user:hunter2@mail.example?ssl=1",
        "smtps://user:hunter2@mail.example?tls=none",
        "smtp://user:hunter2@mail.example?tls=none",
        "smtp://user:hunter2@mail.example?tls=opportunistic",
    ] {
        let sentence = refused(url);
        assert!(sentence.starts_with("smtp-url: ") && sentence.ends_with('.'), "{url}: {sentence}");
        assert!(!sentence.contains("hunt") && !sentence.contains("er2"), "{url}: {sentence}");
    }
    insta::assert_snapshot!(refused("smtp://user:hunter2@mail.example?tls=opportunistic"), @"smtp-url: this choice of `tls` could send the password in the clear. Leave `tls` out (STARTTLS is then required), or use smtps://.");
    insta::assert_snapshot!(refused("smtp://user@mail.example"), @"smtp-url: there is a user without a password. Write user:password, or name a file with smtp-password-file.");
    // Nobody can listen on the way to this machine itself.
    settings("smtp://user:hunter2@localhost?tls=none", "bills@shop.example");
}

#[test]
fn the_settings_have_to_fit_together() {
    let file = || Some(PathBuf::from("/etc/dalasi/smtp-password"));
    let check = |url: Option<&str>, file, from: Option<&str>| {
        let checked = MailSettings::check(url.map(str::to_owned), file, from.map(str::to_owned));
        checked.map(|settings| settings.is_some()).map_err(|faults| faults.join("\n"))
    };
    assert_eq!(check(None, None, None), Ok(false));
    assert_eq!(check(Some("smtps://user@mail.example"), file(), Some("a@b.example")), Ok(true));
    let faults = [
        check(Some("smtps://mail.example"), None, None),
        check(None, None, Some("a@b.example")),
        check(None, file(), None),
        check(Some("smtps://u:p@mail.example"), file(), Some("a@b.example")),
        check(Some("smtps://mail.example"), file(), Some("a@b.example")),
        check(Some("nothing"), None, Some("nobody")),
    ];
    let faults: Vec<String> = faults.into_iter().map(|fault| fault.expect_err("refused")).collect();
    insta::assert_snapshot!(faults.join("\n--\n"), @r#"
    mail-from: it is missing; customers have to see who writes to them. Set it to an address of yours that this mail server may send from.
    --
    mail-from: it is of no use without smtp-url. Set `smtp-url`, or leave `mail-from` out.
    --
    smtp-password-file: it is of no use without smtp-url. Set `smtp-url`, or leave `smtp-password-file` out.
    --
    smtp-password-file: smtp-url holds a password already. Give it in one of the two.
    --
    smtp-url: there is a password, but no user. Write smtp://user@… before the host.
    --
    mail-from: "nobody" is not one mail address, such as bills@shop.example or "Kairaba Books <bills@shop.example>".
    smtp-url: it must look like smtp://user:password@mail.example:587 (STARTTLS) or smtps://user:password@mail.example:465 (TLS from the start); a special character in user or password is written as in any address, @ as %40.
    "#);
}

#[test]
fn a_sender_is_one_address_with_or_without_a_name() {
    let from = |text: &str| {
        let checked = MailSettings::check(Some("smtps://mail.example".into()), None, Some(text.into()));
        checked.ok().flatten().map(|settings| (settings.from.name, settings.from.address.to_string()))
    };
    let address = || "a@b.example".to_owned();
    assert_eq!(from("a@b.example"), Some((None, address())));
    assert_eq!(from("<a@b.example>"), Some((None, address())));
    assert_eq!(from("Kairaba Books <a@b.example>"), Some((Some("Kairaba Books".into()), address())));
    assert_eq!(from("\"Books, Maps\" <a@b.example>"), Some((Some("Books, Maps".into()), address())));
    for wrong in
        ["a", "a@", "a@b.example, c@d.example", "a@b.example c", "A <a@b.example> x", "A\r\nBcc: x <a@b.example>"]
    {
        assert_eq!(from(wrong), None, "{wrong:?}");
    }
}

#[test]
fn the_password_file_is_read_at_the_start() {
    let path = std::env::temp_dir().join(format!("dalasi-smtp-password-{}", std::process::id()));
    let start = || {
        let url = Some("smtps://user@mail.example".to_owned());
        let settings = MailSettings::check(url, Some(path.clone()), Some("a@b.example".into()));
        Mailer::new(settings.expect("sound").expect("configured"), None).map(drop).map_err(|fault| fault.to_string())
    };
    assert!(start().expect_err("no file").contains("can't be read"));
    std::fs::write(&path, "\n").expect("writes");
    assert!(start().expect_err("an empty line").contains("in its first line"));
    std::fs::write(&path, "hunter2\n").expect("writes");
    assert_eq!(start(), Ok(()));
    std::fs::remove_file(&path).expect("removes");
}
