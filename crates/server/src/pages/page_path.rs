//! What the address of a payment's page names: what is paid there, and what is asked of the page. Judges nothing.

use domain::payment::Payable;

use crate::wire::Addresses;

/// `/checkout/cs_…`, and with an action `/checkout/cs_…/method`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PagePath {
    pub(super) payable: Payable,
    /// What stands behind the page's own address.
    pub(super) action: Option<String>,
}

impl PagePath {
    pub(super) fn of(path: &str) -> Option<Self> {
        let mut parts = path.strip_prefix('/')?.splitn(3, '/');
        let payable = match (parts.next()?, parts.next()?) {
            ("checkout", id) => Payable::Checkout(id.parse().ok()?),
            _ => return None,
        };
        Some(Self { payable, action: parts.next().map(str::to_owned) })
    }

    /// The path of the page itself.
    pub(super) fn path(&self) -> String {
        path(self.payable)
    }
}

fn path(payable: Payable) -> String {
    // The addresses that the API gives, without their host.
    Addresses { public_url: String::new(), pay_url: String::new() }.page(payable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_what_is_paid() {
        let id = "cs_01h455vb4pex5vsknk084sn02q";
        let place = |action: Option<&str>| {
            let payable = Payable::Checkout(id.parse().unwrap());
            Some(PagePath { payable, action: action.map(str::to_owned) })
        };
        assert_eq!(PagePath::of(&format!("/checkout/{id}")), place(None));
        assert_eq!(PagePath::of(&format!("/checkout/{id}/method")), place(Some("method")));
        assert_eq!(PagePath::of(&format!("/checkout/{id}/a/b")), place(Some("a/b")));
        assert_eq!(place(None).unwrap().path(), format!("/checkout/{id}"));
        for path in
            ["", "/", "/checkout", "/checkout/", "/checkout/x", &format!("/pay/{id}"), &format!("checkout/{id}")]
        {
            assert_eq!(PagePath::of(path), None, "{path}");
        }
    }
}
