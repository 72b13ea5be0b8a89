//! Rows as versions left them that kept no checksums: what is altered in one of them is found by what it says, or not at all.

use store::queries::repair;

/// What takes the checksums out of every document and from every event, in either database.
pub(crate) fn statements() -> impl Iterator<Item = String> {
    let of_document = |table| {
        format!(
            "update {table} set doc = substr(doc, 1, length(doc) - {}) || '}}' where doc like '%,\"crc32\":\"________\"}}'",
            ",\"crc32\":\"01234567\"}".len()
        )
    };
    let with_documents = repair::tables().filter(|table| *table != "events");
    with_documents.map(of_document).chain(["update events set body_crc32 = null".to_owned()])
}
