//! The files of invoices and receipts: made of what is stored, on a thread that may block, and kept for those who ask
//! again.
//!
//! A file is of one edition: the digest of all that it shows. What changed since (the invoice, the merchant's address,
//! the clock) makes another edition, so a file that is out of date is never given out, and one that is lost is made again.

mod values;

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;
use domain::invoice::Invoice;
use domain::job::ClaimedJob;
use domain::receipt::{Receipt, ValidationCode};
use domain::{Id, Mode, Refusal, Scope};
use store::Tx;
use store::queries::{documents, jobs, locate, logos};

use super::renderings::{Place, Rendered};
use super::{App, Context, invoices, look_up, organization_of, receipt_statements, receipts};
use crate::error::Failure;

/// Of a job: over about an hour.
const MOST_TRIES: i64 = 10;

/// What a file is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    Invoice(Id<Invoice>),
    Receipt(Id<Receipt>),
}

impl Subject {
    fn object_id(self) -> String {
        match self {
            Subject::Invoice(id) => id.to_string(),
            Subject::Receipt(id) => id.to_string(),
        }
    }
}

/// Who is to read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// The merchant, or the customer that it is mailed to.
    Party,
    /// Whoever has its address: the customer's phone and e-mail address are masked, as on pages.
    Anybody,
}

/// A PDF file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// `INV-2026-11-0001.pdf`
    pub name: String,
    pub bytes: Bytes,
}

/// Who waits for a file.
#[derive(Clone, Copy)]
pub(super) enum Asker {
    /// A request, which is refused where too many wait.
    Somebody,
    /// Work that somebody waits for, and that can wait longer.
    Worker,
    Nobody,
}

/// What the file of an object is to show, and the file if there is one.
pub(super) struct Wanted {
    name: String,
    values: Arc<Values>,
    pub(super) edition: String,
    kept: Option<Vec<u8>>,
    /// Under which name: one with masks never takes the place of the other one, nor tells how making that went.
    kept_as: String,
}

#[derive(Debug)]
enum Values {
    Invoice(pdf::Invoice),
    Receipt(pdf::Receipt),
}

impl Values {
    fn render(&self) -> Result<Vec<u8>, pdf::Unwritten> {
        match self {
            Values::Invoice(invoice) => pdf::invoice(invoice),
            Values::Receipt(receipt) => pdf::receipt(receipt),
        }
    }

    fn show_logo(&mut self, file: Option<Vec<u8>>) {
        match self {
            Values::Invoice(invoice) => invoice.merchant.logo = file,
            Values::Receipt(receipt) => receipt.merchant.logo = file,
        }
    }

