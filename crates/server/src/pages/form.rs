//! Reads a posted form and decides whether it is one of ours: browser headers where there are any, and the signed token
//! in any case. There is no cookie to steal or to miss.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::Timestamp;
use url::{Url, form_urlencoded};

use super::answer::Wrong;
use crate::form_token::{self, FormTokenFault};
use crate::gate::Full;
use crate::secrets::Subkey;
use crate::whole_body::{self, Unread};

/// Our forms hold a token and a word or a number; those of a payment link what its merchant asks: 20 answers, name, e-mail
/// address, phone and amount, each a field of 500 characters, which are 9 bytes each in a script of 3 bytes a character.
const MOST_BYTES: usize = 128 * 1024;
const _: () = assert!(24 * 500 * 9 + 1024 <= MOST_BYTES, "with what the page adds to it");
const MOST_FIELDS: usize = 64;
/// What the page showed that can change.
pub(super) const SHOWN: &str = "shown";
const SHOWN_TAG: &str = "shown_tag";
/// The payment that the page showed.
pub(super) const SESSION: &str = "session";

pub(super) struct Form(Vec<(String, String)>);

impl Form {
    #[cfg(test)]
    pub(super) fn of(fields: Vec<(String, String)>) -> Self {
        Self(fields)
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn fields(&self) -> Vec<(String, String)> {
        self.0.clone()
    }

    /// All of it, as one text: another text is another form.
    pub(super) fn whole(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.0).finish()
    }
}

/// The fields of a form that came from a page of this host, as far as the browser tells.
pub(super) async fn read(request: Request, pay_url: &str) -> Result<Form, Wrong> {
    let (parts, body) = request.into_parts();
    let media = parts.headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    if !media.eq_ignore_ascii_case("application/x-www-form-urlencoded") || !is_same_origin(&parts.headers, pay_url) {
        return Err(Wrong::ForeignForm);
    }
    let bytes = whole_body::read(body, MOST_BYTES).await.map_err(|why| match why {
        Unread::Broken(error) if Full::is_cause_of(&error) => Wrong::TooBusy,
        Unread::Broken(_) => Wrong::TooSlow,
        Unread::TooLarge => Wrong::TooLarge,
    })?;
    let fields = form_urlencoded::parse(&bytes).take(MOST_FIELDS);
    let form = Form(fields.map(|(key, value)| (key.into_owned(), value.into_owned())).collect());
    // Nobody can type it into a field. What is typed here is a merchant's data, in which the API takes none either.
    let has_nul = form.0.iter().any(|(key, value)| key.contains('\0') || value.contains('\0'));
    if has_nul { Err(Wrong::ForeignForm) } else { Ok(form) }
}

/// Both headers are the browser's own word, which a page can't forge; views inside apps may lack them. `Origin: null` is
/// what our own pages send, since they tell no referrer; it is no proof, so the token decides.
fn is_same_origin(headers: &HeaderMap, pay_url: &str) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let site_is_ours = text("sec-fetch-site").is_none_or(|site| matches!(site, "same-origin" | "none"));
    let origin_is_ours = match text(ORIGIN.as_str()) {
        None | Some("null") => true,
        Some(origin) => {
            let public = Url::parse(pay_url).is_ok_and(|url| url.origin().ascii_serialization() == origin);
            // Reached by another name, such as `localhost`: then that name is where the form came from.
            let host = text(HOST.as_str()).unwrap_or_default();
            let named = ["http://", "https://"].iter().any(|scheme| origin.strip_prefix(scheme) == Some(host));
            public || named
        }
    };
    (site_is_ours && origin_is_ours) || domain::planted!(Defect::ForeignFormTaken)
}

/// Binds what a page showed to the page and to the token of its forms. It stands beside the token, so that a process of an
/// earlier version, which an upgrade leaves running beside this one, takes the form and passes over what it does not know.
pub(super) fn shown_tag(key: &Subkey, object_id: &str, token: &str, shown: &str) -> String {
    URL_SAFE_NO_PAD.encode(key.derive(&format!("page shown {object_id} {token} {shown}")))
}

