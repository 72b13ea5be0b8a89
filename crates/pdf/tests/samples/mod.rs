//! Documents that the tests and the examples render.
#![allow(dead_code, unreachable_pub, reason = "every user takes some of them")]

use pdf::{Currency, Date, Invoice, Line, Locale, Merchant, Method, Moment, Party, Receipt, State};

pub fn invoice() -> Invoice {
    Invoice {
        locale: Locale::English,
        merchant: merchant(),
        state: State::Open,
        test: false,
        number: "INV-2026-00042".into(),
        issued: Some(Date { year: 2026, month: 3, day: 1 }),
        due: Some(Date { year: 2026, month: 3, day: 31 }),
        paid_on: None,
        bill_to: customer(),
        currency: dalasi(),
        lines: vec![
            line("Website design and set-up", 1, 4_500_000),
            line("Hosting, per month (March to August 2026)", 6, 75_000),
            line("Training for two staff, half a day, at the client’s office in Serrekunda, with printed course notes", 2, 350_050),
            line("Domain name kairaba-traders.gm", 1, 120_000),
        ],
        subtotal: 5_770_100,
        tax_rate: "15".into(),
        tax: 865_515,
        total: 6_635_615,
        paid: 1_500_000,
        refunded: 0,
        remaining: 5_135_615,
        notes: "Thank you for your business.\nPlease quote the invoice number with your payment. Prices hold until the due date.".into(),
        pay_address: Some("https://pay.example.gm/invoice/inv_01jd8zv5k2e9rb4x7q3mwhcg6t".into()),
        as_of: Moment { date: Date { year: 2026, month: 3, day: 1 }, hour: 9, minute: 30, second: 0 },
    }
}

pub fn french() -> Invoice {
    Invoice {
        locale: Locale::French,
        merchant: Merchant {
            name: "Société Générale d’Équipement – Bâtiment & Forêt".into(),
            address: "12, rue Félix-Éboué\nDakar, Sénégal".into(),
            accent: Some("#8a2be2".into()),
            ..merchant()
        },
        bill_to: Party {
            name: "Aïssatou Sène-N’Diaye".into(),
            address: "Cité des Œuvres, villa nº 7\nZiguinchor".into(),
            ..customer()
        },
        lines: vec![
            line("Étude préalable, relevé à l’œil nu et mètre ruban", 1, 1_250_000),
            line("Façade : dépose, ponçage, peinture à l’huile (ton « sable »)", 12, 98_550),
            line("Où l’on paie à Noël ; ça coûte cher, naïf que je suis", 3, 1_000),
        ],
        notes: "Règlement sous trente jours. Pénalités de retard : 10 % l’an.".into(),
        tax_rate: "7.5".into(),
        ..invoice()
    }
}

pub fn arabic() -> Invoice {
    Invoice {
        merchant: Merchant {
            name: "مؤسسة النور للتجارة".into(),
            address: "شارع كيرابا، سيريكوندا\nغامبيا".into(),
            ..merchant()
        },
        bill_to: Party { name: "السيدة عائشة جالو".into(), ..customer() },
        lines: vec![
            line("تصميم موقع إلكتروني مع ثلاث صفحات، السعر 4,500 GMD لكل صفحة", 3, 450_000),
            line("الْحَمْدُ لِلَّهِ", 1, 100),
            line("Printing of «الفاتورة» in two colours", 2, 20_000),
        ],
        notes: "شكراً لتعاملكم معنا. يرجى ذكر رقم الفاتورة INV-2026-00042 عند الدفع.".into(),
        ..invoice()
    }
}

pub fn long() -> Invoice {
    let lines: Vec<Line> = (1..=200)
        .map(|number| {
            let more = if number % 7 == 0 {
                ", with a description long enough to run over into a second line of the table"
            } else {
                ""
            };
            line(&format!("Article {number:03}{more}"), number, 12_345 * number)
        })
        .collect();
    let subtotal = lines.iter().map(|it| it.total).sum();
    Invoice {
        lines,
        subtotal,
        total: subtotal,
        tax: 0,
        tax_rate: "0".into(),
        paid: 0,
        remaining: subtotal,
        ..invoice()
    }
}

pub fn receipt() -> Receipt {
    Receipt {
        locale: Locale::English,
        merchant: merchant(),
        test: false,
        number: "RCP-2026-00017".into(),
        payer: customer(),
        currency: dalasi(),
        amount: 1_500_000,
        method: Method::Wave,
        paid_at: Moment { date: Date { year: 2026, month: 3, day: 14 }, hour: 15, minute: 5, second: 7 },
        invoice_number: "INV-2026-00042".into(),
        reference: "TX-88213-GM".into(),
        validation_code: "4f1c09be7d2a48d5b3e60a917c5ff21e".into(),
        verify_code: format!("https://pay.example.gm/verify#{}", "dGhlIHN0YXRlbWVudA".repeat(12)),
        verify_address: "https://pay.example.gm/verify".into(),
    }
}

pub fn merchant() -> Merchant {
    Merchant {
        name: "Kairaba Digital Ltd".into(),
        address: "48 Kairaba Avenue\nSerrekunda, The Gambia".into(),
        phone: "+220 301 2345".into(),
        email: "accounts@kairaba-digital.gm".into(),
        tax_id: "1200-4477-2".into(),
        logo: None,
        accent: None,
    }
}

pub fn customer() -> Party {
    Party {
        name: "Awa Ceesay".into(),
        address: "Kairaba Traders\n7 Sayerr Jobe Avenue\nBanjul".into(),
        phone: "+220 771 2345".into(),
        email: "awa@kairaba-traders.gm".into(),
    }
}

pub fn line(description: &str, quantity: i64, unit_price: i64) -> Line {
    Line { description: description.into(), quantity, unit_price, total: quantity.saturating_mul(unit_price) }
}

pub fn dalasi() -> Currency {
    Currency { code: "GMD".into(), exponent: 2 }
}
