//! Writes every page in every language to a folder, with its files beside it, for eyes and for tools:
//!
//! ```text
//! cargo run -p dalasi --example page_gallery -- OUT_DIR
//! ```
//!
//! Any static server can show the folder; `headers.json` holds the headers that a page really gets.

#[expect(dead_code, reason = "the tests speak with a hostile voice, the gallery with a friendly one")]
mod samples;

use std::fs;
use std::io::{Error, Result};
use std::path::Path;

use dalasi::{mask, pages};
use pages::assets;
use pages::headers::{Nonce, for_page};
use pages::text::Locale;

fn main() -> Result<()> {
    let out = std::env::args_os().nth(1).ok_or_else(|| Error::other("usage: page_gallery OUT_DIR"))?;
    let out = Path::new(&out);
    fs::create_dir_all(out.join("assets"))?;
    for asset in assets::all() {
        fs::write(out.join(&asset.path[1..]), &asset.body)?;
    }

    let mut index = String::from("<!doctype html><meta charset=utf-8><title>Pages</title><ul>");
    for locale in Locale::ALL {
        for sample in samples::every(locale, samples::Voice::Friendly) {
            let file = format!("{}.{}.html", sample.name, locale.code());
            fs::write(out.join(&file), &sample.html)?;
            let bytes = sample.html.len() + sample.script.map_or(0, |script| script.body.len());
            index.push_str(&format!("<li><a href=\"{file}\">{file}</a> {bytes}"));
        }
    }
    fs::write(out.join("index.html"), index)?;

    let headers: serde_json::Map<String, serde_json::Value> = for_page(&Nonce::from_random([0x5a; 16]), false)
        .iter()
        .map(|(name, value)| {
            let text = value.to_str().unwrap_or_default();
            (name.to_string(), text.into())
        })
        .collect();
    fs::write(out.join("headers.json"), serde_json::Value::from(headers).to_string())
}
