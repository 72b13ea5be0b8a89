//! What the letters say, that nothing in them speaks HTML, and that every word is there in every language.

use std::collections::BTreeSet;

use domain::webhook::DisableReason;

use crate::letters::{EndpointLetter, InvoiceLetter, PaidWith, ReceiptLetter, Rest, Standing};
use crate::pages::text::Locale;
use crate::wire::DEFAULT_API_URL;

#[path = "../../examples/letter_gallery/samples.rs"]
mod samples;

use samples::{endpoint, invoice, receipt};

#[test]
fn an_invoice_is_complete_as_text() {
    insta::assert_snapshot!(invoice(Locale::English, "").write().text, @r"
    Kairaba Books
    1,000.00 GMD
    To pay by 14 December 2026

    Pay this invoice
    https://pay.shop.example/invoice/inv_01h455vb4pex5vsknk084sn02q

    Hello Awa Ceesay,

    Kairaba Books sends you invoice INV-2026-11-0001.

    What it is for
    - 2 × Atlas of the river: 900.00 GMD
    - Map of Banjul: 350.00 GMD
    - Before tax: 1,250.00 GMD
    - Tax (12.5 %): 156.25 GMD
    - Total: 1,406.25 GMD
    - Already paid: 406.25 GMD
    - Left to pay: 1,000.00 GMD

    A note from Kairaba Books
    Thank you for reading.
    See you soon

    The invoice is attached as a PDF file.
    If you do not know what this is for, do not pay. Ask Kairaba Books first.

    Do you have a question? Reply to this mail: it goes to Kairaba Books.
    12 Kairaba Avenue
    Serrekunda
    +220 765 4321
    hello@kairaba.example
    ");
    insta::assert_snapshot!(invoice(Locale::French, "").write().text, @r"
    Kairaba Books
    1 000,00 GMD
    À payer au plus tard le 14 décembre 2026

    Payer cette facture
    https://pay.shop.example/invoice/inv_01h455vb4pex5vsknk084sn02q

    Bonjour Awa Ceesay,

    Kairaba Books vous envoie la facture INV-2026-11-0001.

    Ce que vous payez
    - 2 × Atlas of the river : 900,00 GMD
    - Map of Banjul : 350,00 GMD
    - Hors taxe : 1 250,00 GMD
    - Taxe (12,5 %) : 156,25 GMD
    - Total : 1 406,25 GMD
    - Déjà payé : 406,25 GMD
    - Reste à payer : 1 000,00 GMD

    Un mot de Kairaba Books
    Thank you for reading.
    See you soon

    La facture est jointe en fichier PDF.
    Si vous ne savez pas de quoi il s’agit, ne payez pas. Demandez d’abord à Kairaba Books.

    Une question ? Répondez à ce courriel : la réponse va à Kairaba Books.
    12 Kairaba Avenue
    Serrekunda
    +220 765 4321
    hello@kairaba.example
    ");
}

#[test]
fn a_receipt_is_complete_as_text() {
    insta::assert_snapshot!(receipt(Locale::English, "").write().text, @r"
    Kairaba Books
    406.25 GMD
    Kairaba Books has received your payment. Thank you.

    - Receipt: RCT-2026-001
    - For invoice: INV-2026-11-0001
    - Paid with: Wave
    - When: 18 November 2026, 11:06 (Banjul time)
    - Left to pay: 1,000.00 GMD

    Pay this invoice
    https://pay.shop.example/invoice/inv_01h455vb4pex5vsknk084sn02q

    The receipt is attached as a PDF file. Keep it as your proof.

    Do you have a question? Reply to this mail: it goes to Kairaba Books.
    12 Kairaba Avenue
    Serrekunda
    +220 765 4321
    hello@kairaba.example
    ");
    let settled = ReceiptLetter { rest: Rest::Nothing, paid_with: PaidWith::Cash, ..receipt(Locale::French, "") };
    insta::assert_snapshot!(settled.write().text, @r"
    Kairaba Books
    406,25 GMD
    Kairaba Books a reçu votre paiement. Merci.

    - Reçu : RCT-2026-001
    - Pour la facture : INV-2026-11-0001
    - Payé avec : Espèces
    - Quand : 18 novembre 2026 à 11:06 (heure de Banjul)

    La facture est payée. Il ne reste rien à payer.

    Le reçu est joint en fichier PDF. Gardez-le comme preuve.

    Une question ? Répondez à ce courriel : la réponse va à Kairaba Books.
    12 Kairaba Avenue
    Serrekunda
    +220 765 4321
    hello@kairaba.example
    ");
}

#[test]
fn an_endpoint_that_is_switched_off_says_what_to_do() {
    insta::assert_snapshot!(endpoint(Locale::English, "").write().text, @r#"
    Kairaba Books
    Your webhook endpoint at shop.example is switched off
    It has not taken a single event for five days. No more events are sent to it. Payments go on as before.

    - Switched off: 18 November 2026, 11:06 (Banjul time)
    - Description: The shop's orders

    What to do
    Let your server answer each event with a status of 200 to 299 within 15 seconds.

    Then switch the endpoint on again:
    PATCH /v1/webhook_endpoints/we_01h455vb4pex5vsknk084sn02q {"status": "active"}

    Then have sent again what it missed:
    DALASI_API_KEY=sk_live_… dalasi events resend --since 2026-11-13T11:06:40Z --missed --live --api-url https://api.shop.example

    This mail was written by a machine that reads no answers.
    "#);
    let gone = EndpointLetter { reason: DisableReason::Gone, description: None, ..endpoint(Locale::French, "") };
    insta::assert_snapshot!(gone.write().text, @r#"
    Kairaba Books
    Votre point de réception shop.example est arrêté
    Il a répondu qu’il n’existe plus (statut 410). Plus aucun événement ne lui est envoyé. Les paiements continuent comme avant.

    - Arrêté : 18 novembre 2026 à 11:06 (heure de Banjul)

    Que faire
    Faites que votre serveur réponde à chaque événement par un statut de 200 à 299 en moins de 15 secondes.

    Puis remettez-le en marche :
    PATCH /v1/webhook_endpoints/we_01h455vb4pex5vsknk084sn02q {"status": "active"}

    Puis faites renvoyer ce qu’il a manqué :
    DALASI_API_KEY=sk_live_… dalasi events resend --since 2026-11-13T11:06:40Z --missed --live --api-url https://api.shop.example

    Ce courriel est écrit par une machine qui ne lit pas les réponses.
    "#);
}

#[test]
fn a_command_is_not_told_where_it_looks_anyway() {
    let near = EndpointLetter { api_url: DEFAULT_API_URL.into(), ..endpoint(Locale::English, "") }.write();
    assert!(near.text.contains("--missed --live\n") && !near.text.contains("--api-url"), "{}", near.text);
}

#[test]
fn a_test_says_so_in_subject_text_and_html() {
    for locale in Locale::ALL {
        let invoice = InvoiceLetter { test_mode: true, ..invoice(locale, "") }.write();
        let receipt = ReceiptLetter { test_mode: true, ..receipt(locale, "") }.write();
        let endpoint = EndpointLetter { test_mode: true, ..endpoint(locale, "") }.write();
        assert!(!endpoint.text.contains("--live"), "{}", endpoint.text);
        assert!(endpoint.text.contains("DALASI_API_KEY=sk_test_… dalasi "), "{}", endpoint.text);
        for letter in [invoice, receipt, endpoint] {
            assert!(letter.subject.starts_with("TEST"), "{}", letter.subject);
            assert!(letter.text.starts_with("TEST."), "{}", letter.text);
            let (before_amount, _) = letter.html.split_once("<h1").expect("an amount");
            assert!(before_amount.contains("<b>TEST.</b>"), "{before_amount}");
        }
        let live = samples::invoice(locale, "").write();
        assert!(!live.subject.contains("TEST") && !live.text.contains("TEST") && !live.html.contains("TEST."));
    }
}

#[test]
fn amount_and_button_come_first() {
    let html = invoice(Locale::English, "").write().html;
    let place = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text}"));
    let order = ["Kairaba Books</p>", "1,000.00\u{a0}GMD", "To pay by", "Pay this invoice", "Hello Awa", "Atlas"];
    assert!(order.map(place).is_sorted(), "{html}");
}

#[test]
fn what_is_settled_asks_for_nothing() {
    let letter = InvoiceLetter { standing: Standing::Settled, pay_url: None, ..invoice(Locale::English, "") }.write();
    for said in [&letter.text, &letter.html] {
        assert!(said.contains("Nothing is left to pay") && said.contains("1,406.25\u{a0}GMD"), "{said}");
        assert!(!said.contains("Pay this invoice") && !said.contains("https://pay."), "{said}");
    }
    let closed = ReceiptLetter { rest: Rest::Closed, ..receipt(Locale::English, "") }.write();
    assert!(!closed.text.contains("Pay this invoice") && !closed.text.contains("left to pay"), "{}", closed.text);
}

/// Whatever is still to be paid: the amount, until when, and the caution stay.
#[test]
fn what_is_not_paid_online_names_no_address() {
    for locale in Locale::ALL {
        let letter = InvoiceLetter { pay_url: None, ..invoice(locale, "") }.write();
        let (caution, how) = match locale {
            Locale::English => {
                ("If you do not know what this is for, do not pay.", "This invoice is not paid online. Ask ")
            }
            Locale::French => (
                "Si vous ne savez pas de quoi il s’agit, ne payez pas.",
                "Cette facture ne se paie pas en ligne. Demandez à ",
            ),
        };
        for said in [&letter.text, &letter.html] {
            assert!(said.contains("000") && said.contains("14\u{a0}") && said.contains(caution), "{said}");
            assert!(!said.contains("Pay this invoice") && !said.contains("Payer cette facture"), "{said}");
            assert!(!said.contains("https://pay.") && said.contains(how), "{said}");
        }
    }
    let mut rest = receipt(Locale::English, "");
    if let Rest::Left { pay_url, .. } = &mut rest.rest {
        *pay_url = None;
    }
    let letter = ReceiptLetter { paid_with: PaidWith::Check, ..rest }.write();
    for said in [&letter.text, &letter.html] {
        assert!(said.contains("Left to pay") && said.contains("1,000.00\u{a0}GMD"), "{said}");
        assert!(said.contains("This invoice is not paid online. Ask "), "{said}");
        assert!(!said.contains("Pay this invoice") && !said.contains("https://pay."), "{said}");
    }
    assert!(letter.text.contains("Paid with: Cheque\n"), "as the PDF has it: {}", letter.text);
}

#[test]
fn what_was_paid_back_is_told() {
    let invoice = InvoiceLetter { refunded: samples::gmd(40_000), ..invoice(Locale::English, "") }.write();
    let receipt = ReceiptLetter { refunded: samples::gmd(40_000), ..receipt(Locale::French, "") }.write();
    for (letter, name, sum) in [(invoice, "Paid back", "400.00"), (receipt, "Remboursé", "400,00")] {
        for said in [&letter.text, &letter.html] {
            assert!(said.contains(name) && said.contains(&format!("{sum}\u{a0}GMD")), "{said}");
        }
    }
}

#[test]
fn an_overdue_invoice_says_it() {
    let letter = InvoiceLetter { standing: Standing::Overdue, ..invoice(Locale::French, "") }.write();
    assert!(letter.text.contains("Était à payer au plus tard le 14\u{a0}décembre\u{a0}2026"), "{}", letter.text);
}

#[test]
fn a_long_invoice_points_to_its_pdf() {
    let mut long = invoice(Locale::English, "");
    let line = long.lines[0].clone();
    long.lines = vec![line; 23];
    let text = long.write().text;
    assert_eq!(text.matches("Atlas").count(), 20);
    assert!(text.contains("… and 3 more lines"), "{text}");
}

/// What a letter would hold if one of its fields escaped badly.
const HOSTILE: [&str; 7] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' style='display:none",
    "</style><script>x</script>",
    "{ $merchant } { -term } &lt;b&gt; &amp;",
    "a\u{2028}b\u{2029}c\u{0}d\u{202e}e\u{e000}",
    "\r\n\r\n-- \r\nhttps://evil.example/",
];

#[test]
fn no_field_of_a_letter_can_speak_html() {
    for locale in Locale::ALL {
        let letters = |voice: &str| {
            [invoice(locale, voice).write(), receipt(locale, voice).write(), endpoint(locale, voice).write()]
        };
        let harmless = letters(" and plain words").map(|letter| elements(&letter.html));
        for voice in HOSTILE {
            for (letter, known) in letters(voice).into_iter().zip(&harmless) {
                for raw in ["<script>", "<img", "' style='", "</style><"] {
                    assert!(!letter.html.contains(raw), "{raw} from {voice:?}");
                }
                let found: Vec<_> = elements(&letter.html).difference(known).cloned().collect();
                assert!(found.is_empty(), "{found:?} from {voice:?}");
                assert!(!letter.subject.contains(['\r', '\n', '\u{202e}']), "{:?}", letter.subject);
                assert!(!letter.text.contains(['\r', '\u{0}', '\u{202e}']), "{:?}", letter.text);
            }
        }
    }
}

/// Names of the elements with their attributes' names, read as a browser would: quotes respected.
fn elements(html: &str) -> BTreeSet<String> {
    let tags = html.split('<').skip(1).filter(|rest| rest.starts_with(|it: char| it.is_ascii_alphabetic()));
    tags.map(|rest| {
        let (mut shape, mut quoted) = (String::new(), false);
        for character in rest.chars() {
            match character {
                '"' => quoted = !quoted,
                '>' if !quoted => break,
                _ if !quoted => shape.push(character),
                _ => {}
            }
        }
        shape
    })
    .collect()
}

#[test]
fn a_letter_loads_nothing_from_anywhere() {
    let locale = Locale::English;
    for letter in [invoice(locale, "").write(), receipt(locale, "").write(), endpoint(locale, "").write()] {
        for tag in ["<img", "<link", "<script", "@import", "url(", "<form", "<iframe"] {
            assert!(!letter.html.contains(tag), "{tag}");
        }
        assert!(letter.html.len() < 20_000, "{} bytes", letter.html.len());
    }
}

const ENGLISH: &str = include_str!("../../locales/letters.en.ftl");
const FRENCH: &str = include_str!("../../locales/letters.fr.ftl");

/// Each key with the arguments that its text uses.
fn keys(source: &str) -> Vec<(String, BTreeSet<String>)> {
    let mut keys: Vec<(String, BTreeSet<String>)> = Vec::new();
    for line in source.lines().filter(|line| !line.starts_with('#')) {
        if let Some((key, _)) = line.split_once(" = ").filter(|_| line.starts_with("letter-")) {
            keys.push((key.to_owned(), BTreeSet::new()));
        }
        let used = line.split('$').skip(1).map(|rest| rest.split([' ', '}']).next().unwrap_or_default().to_owned());
        if let Some((_, arguments)) = keys.last_mut() {
            arguments.extend(used);
        }
    }
    keys
}

#[test]
fn every_key_stands_in_every_locale_and_is_used() {
    let english = keys(ENGLISH);
    assert!(english.len() > 30, "the file was read");
    assert_eq!(english, keys(FRENCH));
    let sources = [
        include_str!("../letters.rs"),
        include_str!("endpoint.rs"),
        include_str!("invoice.rs"),
        include_str!("receipt.rs"),
        include_str!("../../templates/letters/base.html"),
        include_str!("../../templates/letters/endpoint.html"),
        include_str!("../../templates/letters/endpoint.txt"),
        include_str!("../../templates/letters/invoice.html"),
        include_str!("../../templates/letters/invoice.txt"),
        include_str!("../../templates/letters/pay.html"),
        include_str!("../../templates/letters/receipt.html"),
        include_str!("../../templates/letters/receipt.txt"),
    ]
    .concat();
    for (key, _) in &english {
        assert!(sources.contains(&format!("\"{key}\"")), "`{key}` is never said");
    }
    for used in sources.split("\"letter-").skip(1) {
        let key = format!("letter-{}", used.split('"').next().unwrap_or_default());
        assert!(english.iter().any(|(known, _)| *known == key), "no text `{key}`");
    }
    assert!(!sources.contains("|safe") && !sources.contains("| safe"), "raw output");
}
