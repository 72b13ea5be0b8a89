//! The documents, as another program reads them.

mod reader;
mod samples;

use pdf::{Invoice, Locale, Merchant, Receipt, State};

fn rendered(invoice: &Invoice) -> Vec<u8> {
    pdf::invoice(invoice).expect("an invoice")
}

/// Every one of the lines stands in the text, in this order.
#[track_caller]
fn assert_reads(text: &str, lines: &[&str]) {
    let mut rest = text;
    for line in lines {
        let at = rest.find(line).unwrap_or_else(|| panic!("{line:?} is not where it belongs in\n{text}"));
        rest = &rest[at + line.len()..];
    }
}

#[test]
fn an_invoice_says_all_it_holds() {
    let text = reader::text(&rendered(&samples::invoice()));
    assert_reads(
        &text,
        &[
            "Kairaba Digital Ltd",
            "Invoice",
            "Number Issued Due",
            "INV-2026-00042 1 March 2026 31 March 2026",
            "From Bill to",
            "Kairaba Digital Ltd Awa Ceesay",
            "48 Kairaba Avenue Kairaba Traders",
            "accounts@kairaba-digital.gm +220 771 2345",
            "Tax ID 1200-4477-2 awa@kairaba-traders.gm",
            "Description Quantity Unit price Amount (GMD)",
            "Website design and set-up 1 45,000.00 45,000.00",
            "Hosting, per month (March to August 2026) 6 750.00 4,500.00",
            "Training for two staff, half a day, at the client’s office in 2 3,500.50 7,001.00",
            "Serrekunda, with printed course notes",
            "Subtotal 57,701.00 GMD",
            "Tax (15%) 8,655.15 GMD",
            "Total 66,356.15 GMD",
            "Paid 15,000.00 GMD",
            "Amount due 51,356.15 GMD",
            "Thank you for your business.",
            "Page 1 of 1",
        ],
    );
    for words in ["Pay online", "https://pay.example.gm/invoice/", "inv_01jd8zv5k2e9rb4x7q3mwhcg6t"] {
        assert!(text.contains(words), "{words:?} is missing in\n{text}");
    }
}

#[test]
fn a_french_invoice_is_french() {
    let text = reader::text(&rendered(&samples::french()));
    assert_reads(
        &text,
        &[
            "Société Générale d’Équipement –",
            "Facture",
            "Numéro Émise le Échéance",
            "1er mars 2026 31 mars 2026",
            "Aïssatou Sène-N’Diaye",
            "Cité des Œuvres, villa nº 7",
            "Désignation Quantité Prix unitaire Montant (GMD)",
            "Étude préalable, relevé à l’œil nu et mètre ruban 1 12 500,00 12 500,00",
            "Où l’on paie à Noël ; ça coûte cher, naïf que je suis 3 10,00 30,00",
            "Sous-total 57 701,00 GMD",
            "Taxe (7,5 %) 8 655,15 GMD",
            "Reste à payer 51 356,15 GMD",
            "Page 1 sur 1",
        ],
    );
}

#[test]
fn arabic_keeps_its_letters_and_their_order() {
    let file = rendered(&samples::arabic());
    let text = reader::logical_text(&file);
    let words = [
        "مؤسسة النور للتجارة",
        "السيدة عائشة جالو",
        "غامبيا",
        "يرجى ذكر رقم الفاتورة",
        "لتعاملكم معنا",
        "INV-2026-00042",
    ];
    for words in words {
        assert!(text.contains(words), "{words} is missing in\n{text}");
    }
    // This reader turns the two letters of the ligature around; that they are both there is ours.
    assert!(text.contains("ثلاث") || text.contains("ثالث"), "{text}");
}

#[test]
fn a_receipt_says_all_it_holds() {
    let text = reader::text(&pdf::receipt(&samples::receipt()).expect("a receipt"));
    assert_reads(
        &text,
        &[
            "Kairaba Digital Ltd",
            "Receipt",
            "Amount received",
            "15,000.00 GMD",
            "Number Payment date Method",
            "RCP-2026-00017 14 March 2026, 15:05 GMT Wave",
            "For invoice Reference",
            "INV-2026-00042 TX-88213-GM",
            "Issued by Received from",
            "Kairaba Digital Ltd Awa Ceesay",
            "https://pay.example.gm/verify",
            "4f1c09be7d2a48d5b3e60a917c5ff21e",
        ],
    );
    let receipt = Receipt { locale: Locale::French, method: pdf::Method::Cash, ..samples::receipt() };
    let text = reader::text(&pdf::receipt(&receipt).expect("a receipt"));
    assert_reads(&text, &["Reçu", "15 000,00 GMD", "14 mars 2026 à 15:05 GMT Espèces", "Code de validation"]);
}

