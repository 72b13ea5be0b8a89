//! Whatever stands in a field is text, and the document is there.

mod reader;
mod samples;

use pdf::{Currency, Date, Invoice, Line, Locale, Merchant, Method, Moment, Party, Receipt, State};
use proptest::prelude::*;

fn everywhere(text: &str) -> Invoice {
    let text = || text.to_owned();
    Invoice {
        merchant: Merchant {
            name: text(),
            address: text(),
            phone: text(),
            email: text(),
            tax_id: text(),
            logo: None,
            accent: Some(text()),
        },
        bill_to: Party { name: text(), address: text(), phone: text(), email: text() },
        number: text(),
        currency: Currency { code: text(), exponent: 2 },
        lines: vec![Line { description: text(), quantity: i64::MAX, unit_price: i64::MIN, total: i64::MIN }],
        tax_rate: text(),
        notes: text(),
        pay_address: Some(text()),
        ..samples::invoice()
    }
}

const HOSTILE: &[&str] = &[
    "",
    " \t\r\n ",
    "\u{0}\u{1}\u{1b}[31m\u{7f}\u{9f}",
    "(\\) Tj ET endstream endobj 1 0 obj <</S/JavaScript/JS(app.alert(1))>> trailer",
    "/Launch << /Type /Action /S /URI >> %%EOF",
    "\u{202e}00.000,1 GMD\u{202c} \u{2067}x\u{2069}",
    "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}",
    "漢字 𐐷 👨‍👩‍👧‍👦 \u{e000}\u{10ffff}\u{fffe}\u{feff}\u{fffd}",
    "ا👍\u{64b}\u{200d}ل漢\u{200c}",
    "<script>alert(1)</script> & ]]> <?xml?> \" '",
    "javascript:alert(1)",
    "http://\u{0}\n() <>",
    "ߒߞߏ ⴰⵣⵓⵍ 𞤀𞤣𞤤𞤢𞤥",
];

#[test]
fn hostile_text_is_shown_and_does_nothing() {
    for text in HOSTILE {
        let file = pdf::invoice(&everywhere(text)).expect("an invoice");
        let about = reader::about(&file);
        for (name, value) in [("JavaScript", "no"), ("Form", "none"), ("Encrypted", "no")] {
            assert!(about.iter().any(|it| it == &(name.to_owned(), value.to_owned())), "{text:?}: {about:?}");
        }
    }
    let syntax = HOSTILE[3];
    let text = reader::raw_text(&pdf::invoice(&everywhere(syntax)).expect("an invoice"));
    assert!(text.replace('\n', " ").contains("endstream endobj 1 0 obj <</S/JavaScript/JS"), "{text}");
}

#[test]
fn overrides_turn_nothing_around() {
    let text = reader::text(&pdf::invoice(&everywhere("\u{202e}12.50 GMD")).expect("an invoice"));
    assert!(text.contains("12.50 GMD"), "{text}");
    assert!(!text.contains("DMG"), "{text}");
}

#[test]
fn only_web_addresses_become_links() {
    for address in ["javascript:alert(1)", "file:///etc/passwd", "mailto:x@example.gm", "httpx://a", "http"] {
        let file = pdf::invoice(&Invoice { pay_address: Some(address.into()), ..samples::invoice() }).expect("one");
        assert!(!String::from_utf8_lossy(&file).contains("/URI"), "{address} became a link");
    }
    let file = pdf::invoice(&samples::invoice()).expect("an invoice");
    assert!(String::from_utf8_lossy(&file).contains("/URI(https://pay.example.gm/"), "no link");
}

#[test]
fn words_longer_than_a_line_break_and_lose_nothing() {
    let word: String = (0..2_000).map(|index| char::from(b'a' + (index % 26) as u8)).collect();
    let text = reader::text(&pdf::invoice(&Invoice { notes: word.clone(), ..samples::invoice() }).expect("an invoice"));
    let broken: String =
        text.lines().filter(|it| it.len() > 30 && it.bytes().all(|it| it.is_ascii_lowercase())).collect();
    assert_eq!(broken, word);
    let file = pdf::invoice(&everywhere(&word)).expect("an invoice");
    // Everywhere at once it takes the pages it takes, not one for every line.
    let pages = reader::page_count(&file);
    assert!(pages < 40, "{pages} pages");
}

#[test]
fn a_description_longer_than_a_page_goes_on_over_the_next() {
    let description = "A long story. ".repeat(1_500);
    let lines = vec![samples::line(&description, 1, 100), samples::line("And then", 2, 50)];
    let file = pdf::invoice(&Invoice { lines, ..samples::invoice() }).expect("an invoice");
    let pages = reader::pages(&file);
    assert!(pages.len() > 3, "{} pages", pages.len());
    let text = pages.concat();
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(words.iter().filter(|it| **it == "story.").count(), 1_500);
    assert!(words.join(" ").contains("And then 2 0.50 1.00"));
}

/// As many items with texts as long as the API takes.
fn full_of(description: &str) -> Invoice {
    assert_eq!(description.chars().count(), 2_000);
    Invoice { lines: vec![samples::line(description, 1, 100); 200], ..samples::invoice() }
}