/// A token that was on a page of this object, and is not too old.
pub(super) enum Token<'f> {
    Good(&'f str),
    Stale,
}

pub(super) fn token<'f>(
    form: &'f Form,
    key: &Subkey,
    purpose: &str,
    object_id: &str,
    now: Timestamp,
) -> Result<Token<'f>, Wrong> {
    let token = form.get("form_token").ok_or(Wrong::ForeignForm)?;
    match form_token::verify(key, purpose, object_id, token, now.seconds()) {
        Ok(()) if is_shown_ours(form, key, object_id, token) => Ok(Token::Good(token)),
        Err(FormTokenFault::Expired) => Ok(Token::Stale),
        Ok(()) | Err(FormTokenFault::Invalid) => Err(Wrong::ForeignForm),
    }
}

/// Also where nothing is said of it: a page of an earlier version says nothing.
fn is_shown_ours(form: &Form, key: &Subkey, object_id: &str, token: &str) -> bool {
    form.get(SHOWN).is_none_or(|shown| {
        let tag = form.get(SHOWN_TAG).unwrap_or_default();
        let expected = shown_tag(key, object_id, token, shown);
        verify_slices_are_equal(expected.as_bytes(), tag.as_bytes()).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::{MasterKey, Purpose};

    #[test]
    fn what_a_page_showed_is_bound_to_it_and_to_its_token() {
        let key = MasterKey::from_bytes([1; 32]).subkey(Purpose::FormToken);
        let issued = |object_id: &str, byte| form_token::issue(&key, "pay", object_id, 1_000, &[byte; 32]);
        let (own, later) = (issued("inv_1", 7), issued("inv_1", 8));
        let tag = |object_id: &str, token: &str| shown_tag(&key, object_id, token, "100 GMD");
        let right = tag("inv_1", &own);
        let table = [
            (Some("100 GMD"), Some(right.clone()), true),
            (None, None, true),
            (None, Some(right.clone()), true),
            (Some("100 GMD"), None, false),
            (Some("1 GMD"), Some(right.clone()), false),
            (Some(""), Some(right), false),
            (Some("100 GMD"), Some(tag("inv_1", &later)), false),
            (Some("100 GMD"), Some(tag("inv_2", &own)), false),
        ];
        for (shown, tag, is_ours) in table {
            let mut fields = vec![("form_token".to_owned(), own.clone())];
            fields.extend(shown.map(|shown| (SHOWN.to_owned(), shown.to_owned())));
            fields.extend(tag.clone().map(|tag| (SHOWN_TAG.to_owned(), tag)));
            let now = Timestamp::from_micros(999_000_000);
            let form = Form::of(fields);
            let found = token(&form, &key, "pay", "inv_1", now);
            assert_eq!(matches!(found, Ok(Token::Good(_))), is_ours, "{shown:?} {tag:?}");
        }
    }

    #[test]
    fn a_form_comes_from_a_page_of_this_host() {
        let table = [
            (None, None, true),
            (Some("https://pay.example"), None, true),
            (Some("https://pay.example"), Some("same-origin"), true),
            (Some("http://internal:8080"), None, true),
            (Some("null"), Some("same-origin"), true),
            (Some("null"), None, true),
            (None, Some("none"), true),
            (Some("null"), Some("cross-site"), false),
            (None, Some("cross-site"), false),
            (None, Some("same-site"), false),
            (Some("https://evil.example"), None, false),
            (Some("https://pay.example.evil.example"), None, false),
            (Some("https://pay.example:444"), None, false),
            (Some("http://pay.example"), None, false),
            (Some("https://evil.example"), Some("same-origin"), false),
            (Some(""), None, false),
        ];
        for (origin, site, ours) in table {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "internal:8080".parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            if let Some(site) = site {
                headers.insert("sec-fetch-site", site.parse().unwrap());
            }
            assert_eq!(is_same_origin(&headers, "https://pay.example"), ours, "{origin:?} {site:?}");
        }
    }
}
