use super::*;

fn request(headers: &[(header::HeaderName, &str)]) -> HeaderMap {
    headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).expect("ascii"))).collect()
}

fn sum(bytes: &[u8]) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn what_is_vendored_is_what_is_recorded() {
    let record = include_str!("../../../assets/reference/VENDORED.md");
    for accepted in ["", "gzip, br"] {
        let answer = files::RAPIDOC.answer(&request(&[(header::ACCEPT_ENCODING, accepted)]), "no-cache");
        let body = axum::body::to_bytes(answer.into_body(), 10_000_000).await.expect("a body in memory");
        assert!(record.contains(&sum(&body)), "VENDORED.md does not know the file for Accept-Encoding {accepted:?}");
    }
}

#[tokio::test]
async fn a_file_is_sent_once() {
    let first = DOCUMENT.answer(&request(&[]), "no-cache");
    assert_eq!(first.status(), 200);
    assert!(!first.headers().contains_key(header::CONTENT_ENCODING));
    let tag = first.headers()[header::ETAG].to_str().expect("ascii").to_owned();
    let body = axum::body::to_bytes(first.into_body(), 10_000_000).await.expect("a body in memory");
    assert_eq!(body, document_text());
    let again = DOCUMENT.answer(&request(&[(header::IF_NONE_MATCH, &tag)]), "no-cache");
    assert_eq!(again.status(), 304);
    let other = DOCUMENT.answer(&request(&[(header::IF_NONE_MATCH, "\"another\"")]), "no-cache");
    assert_eq!(other.status(), 200);
}

#[test]
fn compression_is_for_those_who_ask() {
    for (accepted, is_compressed) in
        [("gzip", true), ("br, GZIP;q=0.8", true), ("gzip;q=0", false), ("br", false), ("identity", false)]
    {
        let answer = DOCUMENT.answer(&request(&[(header::ACCEPT_ENCODING, accepted)]), "no-cache");
        assert_eq!(answer.headers().contains_key(header::CONTENT_ENCODING), is_compressed, "{accepted}");
    }
}

#[test]
fn pages_name_no_other_host() {
    let page = Page { version: "1", frame: Frame::new() }.render().expect("memory");
    assert!(!page.contains("//"), "an address of another host stands in the page");
}
