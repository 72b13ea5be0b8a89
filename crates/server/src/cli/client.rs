//! The API as a developer's commands call it: over HTTP, with a key, as any client would.

use std::env::VarError;
use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use domain::Mode;
use domain::api_key::KeyKind;
use http::{HeaderMap, Method, StatusCode, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::output;
use super::problem::Problem;
use crate::credentials::ApiKey;
use crate::egress::USER_AGENT;
use crate::plausible::is_web_address;
use crate::wire::DEFAULT_API_URL;

const PATIENCE: Duration = Duration::from_secs(30);
const LONGEST_KEY_FILE: u64 = 4096;
const KEY_VARIABLE: &str = "DALASI_API_KEY";

/// Where the API is and who calls it
#[derive(clap::Args)]
pub(super) struct ClientArguments {
    /// The address of the API
    #[arg(long, env = "DALASI_API_URL", value_name = "URL", default_value = DEFAULT_API_URL)]
    api_url: String,

    /// A file with a secret key, - is standard input; without it DALASI_API_KEY is read, or standard input
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

#[derive(Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    base: String,
    key: ApiKey,
}

/// Why a call brought no answer that can be used.
#[derive(Debug)]
pub(super) enum CallFault {
    /// It may be different in a moment.
    Away(String),
    /// It will not. With the code of the refusal, where the answer had one.
    Refused { code: Option<String>, problem: Problem },
}

impl From<CallFault> for Problem {
    fn from(fault: CallFault) -> Self {
        match fault {
            CallFault::Away(why) => Problem::failed(why),
            CallFault::Refused { problem, .. } => problem,
        }
    }
}

#[derive(Deserialize)]
struct Success<T> {
    data: T,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
    code: String,
}

impl Client {
    pub(super) fn new(arguments: ClientArguments) -> Result<Self, Problem> {
        let base = arguments.api_url.trim_end_matches('/').to_owned();
        if !is_web_address(&base) {
            return Err(Problem::usage("--api-url: an http or https address, such as http://127.0.0.1:8080."));
        }
        let key = ApiKey::parse(read_key(arguments.key_file)?.trim())
            .map_err(|_| Problem::not_authorized("what was given is no API key. `dalasi keys create` makes one."))?;
        if key.kind() != KeyKind::Secret {
            return Err(Problem::not_authorized("a secret key is needed (sk_…), not a publishable one."));
        }
        Ok(Self { http: http_client()?, base, key })
    }

    pub(super) fn mode(&self) -> Mode {
        self.key.mode()
    }

    /// Test mode unless live mode is meant: a key alone is too easily the wrong one.
    pub(super) fn require_meant(&self, live: bool) -> Result<(), Problem> {
        match (self.mode().is_live(), live) {
            (true, false) => Err(Problem::usage("this is a key of live mode: give --live to mean it.")),
            (false, true) => Err(Problem::not_authorized("for --live a key of live mode is needed (sk_live_…).")),
            (true, true) | (false, false) => Ok(()),
        }
    }

    /// For what belongs to this key and to no other.
    pub(super) fn key(&self) -> &ApiKey {
        &self.key
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, CallFault> {
        self.call(Method::GET, path, None).await
    }

    pub(super) async fn post<T: DeserializeOwned>(&self, path: &str, body: &serde_json::Value) -> Result<T, CallFault> {
        self.call(Method::POST, path, Some(body.to_string())).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> Result<T, CallFault> {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body);
        }
        let answer = self.success(request).await?;
        let bytes = answer.bytes().await.map_err(|error| self.broke_off(&error))?;
        let success: Success<T> = serde_json::from_slice(&bytes).map_err(|_| self.of_another_kind())?;
        Ok(success.data)
    }

    /// A stream of server-sent events, which is read as it comes and for so long at most.
    pub(super) async fn open(&self, path: &str, longest: Duration) -> Result<reqwest::Response, CallFault> {
        // A refusal's body is waited for no longer than its beginning.
        let begun = self.success(self.request(Method::GET, path).timeout(longest));
        let answer = tokio::time::timeout(PATIENCE, begun).await;
        let answer = answer.unwrap_or_else(|_| Err(self.away("does not answer".to_owned())))?;
        match answer.headers().get(header::CONTENT_TYPE) {
            Some(kind) if kind.as_bytes().starts_with(b"text/event-stream") => Ok(answer),
            Some(_) | None => Err(self.of_another_kind()),
        }
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base)).bearer_auth(self.key.expose())
    }

    /// The answer as it begins, or what it says if it is no success.
    async fn success(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Response, CallFault> {
        let answer = self.send(request).await?;
        match answer.status().is_success() {
            true => Ok(answer),
            false => Err(self.refusal(answer).await),
        }
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Response, CallFault> {
        request.send().await.map_err(|error| {
            let hint = if error.is_connect() {
                ". Is `dalasi serve` running there? --api-url names another place"
            } else {
                ""
            };
            self.away(format!("can't be reached: {}{hint}", cause(&error)))
        })
    }

    /// What an answer says that is no success.
    async fn refusal(&self, answer: reqwest::Response) -> CallFault {
        let status = answer.status();
        let bytes = match answer.bytes().await {
            Ok(bytes) => bytes,
            Err(error) => return self.broke_off(&error),
        };
        let (sentence, code) = match serde_json::from_slice(&bytes) {
            Ok(Refusal { error, code }) => (error, Some(code)),
            Err(_) => (format!("it answered {status}"), None),
        };
        match status {
            StatusCode::TOO_MANY_REQUESTS => self.away(sentence),
            status if status.is_server_error() => self.away(format!("answered {status}: {sentence}")),
            _ => {
                let problem = Problem::refused(status, code.as_deref(), sentence);
                CallFault::Refused { code, problem }
            }
        }
    }

    fn away(&self, why: String) -> CallFault {
        CallFault::Away(format!("{} {why}", self.base))
    }

    fn broke_off(&self, error: &reqwest::Error) -> CallFault {
        self.away(format!("broke off its answer: {}", cause(error)))
    }

    fn of_another_kind(&self) -> CallFault {
        let why = format!("{} does not answer as Dalasi does; check --api-url.", self.base);
        CallFault::Refused { code: None, problem: Problem::failed(why) }
    }

    /// Hands bytes to an address of the developer's choice; the status, or why there is none.
    pub(super) async fn forward(&self, url: &Url, headers: HeaderMap, body: Bytes) -> Result<StatusCode, String> {
        let sent = self.http.post(url.clone()).headers(headers).body(body).timeout(PATIENCE / 2).send().await;
        sent.map(|answer| answer.status()).map_err(|error| cause(&error))
    }
}

pub(super) fn http_client() -> Result<reqwest::Client, Problem> {
    #[expect(clippy::disallowed_methods, reason = "the developer names the addresses, this machine's among them")]
    let builder = || {
        reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .user_agent(USER_AGENT)
            .timeout(PATIENCE)
    };
    // Without certificates of authorities, http to this machine still works.
    let built = builder().build().or_else(|_| builder().tls_certs_only([]).build());
    built.map_err(|error| Problem::failed(format!("no HTTP client can be made: {}", cause(&error))))
}

/// The innermost cause, without the address that everybody knows.
pub(super) fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

fn read_key(file: Option<PathBuf>) -> Result<String, Problem> {
    match file {
        Some(path) if path.as_os_str() == "-" => read_typed_key(),
        Some(path) => {
            let read = std::fs::File::open(&path).and_then(read_short);
            read.map_err(|error| Problem::usage(format!("--key-file {}: {error}", path.display())))
        }
        None => match std::env::var(KEY_VARIABLE) {
            Ok(key) if !key.is_empty() => Ok(key),
            Err(VarError::NotUnicode(_)) => {
                Err(Problem::not_authorized(format!("what {KEY_VARIABLE} holds is no API key: it is not even text.")))
            }
            Ok(_) | Err(VarError::NotPresent) if std::io::stdin().is_terminal() => Err(no_key()),
            Ok(_) | Err(VarError::NotPresent) => {
                // Whoever pipes nothing would else wait for they don't know what.
                output::message(&format!(
                    "Reading the secret key from standard input: neither --key-file nor {KEY_VARIABLE} is given."
                ));
                read_typed_key()
            }
        },
    }
}

fn read_typed_key() -> Result<String, Problem> {
    read_short(std::io::stdin()).ok().filter(|text| !text.trim().is_empty()).ok_or_else(no_key)
}

fn read_short(from: impl Read) -> std::io::Result<String> {
    let mut text = String::new();
    from.take(LONGEST_KEY_FILE).read_to_string(&mut text)?;
    Ok(text)
}

fn no_key() -> Problem {
    Problem::not_authorized(format!(
        "a secret key is needed: set {KEY_VARIABLE}, or give --key-file, or pass it on standard input. \
         `dalasi keys create` makes one."
    ))
}