    /// Another program version may draw the same values otherwise. `logo` is the digest of the merchant's picture, which
    /// the values don't hold yet.
    fn edition(&self, logo: Option<&String>) -> String {
        let text = format!("{} {logo:?} {self:?}", env!("CARGO_PKG_VERSION"));
        digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl App {
    /// The file of an object as it stands.
    pub async fn document(&self, scope: Scope, subject: Subject) -> Result<File, Failure> {
        self.document_for(Asker::Somebody, scope, subject, Reader::Party).await
    }

    async fn document_for(
        &self,
        asker: Asker,
        scope: Scope,
        subject: Subject,
        reader: Reader,
    ) -> Result<File, Failure> {
        let wanted = self.read(move |tx, context| wanted(tx, context, scope, subject, reader)).await?;
        self.file(asker, scope, wanted).await
    }

    /// The kept one, or one that is made.
    pub(super) async fn file(&self, asker: Asker, scope: Scope, wanted: Wanted) -> Result<File, Failure> {
        let Wanted { name, values, edition, kept, kept_as } = wanted;
        if let Some(bytes) = kept {
            return Ok(File { name, bytes: bytes.into() });
        }
        let app = self.clone();
        let rendered = match asker {
            // Nobody waits behind what is made only while there is nothing else to do.
            Asker::Nobody => app.rendered(None, scope, kept_as, values, edition).await,
            Asker::Somebody | Asker::Worker => {
                let name = format!("{kept_as} {edition}");
                let make = |place| app.rendered(Some(place), scope, kept_as, values, edition);
                self.renderings().once(name, self.place(asker, scope.mode), make).await?
            }
        };
        Ok(File { name, bytes: rendered.map_err(Failure::Broken)? })
    }

    async fn place(&self, asker: Asker, mode: Mode) -> Result<Place, Failure> {
        match asker {
            Asker::Somebody => self.renderings().place_for_somebody(mode).await,
            Asker::Worker | Asker::Nobody => self.renderings().place(mode).await,
        }
    }

    /// Made and kept; without a place only while there is nothing else to do.
    async fn rendered(
        self,
        place: Option<Place>,
        scope: Scope,
        kept_as: String,
        values: Arc<Values>,
        edition: String,
    ) -> Rendered {
        let rendered = match place {
            Some(place) => self.render(place, values).await,
            None => self.render_ahead(values).await,
        };
        let rendered = rendered.map(Bytes::from);
        self.keep(scope, kept_as, edition, rendered.clone()).await;
        rendered
    }

    /// The file of the receipt with this code, for whoever was given it.
    pub async fn receipt_document(&self, code: ValidationCode) -> Result<File, Failure> {
        let found = self.read(move |tx, _| Ok(locate::receipt(tx, &code)?)).await?;
        let receipt = found.ok_or_else(Refusal::not_found::<Receipt>)?;
        self.document_for(Asker::Somebody, receipt.scope, Subject::Receipt(receipt.id), Reader::Anybody).await
    }

    /// For whoever was given the invoice's address: there is none of a draft.
    pub async fn issued_invoice_document(&self, id: Id<Invoice>) -> Result<File, Failure> {
        let scope = self.read(move |tx, _| {
            let scope = locate::invoice(tx, id)?.ok_or_else(Refusal::not_found::<Invoice>)?;
            let invoice = look_up::<Invoice>(tx, scope, id)?;
            if invoice.issued_date().is_none() { Err(Refusal::not_found::<Invoice>().into()) } else { Ok(scope) }
        });
        self.document_for(Asker::Somebody, scope.await?, Subject::Invoice(id), Reader::Anybody).await
    }

    /// Makes the files that a job owes, unless somebody asked for them first. Who asks later tries again, whatever came of it.
    pub async fn prepare_document(&self, claimed: &ClaimedJob, subject: Subject) -> Result<(), Failure> {
        let mut made = self.document_for(Asker::Nobody, claimed.scope, subject, Reader::Party).await;
        if made.is_ok() {
            made = self.document_for(Asker::Nobody, claimed.scope, subject, Reader::Anybody).await;
        }
        if made.is_err() && claimed.attempts < MOST_TRIES {
            return made.map(drop);
        }
        let claimed = claimed.clone();
        self.commit(move |tx, _| Ok(jobs::done(tx, &claimed)?)).await
    }

    /// Holds no transaction, and no thread that others wait for.
    async fn render(&self, place: Place, values: Arc<Values>) -> Result<Vec<u8>, String> {
        let render = move || {
            let rendered = values.render();
            drop(place);
            rendered
        };
        // The panic's message stays out of the log: it may hold what a customer is called.
        let rendered = tokio::task::spawn_blocking(render).await;
        rendered.map_err(|_| "the document's writer panicked".to_owned())?.map_err(|unwritten| unwritten.to_string())
    }

    /// Only while there is nothing else to do.
    async fn render_ahead(&self, values: Arc<Values>) -> Result<Vec<u8>, String> {
        let app = self.clone();
        let rendered = tokio::task::spawn_blocking(move || app.background().run(move || values.render())).await;
        let rendered = rendered.ok().flatten().ok_or("the document's writer panicked")?;
        rendered.map_err(|unwritten| unwritten.to_string())
    }

    /// Whoever asked has the file whether or not it can be kept.
    async fn keep(&self, scope: Scope, kept_as: String, edition: String, rendered: Rendered) {
        let object = kept_as.clone();
        let kept = self.commit(move |tx, _| {
            match &rendered {
                Ok(file) => documents::completed(tx, scope, &kept_as, &edition, file)?,
                Err(why) => documents::failed(tx, scope, &kept_as, &edition, why)?,
            }
            Ok(())
        });
        if let Err(failure) = kept.await {
            tracing::error!(object, %failure, "a document can't be kept");
        }
    }
}

pub(super) fn wanted(
    tx: &mut Tx<'_>,
    context: &Context,
    scope: Scope,
    subject: Subject,
    reader: Reader,
) -> Result<Wanted, Failure> {
    let (number, merchant, customer, mut values) = match subject {
        Subject::Invoice(id) => {
            let invoice = look_up::<Invoice>(tx, scope, id)?;
            let organization = organization_of(tx, scope)?;
            let merchant = organization.profile.clone();
            let now = tx.now();
            let pay_address = invoices::pay_address(context, &organization, &invoice, now);
            let refunded = receipts::refunded(tx, &invoice)?;
            let values = values::of_invoice(reader, &invoice, &merchant, refunded, pay_address, now);
            (invoice.number, merchant, invoice.customer, Values::Invoice(values))
        }
        Subject::Receipt(id) => {
            let receipt = look_up::<Receipt>(tx, scope, id)?;
            let statement = receipt_statements::address_of(tx, context, &receipt)?;
            let values = values::of_receipt(reader, &receipt, statement, &context.addresses);
            (receipt.number, receipt.merchant, receipt.customer, Values::Receipt(values))
        }
    };
    let edition = values.edition(merchant.logo_digest.as_ref());
    let is_masked = reader == Reader::Anybody && (customer.phone.is_some() || !customer.email.is_empty());
    let kept_as = if is_masked { documents::masked(&subject.object_id()) } else { subject.object_id() };
    let kept = documents::file(tx, scope, &kept_as, &edition)?;
    if let (None, Some(digest)) = (&kept, &merchant.logo_digest) {
        values.show_logo(logos::file(tx, scope, digest)?);
    }
    Ok(Wanted { name: file_name(&number), values: Arc::new(values), edition, kept, kept_as })
}

/// Nothing that means something in a path or a header.
fn file_name(number: &str) -> String {
    let plain: String = number.chars().filter(|it| it.is_ascii_alphanumeric() || matches!(it, '-' | '_')).collect();
    format!("{}.pdf", if plain.is_empty() { "document" } else { &plain })
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn a_file_name_is_a_name_everywhere() {
        assert_eq!(file_name("INV-2026-11-0001"), "INV-2026-11-0001.pdf");
        assert_eq!(file_name("../a\"b\r\nc"), "abc.pdf");
        assert_eq!(file_name("é/"), "document.pdf");
    }
}
