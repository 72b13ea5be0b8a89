//! Writes the sample documents into a folder, to be looked at:
//! `cargo run -p dalasi-pdf --example samples -- target/samples`
#![expect(clippy::print_stdout, reason = "an example speaks on its streams")]

#[path = "../tests/samples/mod.rs"]
mod samples;

use std::path::PathBuf;

use pdf::{Invoice, Merchant, State};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder: PathBuf = std::env::args_os().nth(1).ok_or("name a folder")?.into();
    std::fs::create_dir_all(&folder)?;
    let with_logo =
        |logo: Vec<u8>| Merchant { logo: Some(logo), accent: Some("#c2410c".into()), ..samples::merchant() };
    let logo = std::env::args_os().nth(2).map(std::fs::read).transpose()?;
    let draft = Invoice { state: State::Draft, number: String::new(), issued: None, ..samples::invoice() };
    let paid = Invoice {
        state: State::Paid,
        paid: 6_635_615,
        remaining: 0,
        paid_on: samples::invoice().due,
        pay_address: None,
        merchant: logo.map_or_else(samples::merchant, with_logo),
        ..samples::invoice()
    };
    let cancelled = Invoice { state: State::Cancelled, test: true, pay_address: None, ..samples::french() };
    let invoices = [
        ("invoice", samples::invoice()),
        ("draft", draft),
        ("paid", paid.clone()),
        ("cancelled", cancelled),
        ("french", samples::french()),
        ("arabic", samples::arabic()),
        ("long", samples::long()),
    ];
    for (name, invoice) in invoices {
        let file = pdf::invoice(&invoice)?;
        println!("{name}: {} bytes", file.len());
        std::fs::write(folder.join(name).with_extension("pdf"), file)?;
    }
    let receipt = pdf::receipt(&samples::receipt())?;
    println!("receipt: {} bytes", receipt.len());
    std::fs::write(folder.join("receipt.pdf"), receipt)?;
    let receipt = pdf::receipt(&pdf::Receipt {
        locale: pdf::Locale::French,
        test: true,
        merchant: paid.merchant,
        method: pdf::Method::BankTransfer,
        ..samples::receipt()
    })?;
    std::fs::write(folder.join("receipt-french.pdf"), receipt)?;
    Ok(())
}
