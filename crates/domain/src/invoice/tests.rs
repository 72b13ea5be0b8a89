//! Contract §4.4 as a table, the overdue moment to the microsecond, and money in parts, late or twice.

use super::*;
use crate::checkout::Item;
use crate::payment::{Settlement, TransactionStatus};
use crate::receipt::ValidationCode;
use crate::sample::{DAY, at, dalasi, id, scope, seconds};
use crate::table::table;

mod random;

/// 100.00 before and 115.00 after tax.
const TOTAL: i64 = 11_500;
const DUE_US: i64 = 10 * 86_400 * 1_000_000;

fn bill(minor: i64, rate: &str) -> Bill {
    let item = Item::new(Some("Rice".into()), 1, dalasi(minor)).expect("a sample fits");
    Bill::new(vec![item], TaxRate::parse(rate).expect("a sample is right")).expect("a sample fits")
}

fn order(due_date: Timestamp) -> Order {
    Order {
        customer_id: id(3),
        customer: BillTo { email: "awa@example.com".into(), name: "Awa".into(), ..BillTo::default() },
        bill: bill(10_000, "15"),
        due_date,
        notes: String::new(),
        metadata: Metadata::default(),
        subscription_id: None,
    }
}

fn draft() -> Invoice {
    Invoice::create(id(2), scope(), "INV-2027-01-0001".into(), order(at(DUE_US)), at(0))
}

fn pending() -> Invoice {
    Invoice::create_issued(id(2), scope(), "INV-2027-01-0001".into(), order(at(DUE_US)), at(0))
}

fn summary(number: u8, minor: i64, status: TransactionStatus) -> TransactionSummary {
    let status = status.as_str().into();
    TransactionSummary {
        id: id(number),
        status,
        amount: dalasi(minor),
        fee: dalasi(0),
        net: dalasi(minor),
        session: None,
    }
}

fn with_provider(mut invoice: Invoice, minor: i64) -> Invoice {
    invoice.session_opened(id(20), seconds(1));
    invoice.attempt_moved(summary(1, minor, TransactionStatus::Processing), true, seconds(1));
    invoice
}

fn recorded(mut invoice: Invoice, minor: i64) -> Invoice {
    invoice.record(dalasi(minor), seconds(2)).expect("a sample can be paid");
    invoice
}

fn overdue() -> Invoice {
    let mut invoice = pending();
    assert_eq!(invoice.observe(at(DUE_US)), Some(EventType::InvoiceOverdue));
    invoice
}

fn cancelled() -> Invoice {
    let mut invoice = pending();
    assert_eq!(invoice.cancel(seconds(2)), Ok(EventType::InvoiceCancelled));
    invoice
}

struct Row {
    invoice: Invoice,
    now: Timestamp,
}

#[derive(Clone, Copy)]
enum Action {
    Update,
    Finalize,
    Send,
    Cancel,
    Record(Part),
    Pay(Part),
    /// Whatever the time is then.
    Clock(Timestamp),
}

#[derive(Clone, Copy)]
enum Part {
    Little,
    Rest,
    More,
}

impl Part {
    fn of(self, invoice: &Invoice) -> i64 {
        match (self, invoice.remaining().minor) {
            (Part::Little, _) => 100,
            (Part::Rest, 0) => TOTAL,
            (Part::Rest, rest) => rest,
            (Part::More, rest) => rest + 1,
        }
    }
}

fn cell(row: &Row, action: &Action) -> String {
    let Row { invoice: before, now } = row;
    let mut invoice = before.clone();
    let mut now = *now;
    let mut settlement = None;
    let done = match action {
        Action::Update => {
            let change = Change { notes: Some("Thank you".into()), ..Change::default() };
            match invoice.update(change, now) {
                Ok(event) => Ok(event),
                Err(NotUpdated::Refused(refusal)) => Err(refusal),
                Err(NotUpdated::TotalTooLarge) => unreachable!("nothing costs more"),
            }
        }
        Action::Finalize => invoice.finalize(now).map(Some),
        Action::Send => invoice.sent(now).map(Some),
        Action::Cancel => invoice.cancel(now).map(Some),
        Action::Record(part) => {
            let minor = part.of(&invoice);
            let observed = invoice.observe(now);
            invoice.record(dalasi(minor), now).map(Some).inspect_err(|_| assert_eq!(observed, None))
        }
        Action::Pay(part) => {
            let minor = part.of(&invoice);
            let may = invoice.payable(Some(dalasi(minor)), true, now);
            if before.stored_status() != Status::Draft {
                let before = invoice.paid();
                let arrived = summary(1, minor, TransactionStatus::Completed);
                let came = invoice.money_arrived(arrived, now);
                assert_eq!(came == Settlement::Paid, invoice.paid().minor == before.minor + minor);
                settlement = Some(came);
            }
            may.map(|_| None)
        }
        Action::Clock(later) => {
            now = now.max(*later);
            Ok(invoice.observe(now))
        }
    };
    let late = match settlement {
        Some(Settlement::Late) => " (money: late)",
        Some(Settlement::Second) => " (money: second)",
        Some(Settlement::Paid) | None => "",
    };
    if let Err(refusal) = done {
        if settlement.is_none() {
            assert_eq!(&invoice, before, "a refusal changes nothing");
        }
        return format!("{}{late}", refusal.code());
    }
    let (was, is) = (before.stored_status(), invoice.stored_status());
    assert_eq!(invoice.status(now), is, "what is stored is what readers are told");
    assert_eq!(invoice.revision() - before.revision(), i64::from(invoice != *before), "one change, one revision");
    if was == is { "=".to_owned() } else { is.as_str().to_owned() }
}