#[test]
fn drafts_and_cancelled_invoices_are_marked_on_paper() {
    let marks = [
        (State::Draft, "DRAFT", "BROUILLON"),
        (State::Cancelled, "CANCELLED", "ANNULÉE"),
        (State::Paid, "PAID", "PAYÉE"),
        (State::Refunded, "REFUNDED", "REMBOURSÉE"),
        (State::Overdue, "OVERDUE", "EN RETARD"),
    ];
    for (state, english, french) in marks {
        for (locale, mark) in [(Locale::English, english), (Locale::French, french)] {
            let text = reader::text(&rendered(&Invoice { state, locale, ..samples::invoice() }));
            assert!(text.contains(mark), "{mark} is missing in\n{text}");
        }
    }
    let open = reader::text(&rendered(&samples::invoice()));
    for (_, mark, _) in marks {
        assert!(!open.contains(mark), "{mark} on an open invoice");
    }
}

#[test]
fn what_was_paid_back_stands_below_what_was_paid() {
    let paid = Invoice { state: State::Paid, paid: 6_635_615, remaining: 0, pay_address: None, ..samples::invoice() };
    let untouched = reader::text(&rendered(&paid));
    assert!(untouched.contains("PAID") && !untouched.contains("Refunded"), "{untouched}");
    let part = reader::text(&rendered(&Invoice { refunded: 100_000, ..paid.clone() }));
    assert!(part.contains("PAID"), "{part}");
    assert_reads(&part, &["Paid 66,356.15 GMD", "Refunded 1,000.00 GMD", "Amount due 0.00 GMD"]);
    let whole = Invoice { state: State::Refunded, refunded: 6_635_615, ..paid };
    let english = reader::text(&rendered(&whole));
    assert!(!english.contains("PAID"), "{english}");
    assert_reads(&english, &["REFUNDED", "Paid 66,356.15 GMD", "Refunded 66,356.15 GMD", "Amount due 0.00 GMD"]);
    let french = reader::text(&rendered(&Invoice { locale: Locale::French, ..whole }));
    assert!(!french.contains("PAYÉE"), "{french}");
    assert_reads(&french, &["REMBOURSÉE", "Payé 66 356,15 GMD", "Remboursé 66 356,15 GMD", "Reste à payer 0,00 GMD"]);
}

#[test]
fn test_mode_is_said_on_every_page() {
    let test = rendered(&Invoice { test: true, ..samples::long() });
    for page in reader::pages(&test) {
        assert!(page.contains("Test mode: no real money"), "{page}");
    }
    assert!(!reader::text(&rendered(&samples::invoice())).contains("Test mode"));
}

#[test]
fn a_long_table_goes_on_under_its_header() {
    let pages = reader::pages(&rendered(&samples::long()));
    let text = pages.join("\n");
    for number in 1..=200 {
        assert_eq!(text.matches(&format!("Article {number:03}")).count(), 1, "article {number}");
    }
    assert!(pages.len() > 5, "{} pages", pages.len());
    for (index, page) in pages.iter().enumerate() {
        assert!(page.contains(&format!("Page {} of {}", index + 1, pages.len())), "{page}");
        let has_rows = page.contains("Article");
        assert_eq!(page.contains("Quantity"), has_rows, "{page}");
        assert!(index == 0 || page.contains("Invoice INV-2026-00042"), "{page}");
    }
    // What belongs together isn't torn apart.
    let last = pages.last().expect("a page");
    assert!(last.contains("Subtotal") && last.contains("Amount due") && last.contains("Pay online"), "{last}");
}

#[test]
fn qr_codes_decode_to_what_they_were_given() {
    let invoice = samples::invoice();
    assert_eq!(reader::codes(&rendered(&invoice)), [invoice.pay_address.expect("payable")]);
    let receipt = samples::receipt();
    assert_eq!(reader::codes(&pdf::receipt(&receipt).expect("a receipt")), [receipt.verify_code]);
}

