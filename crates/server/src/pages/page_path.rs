//! What the address of a payment's page names: what is paid there, where many pay at once which payment, and what is
//! asked of the page. Judges nothing.

use domain::payment::Payable;

use crate::app::hosted::Place;
use crate::wire::Addresses;

/// `/checkout/cs_…`, `/pay/pl_…/ps_…`, and with an action `/checkout/cs_…/method`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PagePath {
    pub(super) place: Place,
    /// What stands behind the page's own address.
    pub(super) action: Option<String>,
}

impl PagePath {
    pub(super) fn of(path: &str) -> Option<Self> {
        let mut parts = path.strip_prefix('/')?.splitn(3, '/');
        let payable = match (parts.next()?, parts.next()?) {
            ("checkout", id) => Payable::Checkout(id.parse().ok()?),
            ("invoice", id) => Payable::Invoice(id.parse().ok()?),
            ("pay", id) => Payable::PaymentLink(id.parse().ok()?),
            _ => return None,
        };
        let rest = parts.next();
        let (session, action) = match (payable, rest) {
            (Payable::PaymentLink(_), Some(rest)) => {
                let (first, behind) =
                    rest.split_once('/').map_or((rest, None), |(first, behind)| (first, Some(behind)));
                match first.parse() {
                    Ok(session) => (Some(session), behind),
                    Err(_) => (None, Some(rest)),
                }
            }
            (Payable::Checkout(_) | Payable::Invoice(_) | Payable::PaymentLink(_), rest) => (None, rest),
        };
        Some(Self { place: Place { payable, session }, action: action.map(str::to_owned) })
    }
}

/// The path of a page itself.
pub(super) fn path(place: Place) -> String {
    // The addresses that the API gives, without their host.
    let here = Addresses { public_url: String::new(), pay_url: String::new() };
    match place.session {
        Some(session) => here.payment_page(place.payable, session),
        None => here.page(place.payable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECKOUT: &str = "cs_01h455vb4pex5vsknk084sn02q";
    const INVOICE: &str = "inv_01h455vb4pex5vsknk084sn02q";
    const LINK: &str = "pl_01h455vb4pex5vsknk084sn02q";
    const SESSION: &str = "ps_01h455vc1nf1ysr3q8s9p3k4mh";

    #[test]
    fn an_address_names_what_is_paid() {
        for page in [
            format!("/checkout/{CHECKOUT}"),
            format!("/invoice/{INVOICE}"),
            format!("/pay/{LINK}"),
            format!("/pay/{LINK}/{SESSION}"),
        ] {
            let named = PagePath::of(&page).unwrap();
            assert_eq!((named.action.as_deref(), path(named.place)), (None, page.clone()));
            for action in ["method", "a/b", ""] {
                let acting = PagePath::of(&format!("{page}/{action}")).unwrap();
                assert_eq!((acting.action.as_deref(), acting.place), (Some(action), named.place), "{page}");
            }
        }
        for path in ["", "/", "/checkout", "/checkout/", "/checkout/x", "/pay/x"] {
            assert_eq!(PagePath::of(path), None, "{path}");
        }
        for path in [format!("/pay/{CHECKOUT}"), format!("checkout/{CHECKOUT}"), format!("/invoice/{LINK}")] {
            assert_eq!(PagePath::of(&path), None, "{path}");
        }
    }
}
