//! A merchant, an invoice, a receipt and an endpoint. `voice` is put behind every text that somebody outside writes.

use domain::webhook::DisableReason;

use crate::letters::{EndpointLetter, InvoiceLetter, Line, Merchant, PaidWith, ReceiptLetter, Rest, Standing};
use crate::pages::text::Locale;
use crate::pages::view::Amount;

pub(crate) fn gmd(minor: i64) -> Amount {
    Amount { minor, exponent: 2, currency: "GMD".into() }
}

fn merchant(voice: &str) -> Merchant {
    Merchant {
        name: format!("Kairaba Books{voice}"),
        address: Some(format!("12 Kairaba Avenue{voice}\nSerrekunda")),
        phone: Some("+220 765 4321".into()),
        email: Some("hello@kairaba.example".into()),
        accent_color: Some("#7a1f4b".into()),
        can_reply: true,
    }
}

pub(crate) fn invoice(locale: Locale, voice: &str) -> InvoiceLetter {
    let line = |description: &str, quantity, minor| Line {
        description: format!("{description}{voice}"),
        quantity,
        total: gmd(minor),
    };
    InvoiceLetter {
        merchant: merchant(voice),
        locale,
        test_mode: false,
        customer: Some(format!("Awa Ceesay{voice}")),
        number: "INV-2026-11-0001".into(),
        lines: vec![line("Atlas of the river", 2, 90_000), line("Map of Banjul", 1, 35_000)],
        before_tax: gmd(125_000),
        tax: Some(("12.5".into(), gmd(15_625))),
        total: gmd(140_625),
        paid: gmd(40_625),
        refunded: gmd(0),
        left: gmd(100_000),
        standing: Standing::Open,
        due_at: 1_797_292_799,
        notes: format!("Thank you for reading.\n\nSee you soon{voice}"),
        pay_url: Some("https://pay.shop.example/invoice/inv_01h455vb4pex5vsknk084sn02q".into()),
    }
}

pub(crate) fn receipt(locale: Locale, voice: &str) -> ReceiptLetter {
    ReceiptLetter {
        merchant: merchant(voice),
        locale,
        test_mode: false,
        number: "RCT-2026-001".into(),
        amount: gmd(40_625),
        refunded: gmd(0),
        invoice_number: format!("INV-2026-11-0001{voice}"),
        paid_with: PaidWith::Wave,
        paid_at: 1_795_000_000,
        rest: Rest::Left {
            left: gmd(100_000),
            pay_url: Some("https://pay.shop.example/invoice/inv_01h455vb4pex5vsknk084sn02q".into()),
        },
    }
}

pub(crate) fn endpoint(locale: Locale, voice: &str) -> EndpointLetter {
    EndpointLetter {
        merchant: Merchant { address: None, phone: None, email: None, can_reply: false, ..merchant(voice) },
        locale,
        test_mode: false,
        id: "we_01h455vb4pex5vsknk084sn02q".into(),
        description: Some(format!("The shop's orders{voice}")),
        host: format!("shop.example{voice}"),
        reason: DisableReason::Failing,
        missing_since: "2026-11-13T11:06:40Z".into(),
        disabled_at: 1_795_000_000,
        api_url: "https://api.shop.example".into(),
    }
}