#[test]
fn what_cannot_be_paid_has_no_code() {
    let file = rendered(&Invoice { pay_address: None, ..samples::invoice() });
    assert_eq!(reader::codes(&file), [] as [&str; 0]);
    assert!(!reader::text(&file).contains("Pay online"));
}

#[test]
fn the_same_values_make_the_same_file() {
    let once = rendered(&samples::arabic());
    // In between, other text goes through the same typesetters.
    rendered(&samples::long());
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(|| rendered(&samples::arabic()))).collect();
    for thread in threads {
        assert!(thread.join().expect("no panic") == once, "another file");
    }
    assert!(rendered(&samples::arabic()) == once, "another file");
    assert!(rendered(&Invoice { number: "INV-2026-00043".into(), ..samples::arabic() }) != once, "the same file");
}

#[test]
fn a_file_says_what_it_is() {
    let file = rendered(&samples::french());
    let about = reader::about(&file);
    let value = |name: &str| about.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str());
    assert_eq!(value("Title"), Some("Facture INV-2026-00042"));
    assert_eq!(value("Author"), Some("Société Générale d’Équipement – Bâtiment & Forêt"));
    assert_eq!(value("Tagged"), Some("yes"));
    assert_eq!(value("JavaScript"), Some("no"));
    assert_eq!(value("Form"), Some("none"));
    assert_eq!(value("Page size"), Some("595.28 x 841.89 pts (A4)"));
    let raw = String::from_utf8_lossy(&file);
    assert!(raw.contains("/Lang(fr)"), "no language");
    for standard in ["<pdfaid:part>2</pdfaid:part>", "<pdfuaid:part>1</pdfuaid:part>"] {
        assert!(raw.contains(standard), "{standard} is not said");
    }
}

#[test]
fn it_can_be_read_aloud() {
    let structure = reader::structure(&rendered(&samples::invoice()));
    let squeezed: String = structure.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["H1", "Table", "THead", "TH", "TBody", "TD", "Figure", "Link"] {
        assert!(structure.lines().any(|it| it.trim_start().starts_with(part)), "no {part} in\n{structure}");
    }
    // A table's row is read cell by cell.
    let row = "TD \"Website design and set-up\" TD \"1\" TD \"45,000.00\" TD \"45,000.00\" TR";
    assert!(squeezed.contains(row), "{squeezed}");
}

const PNG: &[u8] = include_bytes!("samples/logo.png");
const JPEG: &[u8] = include_bytes!("samples/logo.jpg");

fn with_logo(logo: &[u8]) -> Vec<u8> {
    let merchant = Merchant { logo: Some(logo.to_vec()), ..samples::merchant() };
    rendered(&Invoice { merchant, ..samples::invoice() })
}

#[test]
fn a_logo_is_shown_with_words_for_it() {
    for logo in [PNG, JPEG] {
        let file = with_logo(logo);
        assert!(String::from_utf8_lossy(&file).contains("/Subtype/Image"), "no picture");
        assert!(String::from_utf8_lossy(&file).contains("/Alt(Logo of Kairaba Digital Ltd)"), "no words for it");
        // The name still says who it is.
        assert!(reader::text(&file).contains("Kairaba Digital Ltd"));
    }
}

#[test]
fn a_broken_logo_costs_the_logo_only() {
    let without = rendered(&samples::invoice());
    let middle = PNG.len() / 2;
    let changed = |at: usize, bytes: &[u8]| {
        let mut changed = PNG.to_vec();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    };
    let broken = [
        Vec::new(),
        b"GIF89a".to_vec(),
        b"<svg/>".to_vec(),
        PNG[..30].to_vec(),
        PNG[..middle].to_vec(),
        // Pixels that don't add up, a width that isn't true, and one that is too much.
        changed(middle, &[PNG[middle] ^ 0xff]),
        changed(16, &60_000_u32.to_be_bytes()),
        include_bytes!("samples/wide.png").to_vec(),
        b"\xff\xd8\xff\xe0\x00\x10JFIF".to_vec(),
        JPEG[..100].to_vec(),
        vec![0x89; 2 << 20],
    ];
    for logo in broken {
        assert!(with_logo(&logo) == without, "a logo of {} bytes changed something", logo.len());
    }
}
