//! A mail server of a few lines that answers as it is told and keeps what it hears.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

/// What it says at each step. An answer that is `CUT` closes the connection instead.
#[derive(Debug, Clone, Copy)]
pub(super) struct Script {
    pub(super) greeting: &'static str,
    pub(super) hello: &'static str,
    pub(super) login: &'static str,
    pub(super) sender: &'static str,
    pub(super) recipient: &'static str,
    pub(super) data: &'static str,
    pub(super) end: &'static str,
}

pub(super) const CUT: &str = "";

impl Default for Script {
    fn default() -> Self {
        Self {
            greeting: "220 sink",
            hello: "250-sink\r\n250 AUTH PLAIN",
            login: "235 welcome",
            sender: "250 fine",
            recipient: "250 fine",
            data: "354 go on",
            end: "250 taken",
        }
    }
}

/// Everything the sink was told, by line, and the messages that it took or heard to their end.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) commands: Vec<String>,
    pub(super) messages: Vec<String>,
}

pub(super) struct Sink {
    pub(super) port: u16,
    heard: Arc<Mutex<Heard>>,
}

impl Sink {
    pub(super) async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let heard = Arc::new(Mutex::new(Heard::default()));
        let shared = Arc::clone(&heard);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let heard = Arc::clone(&shared);
                tokio::spawn(async move {
                    let (reader, mut writer) = stream.into_split();
                    let mut lines = BufReader::new(reader);
                    // A client that goes away ends it.
                    let _ = converse(script, &heard, &mut lines, &mut writer).await;
                });
            }
        });
        Self { port, heard }
    }

    pub(super) fn url(&self) -> String {
        format!("smtp://127.0.0.1:{}", self.port)
    }

    pub(super) fn heard<T>(&self, look: impl FnOnce(&Heard) -> T) -> T {
        look(&self.heard.lock().expect("no test panics in here"))
    }
}

async fn converse(
    script: Script,
    heard: &Mutex<Heard>,
    lines: &mut (impl AsyncBufRead + Unpin),
    writer: &mut tokio::net::tcp::OwnedWriteHalf,
) -> std::io::Result<()> {
    let mut answer = script.greeting;
    loop {
        if answer == CUT {
            return Ok(());
        }
        writer.write_all(format!("{answer}\r\n").as_bytes()).await?;
        let Some(line) = read_line(lines).await? else { return Ok(()) };
        heard.lock().expect("not poisoned").commands.push(line.clone());
        let verb = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
        answer = match verb.as_str() {
            "EHLO" => script.hello,
            "AUTH" => script.login,
            "MAIL" => script.sender,
            "RCPT" => script.recipient,
            "DATA" if script.data.starts_with('3') => {
                writer.write_all(format!("{}\r\n", script.data).as_bytes()).await?;
                let message = read_message(lines).await?;
                heard.lock().expect("not poisoned").messages.push(message);
                script.end
            }
            "DATA" => script.data,
            "QUIT" => "221 bye",
            _ => "500 what?",
        };
    }
}

async fn read_line(lines: &mut (impl AsyncBufRead + Unpin)) -> std::io::Result<Option<String>> {
    let mut line = String::new();
    let read = lines.read_line(&mut line).await?;
    Ok((read > 0).then(|| line.trim_end_matches("\r\n").to_owned()))
}

/// Up to the single dot, doubled dots undone (RFC 5321, 4.5.2).
async fn read_message(lines: &mut (impl AsyncBufRead + Unpin)) -> std::io::Result<String> {
    let mut message = String::new();
    while let Some(line) = read_line(lines).await? {
        if line == "." {
            break;
        }
        message.push_str(line.strip_prefix('.').unwrap_or(&line));
        message.push_str("\r\n");
    }
    Ok(message)
}