#[test]
fn invoices_go_as_the_contract_says() {
    let row = |invoice| Row { invoice, now: seconds(3) };
    let states = [
        ("draft", row(draft())),
        ("pending", row(pending())),
        ("partially_paid", row(recorded(pending(), 1))),
        ("overdue", Row { invoice: overdue(), now: at(DUE_US) }),
        ("paid", row(recorded(pending(), TOTAL))),
        ("cancelled", row(cancelled())),
        ("pending, all with provider", row(with_provider(pending(), TOTAL))),
        ("pending, 1.00 with provider", row(with_provider(pending(), 100))),
        ("partially_paid, rest with provider", row(with_provider(recorded(pending(), 1), TOTAL - 1))),
    ];
    let actions = [
        ("update", Action::Update),
        ("finalize", Action::Finalize),
        ("send", Action::Send),
        ("cancel", Action::Cancel),
        ("record 1.00", Action::Record(Part::Little)),
        ("record all", Action::Record(Part::Rest)),
        ("record more", Action::Record(Part::More)),
        ("pay 1.00", Action::Pay(Part::Little)),
        ("pay all", Action::Pay(Part::Rest)),
        ("pay more", Action::Pay(Part::More)),
        ("overdue moment", Action::Clock(at(DUE_US))),
    ];
    insta::assert_snapshot!(table(&states, &actions, cell), @r"
                                       | update                | finalize          | send                      | cancel                    | record 1.00               | record all                | record more               | pay 1.00                                | pay all                                 | pay more                                  | overdue moment
    draft                              | =                     | pending           | invoice_is_draft          | cancelled                 | invoice_is_draft          | invoice_is_draft          | invoice_is_draft          | invoice_is_draft                        | invoice_is_draft                        | invoice_is_draft                          | =
    pending                            | =                     | invoice_not_draft | =                         | cancelled                 | partially_paid            | paid                      | invoice_overpayment       | partially_paid                          | paid                                    | invoice_overpayment (money: second)       | overdue
    partially_paid                     | invoice_not_updatable | invoice_not_draft | =                         | invoice_has_payments      | =                         | paid                      | invoice_overpayment       | =                                       | paid                                    | invoice_overpayment (money: second)       | =
    overdue                            | invoice_not_updatable | invoice_not_draft | =                         | cancelled                 | partially_paid            | paid                      | invoice_overpayment       | partially_paid                          | paid                                    | invoice_overpayment (money: second)       | =
    paid                               | invoice_not_updatable | invoice_not_draft | invoice_already_paid      | invoice_already_paid      | invoice_already_paid      | invoice_already_paid      | invoice_already_paid      | invoice_already_paid (money: second)    | invoice_already_paid (money: second)    | invoice_already_paid (money: second)      | =
    cancelled                          | invoice_not_updatable | invoice_not_draft | invoice_already_cancelled | invoice_already_cancelled | invoice_already_cancelled | invoice_already_cancelled | invoice_already_cancelled | invoice_already_cancelled (money: late) | invoice_already_cancelled (money: late) | invoice_already_cancelled (money: second) | =
    pending, all with provider         | payment_in_progress   | invoice_not_draft | =                         | payment_in_progress       | payment_in_progress       | payment_in_progress       | invoice_overpayment       | partially_paid                          | paid                                    | invoice_overpayment (money: second)       | overdue
    pending, 1.00 with provider        | payment_in_progress   | invoice_not_draft | =                         | payment_in_progress       | partially_paid            | payment_in_progress       | invoice_overpayment       | partially_paid                          | paid                                    | invoice_overpayment (money: second)       | overdue
    partially_paid, rest with provider | invoice_not_updatable | invoice_not_draft | =                         | invoice_has_payments      | payment_in_progress       | payment_in_progress       | invoice_overpayment       | =                                       | paid                                    | invoice_overpayment (money: second)       | =
    ");
}

/// One reading of the clock decides for readers and writers alike, whether or not the timer ran.
#[test]
fn the_overdue_moment_is_exact() {
    let mut issued_late = Invoice::create(id(2), scope(), String::new(), order(at(0)), at(0));
    issued_late.finalize(seconds(5)).expect("a draft");
    let grace_us = 5_000_000 + 86_400 * 1_000_000;
    let due_now = Invoice::create_issued(id(2), scope(), String::new(), order(at(0)), at(0));
    let states = [
        ("due in ten days", (pending(), DUE_US)),
        ("due as it is issued", (due_now, 86_400 * 1_000_000)),
        ("due before it was issued", (issued_late, grace_us)),
    ];
    let moments = [("t − 1 µs", -1), ("t", 0), ("t + 1 µs", 1)];
    let cell = |(invoice, moment_us): &(Invoice, i64), offset_us: &i64| {
        let now = at(moment_us + offset_us);
        let read = invoice.status(now).as_str();
        let change = Change { notes: Some("Thank you".into()), ..Change::default() };
        let update = match invoice.clone().update(change, now) {
            Err(NotUpdated::Refused(refusal)) => refusal.code(),
            updated => updated.is_ok().to_string(),
        };
        let timer = invoice.clone().observe(now).map_or("–", EventType::as_str);
        format!("{read}, update {update}, timer {timer}")
    };
    insta::assert_snapshot!(table(&states, &moments, cell), @r"
                             | t − 1 µs                      | t                                                            | t + 1 µs
    due in ten days          | pending, update true, timer – | overdue, update invoice_not_updatable, timer invoice.overdue | overdue, update invoice_not_updatable, timer invoice.overdue
    due as it is issued      | pending, update true, timer – | overdue, update invoice_not_updatable, timer invoice.overdue | overdue, update invoice_not_updatable, timer invoice.overdue
    due before it was issued | pending, update true, timer – | overdue, update invoice_not_updatable, timer invoice.overdue | overdue, update invoice_not_updatable, timer invoice.overdue
    ");
}

#[test]
fn a_due_date_that_has_passed_gives_a_day_from_the_issue() {
    let due = |invoice: &mut Invoice, due_date, now| {
        let change = Change { due_date: Some(due_date), ..Change::default() };
        assert_eq!(invoice.update(change, now), Ok(Some(EventType::InvoiceUpdated)));
        invoice.overdue_at()
    };
    let day = i64::try_from(DAY.as_micros()).expect("fits");
    // Moved to the past within a day of the issue: the day counts.
    assert_eq!(due(&mut pending(), at(5), at(10)), Some(at(day)));
    // Moved to the past later: the due date itself, so that it is overdue at once.
    let mut invoice = pending();
    assert_eq!(due(&mut invoice, at(2 * day), at(3 * day)), Some(at(2 * day)));
    assert_eq!(invoice.status(at(3 * day)), Status::Overdue);
    // A draft has no such moment before it is issued.
    let mut draft = draft();
    assert_eq!(due(&mut draft, at(5), at(10)), None);
    assert_eq!(draft.status(at(i64::MAX / 2)), Status::Draft);
}

#[test]
fn the_timer_stores_and_tells_it_once() {
    let mut invoice = pending();
    assert_eq!(invoice.observe(at(DUE_US - 1)), None);
    assert_eq!(invoice.observe(at(DUE_US)), Some(EventType::InvoiceOverdue));
    let before = invoice.clone();
    assert_eq!(invoice.observe(at(DUE_US + 1)), None);
    assert_eq!(invoice, before);
}

#[test]
fn a_clock_that_goes_back_revives_nothing() {
    let mut invoice = pending();
    invoice.attempt_moved(summary(1, 5, TransactionStatus::Failed), false, at(DUE_US + 5));
    assert_eq!(invoice.status(at(0)), Status::Overdue);
    assert_eq!(invoice.observe(at(0)), Some(EventType::InvoiceOverdue));
    assert_eq!(invoice.updated_at, at(DUE_US + 5));
}

#[test]
fn what_changes_nothing_is_no_change() {
    let mut invoice = pending();
    let same = || Change {
        email: Some("awa@example.com".into()),
        phone: Some(None),
        tax_rate: TaxRate::parse("15.0").ok(),
        due_date: Some(at(DUE_US)),
        items: Some(pending().bill().items().to_vec()),
        based_on: Some(1),
        ..Change::default()
    };
    let before = invoice.clone();
    assert_eq!(invoice.update(same(), seconds(1)), Ok(None));
    assert_eq!(invoice, before);
    let other = Change { tax_rate: Some(TaxRate::ZERO), ..same() };
    assert_eq!(invoice.update(other, seconds(1)), Ok(Some(EventType::InvoiceUpdated)));
    assert_eq!((invoice.revision(), invoice.total(), invoice.updated_at), (2, dalasi(10_000), seconds(1)));
    let stale = invoice.update(same(), seconds(2));
    assert_eq!(stale, Err(NotUpdated::Refused(Refusal::InvoiceVersionConflict { current: 2 })));
}

/// What only payers and providers do is no revision: a merchant's change is not refused because of it.
#[test]
fn an_attempt_is_no_revision() {
    let mut invoice = with_provider(pending(), TOTAL);
    invoice.attempt_moved(summary(1, TOTAL, TransactionStatus::Failed), false, seconds(4));
    assert_eq!((invoice.revision(), invoice.updated_at), (1, at(0)));
}

#[test]
fn a_refund_of_what_was_paid_makes_no_way_to_cancel() {
    let mut invoice = with_provider(pending(), 1);
    invoice.money_arrived(summary(1, 1, TransactionStatus::Completed), seconds(3));
    assert!(invoice.refund_moved(summary(1, 1, TransactionStatus::Refunded), seconds(4)));
    let refusal = invoice.cancel(seconds(5)).expect_err("it counts as paid in part");
    assert_eq!(refusal, Refusal::InvoiceHasPayments);
    assert!(refusal.to_string().contains("not even once its payments are refunded"), "{refusal}");
}

#[test]
fn a_total_above_the_maximum_is_refused() {
    let maximum = Money::maximum(dalasi(1).currency);
    let items = |minor| vec![Item::new(None, 1, dalasi(minor)).expect("fits")];
    assert_eq!(Bill::new(items(maximum.minor), TaxRate::ZERO).map(|bill| bill.total()), Some(maximum));
    let least = TaxRate::parse("0.0001").expect("a rate");
    assert_eq!(Bill::new(items(maximum.minor), least), None, "the tax is above it");
    let two = [items(maximum.minor), items(1)].concat();
    assert_eq!(Bill::new(two, TaxRate::ZERO), None, "the sum is above it");
    let mut invoice = pending();
    let before = invoice.clone();
    let change = Change { items: Some(items(maximum.minor)), ..Change::default() };
    assert_eq!(invoice.update(change, seconds(1)), Err(NotUpdated::TotalTooLarge));
    assert_eq!(invoice, before);
}

#[test]
fn a_bill_that_does_not_add_up_is_not_read() {
    let text = serde_json::to_string(&bill(10_000, "15")).expect("it is data");
    assert_eq!(serde_json::from_str::<Bill>(&text).expect("ours"), bill(10_000, "15"));
    let wrong = text.replace("\"quantity\":1", "\"quantity\":2");
    assert_ne!(wrong, text);
    assert!(serde_json::from_str::<Bill>(&wrong).is_err());
}

/// Older versions took up to 999 999 999 999.999 of a currency with three decimals.
#[test]
fn a_bill_above_the_maximum_of_today_can_still_be_read() {
    let dinar = crate::money::Currency::parse("TND").expect("ISO 4217 has it");
    let (most, once) = (Money::maximum(dinar), Money::stored_maximum(dinar));
    let item = Item::new(None, 1, most).expect("fits");
    let text = serde_json::to_string(&Bill::new(vec![item], TaxRate::ZERO).expect("fits")).expect("it is data");
    let read = |minor: i64| {
        let stored = text.replace(&most.minor.to_string(), &minor.to_string());
        serde_json::from_str::<Bill>(&stored).map(|bill| bill.total()).ok()
    };
    assert_eq!(read(once.minor), Some(once));
    assert_eq!(read(once.minor + 1), None, "no version took it");
    assert_eq!(Item::new(None, 1, once), None, "nothing new costs so much");
}

/// Late or twice: every money is told apart.
#[test]
fn money_is_never_dropped() {
    let arrivals = |invoice: &Invoice, amounts: [i64; 3]| {
        let mut invoice = invoice.clone();
        let words = [0, 1, 2].map(|turn: u8| {
            let arrived = summary(30 + turn, amounts[usize::from(turn)], TransactionStatus::Completed);
            format!("{:?}", invoice.money_arrived(arrived, seconds(9)))
        });
        let (status, paid) = (invoice.stored_status().as_str(), invoice.paid());
        format!("{} → {status}, paid {paid}", words.join(", "))
    };
    let (half, all) = (TOTAL / 2, TOTAL);
    let lines = [
        ("pending, halves", pending(), [half, half, half]),
        ("pending, too much at the end", pending(), [half, all, half]),
        ("partially paid", recorded(pending(), 1), [all, all - 1, 1]),
        ("paid", recorded(pending(), TOTAL), [1, 1, 1]),
        ("cancelled, halves", cancelled(), [half, half, half]),
        ("cancelled, all", cancelled(), [all, all, 1]),
        (
            "overdue",
            {
                let mut invoice = pending();
                invoice.observe(at(DUE_US));
                invoice
            },
            [half, half, 1],
        ),
    ];
    let text = lines.map(|(name, invoice, amounts)| format!("{name}: {}", arrivals(&invoice, amounts)));
    insta::assert_snapshot!(text.join("\n"), @r"
    pending, halves: Paid, Paid, Second → paid, paid 115.00
    pending, too much at the end: Paid, Second, Paid → paid, paid 115.00
    partially paid: Second, Paid, Second → paid, paid 115.00
    paid: Second, Second, Second → paid, paid 115.00
    cancelled, halves: Late, Late, Second → cancelled, paid 0.00
    cancelled, all: Late, Second, Second → cancelled, paid 0.00
    overdue: Paid, Paid, Second → paid, paid 115.00
    ");
}

#[test]
fn what_is_to_be_paid() {
    let part = recorded(pending(), 1_500);
    let say = |amount: Option<i64>, partial| match part.payable(amount.map(dalasi), partial, seconds(3)) {
        Ok(money) => money.to_string(),
        Err(refusal) => format!("{}: {refusal}", refusal.code()),
    };
    let lines = [(None, false), (Some(10_000), false), (Some(9_999), false), (Some(9_999), true), (Some(10_001), true)];
    insta::assert_snapshot!(lines.map(|(amount, partial)| say(amount, partial)).join("\n"), @r"
    100.00
    100.00
    partial_payment_not_allowed: This invoice is paid as a whole: 100.00 GMD. Leave `amount` out, or allow partial payments in the settings.
    99.99
    invoice_overpayment: That is more than what is left to pay: 100.00 GMD.
    ");
}

/// Each part is in the list of receipts, and the last place in it is for all that is left.
#[test]
fn no_invoice_is_paid_in_more_parts_than_a_thousand() {
    let mut invoice = pending();
    for number in 1..=999 {
        assert_eq!(invoice.payable(Some(dalasi(1)), true, seconds(2)), Ok(dalasi(1)));
        invoice.record(dalasi(1), seconds(2)).unwrap();
        invoice.receipt_issued(ReceiptSummary {
            id: Id::new(seconds(number), [7; 10]),
            number: format!("RCT-2027-{number:03}"),
            amount: dalasi(1),
            payment_date: seconds(2),
            validation_code: ValidationCode::new([7; 16]),
        });
    }
    let rest = dalasi(TOTAL - 999);
    let refusal = Refusal::TooManyParts { parts: 999, remaining: rest };
    assert_eq!(
        refusal.to_string(),
        "This invoice has 999 payments already: the next one has to be all that is left, 105.01 GMD."
    );
    let refused = Err(refusal);
    assert_eq!(invoice.payable(Some(dalasi(1)), true, seconds(2)), refused);
    assert_eq!(invoice.record(dalasi(1), seconds(2)).map(|_| rest), refused);
    // Nobody is told to pay all that is left while that is refused as well.
    let mut held = with_provider(invoice.clone(), 1);
    let refused = Err(Refusal::PaymentInProgress);
    for amount in [dalasi(1), rest] {
        assert_eq!(held.record(amount, seconds(2)).map(|_| rest), refused);
    }
    assert_eq!(held.payable(Some(dalasi(1)), true, seconds(2)), refused);
    assert_eq!(invoice.payable(None, true, seconds(2)), Ok(rest));
    assert_eq!(invoice.record(rest, seconds(2)), Ok(EventType::InvoicePaid));
}

#[test]
fn every_status_has_one_spelling() {
    for status in Status::ALL {
        assert_eq!(Status::parse(status.as_str()), Some(status));
    }
    assert_eq!(Status::parse("open"), None);
}
