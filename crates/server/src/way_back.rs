//! What stands behind `/returned/` in the address by which a rail's own page hands its payer back: which payment it was, and a
//! proof that the address came from here, to that rail. It proves nothing of money.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use domain::Id;
use domain::payment::PaymentSession;

use crate::hex;
use crate::secrets::Subkey;

const TAG_BYTES: usize = 16;

/// `ps_01h455vc1nf1ysr3q8s9p3k4mh.0123456789abcdef0123456789abcdef`
pub fn of(key: &Subkey, session: Id<PaymentSession>) -> String {
    let tag = key.derive(&format!("returned {session}"));
    format!("{session}.{}", hex::lower(&tag[..TAG_BYTES]))
}

pub fn is_of(key: &Subkey, session: Id<PaymentSession>, text: &str) -> bool {
    verify_slices_are_equal(of(key, session).as_bytes(), text.as_bytes()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::{MasterKey, Purpose};

    #[test]
    fn a_way_back_is_of_one_payment_and_from_here() {
        let key = |byte| MasterKey::from_bytes([byte; 32]).subkey(Purpose::FormToken);
        let sessions = ["ps_01h455vc1nf1ysr3q8s9p3k4mh", "ps_01h455vc1nf1ysr3q8s9p3k4mj"];
        let [own, other] = sessions.map(|id| id.parse().unwrap());
        let way = of(&key(1), own);
        assert!(way.starts_with("ps_01h455vc1nf1ysr3q8s9p3k4mh.") && way.len() == 62, "{way}");
        assert!(is_of(&key(1), own, &way));
        let foreign = of(&key(2), own);
        for text in
            ["", sessions[0], &way[..61], &way.to_uppercase(), &format!("{way}0"), &of(&key(1), other), &foreign]
        {
            assert!(!is_of(&key(1), own, text), "{text}");
        }
        assert!(!is_of(&key(1), other, &way));
    }
}
