//! Prints the OpenAPI document, as it stands at the root of the tree: `cargo run -p dalasi --example openapi > openapi.json`.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(dalasi::http::document_text().as_bytes())
}
