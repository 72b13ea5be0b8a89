//! Where log lines go and how they look. What may be in them is decided where they are written: named fields,
//! never bodies, headers or whole addresses.

mod batches;

use std::sync::OnceLock;

use tracing_subscriber::filter::{EnvFilter, LevelFilter};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use self::batches::Batches;
use crate::runtime;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The environment variable with a filter such as `info` or `info,dalasi=debug`.
pub const FILTER_VARIABLE: &str = "DALASI_LOG";

/// Those of the whole process.
static BATCHES: OnceLock<Batches> = OnceLock::new();

/// Has what waits written, if standard error takes it within a second. To be called before the process ends.
pub fn flush() {
    if let Some(batches) = BATCHES.get() {
        batches.flush();
    }
}

/// Starts logging to standard error, for the whole process; a second call changes nothing.
///
/// # Errors
///
/// The system starts no thread.
pub fn install(format: LogFormat) -> std::io::Result<()> {
    if BATCHES.get().is_some() {
        return Ok(());
    }
    let filter = std::env::var(FILTER_VARIABLE).unwrap_or_default();
    let (filter, complaint) = filter_from(&filter);
    let started = Batches::start(std::io::stderr())?;
    let batches = BATCHES.get_or_init(|| started);
    if Registry::default().with(layer(format, batches.clone()).with_filter(filter)).try_init().is_err() {
        return Ok(());
    }
    if let Some(complaint) = complaint {
        tracing::warn!(complaint, "{FILTER_VARIABLE} is not a filter; logging at `info`");
    }
    report_panics();
    Ok(())
}

fn filter_from(text: &str) -> (EnvFilter, Option<String>) {
    let builder = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into());
    match builder.parse(text) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new("info"), Some(error.to_string())),
    }
}

fn layer<W>(format: LogFormat, writer: W) -> Box<dyn Layer<Registry> + Send + Sync>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    match format {
        LogFormat::Text => layer.with_ansi(wants_colour()).with_target(false).boxed(),
        LogFormat::Json => layer.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
    }
}

fn wants_colour() -> bool {
    use std::io::IsTerminal;
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// A panic's message may hold the value that caused it, such as a request; its place in our code is what we need. With a thread that
/// drives the others the server would neither answer nor end: such a panic ends the process.
fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        let message = panic.payload().downcast_ref::<&'static str>().copied();
        tracing::error!(place, message, "panicked");
        if runtime::drives() {
            tracing::error!("a thread that everything else waits for is lost: the process ends");
            flush();
            std::process::abort();
        }
    }));
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("not poisoned").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: LogFormat, filter: &str, write: impl FnOnce()) -> String {
        let sink = Sink::default();
        let writer = sink.clone();
        let layer = layer(format, move || writer.clone()).with_filter(filter_from(filter).0);
        tracing::subscriber::with_default(Registry::default().with(layer), write);
        let bytes = sink.0.lock().expect("not poisoned").clone();
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn json_lines_are_flat_objects() {
        let line = logged(LogFormat::Json, "", || {
            tracing::info!(status = 201, request_id = "req_1", "request");
            tracing::debug!("not at this level");
        });
        let value: serde_json::Value = serde_json::from_str(&line).expect("one JSON line");
        assert_eq!(value["status"], 201);
        assert_eq!(value["message"], "request");
        assert_eq!(value["level"], "INFO");
        assert!(value["timestamp"].is_string());
    }

    #[test]
    fn text_is_for_people_and_the_filter_counts() {
        let text = logged(LogFormat::Text, "warn,dalasi=debug", || {
            tracing::debug!(port = 8080, "listening");
            tracing::info!(target: "elsewhere", "left out");
        });
        assert!(text.contains("DEBUG listening port=8080"), "{text}");
        assert!(!text.contains("left out"));
    }

    #[test]
    fn a_broken_filter_is_no_reason_not_to_start() {
        assert!(filter_from("dalasi=loud").1.is_some());
        assert!(filter_from("").1.is_none());
    }
}
