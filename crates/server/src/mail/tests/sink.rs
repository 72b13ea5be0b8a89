//! A mail server of a few lines that answers as it is told and keeps what it hears.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// What it says at each step. An answer that is `CUT` closes the connection instead; what follows `LATER` is not said before the
/// sink is told to speak otherwise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Script {
    pub(crate) greeting: &'static str,
    pub(crate) hello: &'static str,
    /// Before TLS.
    pub(crate) starttls: &'static str,
    pub(crate) login: &'static str,
    pub(crate) sender: &'static str,
    pub(crate) recipient: &'static str,
    pub(crate) data: &'static str,
    pub(crate) end: &'static str,
}

pub(crate) const CUT: &str = "";
const LATER: &str = "later ";

impl Default for Script {
    fn default() -> Self {
        Self {
            greeting: "220 sink",
            hello: "250-sink\r\n250 AUTH PLAIN",
            starttls: "220 go on",
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
pub(crate) struct Heard {
    pub(crate) commands: Vec<String>,
    pub(crate) messages: Vec<String>,
}

/// How a client reaches it.
#[derive(Clone)]
pub(crate) enum Reached {
    Plainly,
    ByTls(TlsAcceptor),
    ByStartTls(TlsAcceptor),
}

pub(crate) struct Sink {
    pub(crate) port: u16,
    heard: Arc<Mutex<Heard>>,
    script: watch::Sender<Script>,
}

impl Sink {
    pub(crate) async fn start(script: Script) -> Self {
        Self::reached(Reached::Plainly, script).await
    }

    pub(crate) async fn reached(reached: Reached, script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let heard = Arc::new(Mutex::new(Heard::default()));
        let script = watch::Sender::new(script);
        let shared = (Arc::clone(&heard), script.subscribe());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (heard, reached, told) = (Arc::clone(&shared.0), reached.clone(), shared.1.clone());
                // A client that goes away ends it.
                tokio::spawn(async move { serve(reached, told, &heard, stream).await });
            }
        });
        Self { port, heard, script }
    }

    /// From the next connection on.
    pub(crate) fn speak(&self, script: Script) {
        self.script.send_replace(script);
    }

    pub(crate) fn url(&self) -> String {
        format!("smtp://127.0.0.1:{}", self.port)
    }

    pub(crate) fn heard<T>(&self, look: impl FnOnce(&Heard) -> T) -> T {
        look(&self.heard.lock().expect("no test panics in here"))
    }
}

async fn serve(
    reached: Reached,
    mut told: watch::Receiver<Script>,
    heard: &Mutex<Heard>,
    stream: TcpStream,
) -> std::io::Result<()> {
    let script = *told.borrow_and_update();
    let told = &mut told;
    match reached {
        Reached::Plainly => converse(script, told, heard, Some(script.greeting), &mut BufReader::new(stream)).await,
        Reached::ByTls(acceptor) => {
            let stream = acceptor.accept(stream).await?;
            converse(script, told, heard, Some(script.greeting), &mut BufReader::new(stream)).await
        }
        Reached::ByStartTls(acceptor) => {
            let offer = Script { hello: "250-sink\r\n250 STARTTLS", ..script };
            let mut plain = BufReader::new(stream);
            converse(offer, told, heard, Some(script.greeting), &mut plain).await?;
            let stream = acceptor.accept(plain.into_inner()).await?;
            converse(script, told, heard, None, &mut BufReader::new(stream)).await
        }
    }
}

/// Until the client or the script ends it, or TLS is to begin.
async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
    script: Script,
    told: &mut watch::Receiver<Script>,
    heard: &Mutex<Heard>,
    mut answer: Option<&str>,
    stream: &mut BufReader<S>,
) -> std::io::Result<()> {
    loop {
        if answer == Some(CUT) {
            return Ok(());
        }
        if let Some(answer) = answer {
            let later = answer.strip_prefix(LATER);
            if later.is_some() && told.changed().await.is_err() {
                return Ok(());
            }
            say(stream, later.unwrap_or(answer)).await?;
        }
        let Some(line) = read_line(stream).await? else { return Ok(()) };
        heard.lock().expect("not poisoned").commands.push(line.clone());
        let verb = line.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
        answer = Some(match verb.as_str() {
            "EHLO" => script.hello,
            "STARTTLS" => return say(stream, script.starttls).await,
            "AUTH" => script.login,
            "MAIL" => script.sender,
            "RCPT" => script.recipient,
            "DATA" if script.data.starts_with('3') => {
                say(stream, script.data).await?;
                let message = read_message(stream).await?;
                heard.lock().expect("not poisoned").messages.push(message);
                script.end
            }
            "DATA" => script.data,
            "QUIT" => "221 bye",
            _ => "500 what?",
        });
    }
}

async fn say(stream: &mut (impl AsyncWrite + Unpin), line: &str) -> std::io::Result<()> {
    stream.write_all(format!("{line}\r\n").as_bytes()).await?;
    stream.flush().await
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