#[test]
fn line_breaks_take_about_the_pages_that_words_take() {
    let pages = |description: &str| reader::page_count(&pdf::invoice(&full_of(description)).expect("an invoice"));
    let words = pages(&"MW".repeat(1_000));
    let blank = pages(&format!("one{}two", "\n".repeat(1_994)));
    assert!(blank < 30, "{blank} pages of nothing");
    for broken in ["x\n".repeat(1_000), "\u{200b}\r".repeat(1_000)] {
        let pages = pages(&broken);
        assert!(pages <= words * 3 / 2, "{pages} pages, {words} of words alone: {:?}", &broken[..16]);
    }
}

#[test]
fn lines_beyond_the_most_stand_in_one_paragraph() {
    let notes = (1..=200).map(|number| format!("line{number}")).collect::<Vec<_>>().join("\n");
    let text = reader::text(&pdf::invoice(&Invoice { notes, ..samples::invoice() }).expect("an invoice"));
    let words: Vec<&str> = text.split_whitespace().filter(|it| it.starts_with("line")).collect();
    assert_eq!(words, (1..=200).map(|number| format!("line{number}")).collect::<Vec<_>>());
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a\u{200b} \n\r\u{85}\u{2028}]{0,400}",
        any::<String>(),
        "[\\x00-\\x7f]{0,60}",
        "[\u{600}-\u{6ff} \u{300}-\u{36f}a-z0-9\u{200b}-\u{206f}]{0,40}",
        "\\PC{0,200}",
        proptest::sample::select(HOSTILE).prop_map(str::to_owned),
    ]
}

fn party() -> impl Strategy<Value = Party> {
    (text(), text(), text(), text()).prop_map(|(name, address, phone, email)| Party { name, address, phone, email })
}

fn merchant() -> impl Strategy<Value = Merchant> {
    (party(), text(), proptest::option::of("#[0-9a-f]{6}"), proptest::option::of(any::<Vec<u8>>())).prop_map(
        |(party, tax_id, accent, logo)| Merchant {
            name: party.name,
            address: party.address,
            phone: party.phone,
            email: party.email,
            tax_id,
            logo,
            accent,
        },
    )
}

fn moment() -> impl Strategy<Value = Moment> {
    (any::<(i16, u8, u8)>(), any::<(u8, u8, u8)>()).prop_map(|((year, month, day), (hour, minute, second))| Moment {
        date: Date { year, month, day },
        hour,
        minute,
        second,
    })
}

fn invoices() -> impl Strategy<Value = Invoice> {
    let state = prop_oneof![
        Just(State::Draft),
        Just(State::Open),
        Just(State::Overdue),
        Just(State::Paid),
        Just(State::Refunded),
        Just(State::Cancelled)
    ];
    let line = (text(), any::<(i64, i64, i64)>()).prop_map(|(description, (quantity, unit_price, total))| Line {
        description,
        quantity,
        unit_price,
        total,
    });
    (
        (any::<bool>(), merchant(), state, any::<bool>(), text(), moment(), party()),
        (text(), 0..=4_u8, proptest::collection::vec(line, 0..30), any::<[i64; 6]>(), text(), text()),
        proptest::option::of(text()),
    )
        .prop_map(|((french, merchant, state, test, number, as_of, bill_to), sums, pay_address)| {
            let (code, exponent, lines, [subtotal, tax, total, paid, refunded, remaining], tax_rate, notes) = sums;
            Invoice {
                locale: if french { Locale::French } else { Locale::English },
                merchant,
                state,
                test,
                number,
                issued: Some(as_of.date),
                due: None,
                paid_on: Some(as_of.date),
                bill_to,
                currency: Currency { code, exponent },
                lines,
                subtotal,
                tax_rate,
                tax,
                total,
                paid,
                refunded,
                remaining,
                notes,
                pay_address,
                as_of,
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_invoice_becomes_a_file(invoice in invoices()) {
        let file = pdf::invoice(&invoice).expect("an invoice");
        prop_assert!(file.starts_with(b"%PDF-1.7") && file.ends_with(b"%%EOF"));
        prop_assert!(pdf::invoice(&invoice).expect("an invoice") == file, "another file");
    }

    #[test]
    fn any_receipt_becomes_a_file(
        merchant in merchant(),
        payer in party(),
        paid_at in moment(),
        amount in any::<i64>(),
        texts in proptest::array::uniform6(text()),
        code in "\\PC{0,4000}",
    ) {
        let [number, currency, invoice_number, reference, validation_code, verify_address] = texts;
        let receipt = Receipt {
            locale: Locale::French,
            merchant,
            test: true,
            number,
            payer,
            currency: Currency { code: currency, exponent: 2 },
            amount,
            method: Method::Other,
            paid_at,
            invoice_number,
            reference,
            validation_code,
            verify_code: code,
            verify_address,
        };
        let file = pdf::receipt(&receipt).expect("a receipt");
        prop_assert!(file.starts_with(b"%PDF-1.7") && file.ends_with(b"%%EOF"));
    }
}
