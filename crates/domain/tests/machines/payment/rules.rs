//! What has to hold in every state, and on every edge between two.

use domain::checkout;
use domain::event::EventType;
use domain::invoice;
use domain::payment::{SessionStatus, Settlement, Step, TransactionStatus};
use stateright::Property;

use super::Machine;
use super::object::Stored;
use super::rail::{OrderState, Word};
use super::world::{Attempt, Phase, TOTAL, World};

pub(crate) fn all() -> Vec<Property<Machine>> {
    vec![
        Property::always("no assertion fails, and only listed edges are taken", |machine: &Machine, world| {
            mark(machine, world);
            world.broken.is_none()
        }),
        Property::always("at most one attempt is open", |_, world: &World| {
            let is_open = |attempt: &&Attempt| attempt.session.refuse_if_closed().is_ok();
            world.attempts.iter().filter(is_open).count() <= 1
        }),
        Property::always("the rail takes one order for one reference", |_, world: &World| {
            world.attempts.iter().all(|attempt| attempt.order.taken <= 1)
        }),
        Property::always("money is posted once, and only if it came", |_, world: &World| {
            let is_right = |attempt: &Attempt| attempt.posted == u8::from(attempt.transaction.status().is_paid());
            world.books.sum() == 0 && world.attempts.iter().all(is_right)
        }),
        Property::always("what came is what the rail took", |_, world: &World| {
            let paid = |attempt: &&Attempt| attempt.transaction.status().is_paid();
            let sum: i64 = world.attempts.iter().filter(paid).map(|attempt| attempt.transaction.amount.minor).sum();
            sum == world.books.rail && world.attempts.iter().filter(paid).all(|attempt| attempt.order.is_paid())
        }),
        Property::always("what is paid is at most what is due", |_, world: &World| is_paid_at_most_due(world)),
        Property::always("money at the rail is booked, or somebody will hear of it", |_, world: &World| {
            let is_known = |(place, attempt): (usize, &Attempt)| {
                !attempt.order.is_paid()
                    || attempt.transaction.status().is_paid()
                    || attempt.ask.is_some()
                    || attempt.start.is_some()
                    || attempt.withdraw.is_some()
                    || (is_corrected(attempt) && world.callbacks.contains(&(place, Word::Paid)))
            };
            world.attempts.iter().enumerate().all(is_known)
        }),
        Property::always("what is undecided is asked about, and nothing else", |_, world: &World| {
            let is_asked = |attempt: &Attempt| match attempt.is_settled() {
                true => attempt.ask.is_none(),
                false => attempt.ask.is_some() || attempt.start.is_some(),
            };
            world.attempts.iter().all(is_asked)
        }),
        Property::always("what nobody has a use for is withdrawn where it waits", |_, world: &World| {
            let object = world.object.load();
            let is_dropped = |attempt: &Attempt| {
                let session = &attempt.session;
                let is_timed_out = !object.payable().ends_its_sessions() && !attempt.has_timer;
                let is_over =
                    session.refuse_if_closed().is_err() || !object.has_use_for(session.amount) || is_timed_out;
                let is_there = attempt.order.state == OrderState::Open && attempt.transaction.step() == Step::Waiting;
                !(is_over && is_there) || attempt.withdraw.is_some()
            };
            world.attempts.iter().all(is_dropped)
        }),
        Property::always("what the clock decides has its timer", |_, world: &World| match &world.object {
            Stored::Checkout(checkout) => {
                world.timer.is_some() || checkout.stored_status() != checkout::Status::Pending
            }
            Stored::Invoice(invoice) => world.timer.is_some() || invoice.stored_status() != invoice::Status::Pending,
        }),
        Property::always("every move is told once", |_, world: &World| is_told_once(world)),
    ]
}

/// Nobody asks about what failed, so a rail that corrects itself says so until it is heard.
fn is_corrected(attempt: &Attempt) -> bool {
    attempt.order.state == OrderState::Paid { corrected: true }
}

/// What of an attempt's money counts for the object, and how.
fn settlement(attempt: &Attempt) -> Option<Settlement> {
    let transaction = &attempt.transaction;
    transaction.status().is_paid().then_some(match (transaction.late, transaction.duplicate) {
        (true, _) => Settlement::Late,
        (false, true) => Settlement::Second,
        (false, false) => Settlement::Paid,
    })
}

fn is_paid_at_most_due(world: &World) -> bool {
    let sum = |wanted: Settlement| -> i64 {
        let counts = |attempt: &&Attempt| settlement(attempt) == Some(wanted);
        world.attempts.iter().filter(counts).map(|attempt| attempt.transaction.amount.minor).sum()
    };
    let (paid, late, second) = (sum(Settlement::Paid), sum(Settlement::Late), sum(Settlement::Second));
    let recorded = world.books.offline_received;
    let is_kept = match &world.object {
        Stored::Checkout(checkout) => {
            let is_completed = checkout.stored_status() == checkout::Status::Completed;
            paid == if is_completed { TOTAL } else { 0 }
        }
        // An invoice that was paid in part is not cancelled, so nothing is ever taken off.
        Stored::Invoice(invoice) => paid + recorded == invoice.paid().minor,
    };
    is_kept && paid + recorded + late <= TOTAL && world.books.unapplied == -second
}

fn is_told_once(world: &World) -> bool {
    let told = |kind| world.told.times(kind);
    let is_told = |kind, happened: bool| told(kind) == u8::from(happened);
    let of_object = match &world.object {
        Stored::Checkout(checkout) => {
            let is = |status| checkout.stored_status() == status;
            is_told(EventType::CheckoutCompleted, is(checkout::Status::Completed))
                && is_told(EventType::CheckoutExpired, is(checkout::Status::Expired))
                && is_told(EventType::CheckoutCancelled, is(checkout::Status::Cancelled))
        }
        Stored::Invoice(invoice) => {
            let is = |status| invoice.stored_status() == status;
            let parts = invoice.receipts().len() - usize::from(is(invoice::Status::Paid));
            is_told(EventType::InvoiceFinalized, invoice.issued_date().is_some())
                && is_told(EventType::InvoicePaid, is(invoice::Status::Paid))
                && is_told(EventType::InvoiceCancelled, is(invoice::Status::Cancelled))
                && usize::from(told(EventType::InvoicePartiallyPaid)) == parts
                && told(EventType::InvoiceOverdue) <= 1
                && (!is(invoice::Status::Overdue) || told(EventType::InvoiceOverdue) == 1)
                && told(EventType::InvoicePaymentFailed) == told(EventType::PaymentFailed)
        }
    };
    let sum = |part: fn(&Attempt) -> u8| world.attempts.iter().map(part).sum::<u8>();
    of_object
        && world.attempts.iter().all(|attempt| {
            attempt.told_failed <= 1 && attempt.told_paid == u8::from(attempt.transaction.status().is_paid())
        })
        && told(EventType::PaymentSucceeded) == sum(|attempt| attempt.told_paid)
        && told(EventType::PaymentFailed) == sum(|attempt| attempt.told_failed)
}

/// An edge that no state table of the contract has. What readers were told counts, whether or not a timer came first.
pub(super) fn forbidden_edge(before: &World, after: &World) -> Option<String> {
    let (from, to) = (before.object.status(before.now()), after.object.status(after.now()));
    let allowed: &[&str] = match (&after.object, from) {
        (Stored::Checkout(_), "pending") => &["completed", "expired", "cancelled"],
        (Stored::Invoice(_), "draft") => &["pending", "overdue", "cancelled"],
        (Stored::Invoice(_), "pending") => &["partially_paid", "overdue", "paid", "cancelled"],
        (Stored::Invoice(_), "partially_paid") => &["paid"],
        (Stored::Invoice(_), "overdue") => &["partially_paid", "paid", "cancelled"],
        (Stored::Checkout(_) | Stored::Invoice(_), _) => &[],
    };
    if from != to && !allowed.contains(&to) {
        return Some(format!("the object: {from} to {to}"));
    }
    before.attempts.iter().zip(&after.attempts).find_map(|(before, after)| {
        let was_sending = before.transaction.step() == Step::Sending;
        let (from, to) = (before.session.status(), after.session.status());
        if from != to && !is_session_edge(from, to, was_sending) {
            return Some(format!("a session: {} to {}", from.as_str(), to.as_str()));
        }
        let (from, to) = (before.transaction.status(), after.transaction.status());
        (from != to && !is_transaction_edge(from, to))
            .then(|| format!("a transaction: {} to {}", from.as_str(), to.as_str()))
    })
}

fn is_session_edge(from: SessionStatus, to: SessionStatus, was_sending: bool) -> bool {
    use SessionStatus::{Cancelled, Failed, Pending, Processing, Succeeded};
    match from {
        Pending => to != Pending,
        // The rail has it now, and its payer's turn has come, or has ended already.
        Processing if was_sending => to != Processing,
        // No codes are typed here, so nothing waits for a payer again.
        Processing => matches!(to, Succeeded | Failed),
        Failed | Cancelled => to == Succeeded,
        Succeeded => false,
    }
}

fn is_transaction_edge(from: TransactionStatus, to: TransactionStatus) -> bool {
    use TransactionStatus::{Cancelled, Completed, Expired, Failed, PartiallyRefunded, Pending, Processing, Refunded};
    match from {
        Pending => matches!(to, Processing | Completed | Failed | Cancelled | Expired),
        Processing => matches!(to, Completed | Failed),
        Failed | Cancelled | Expired => to == Completed,
        Completed | PartiallyRefunded | Refunded => false,
    }
}

fn mark(machine: &Machine, world: &World) {
    let (noun, stored) = match &world.object {
        Stored::Checkout(checkout) => ("checkout", checkout.stored_status().as_str()),
        Stored::Invoice(invoice) => ("invoice", invoice.stored_status().as_str()),
    };
    let mut marks = vec![(noun, stored)];
    if let Stored::Checkout(checkout) = &world.object
        && checkout.status(world.now()) == checkout::Status::Pending
        && checkout.is_past_expiry(world.now())
    {
        marks.push((noun, "held open by an attempt"));
    }
    for attempt in &world.attempts {
        marks.push(("session", attempt.session.status().as_str()));
        marks.push(("transaction", attempt.transaction.status().as_str()));
        marks.push(("step", attempt.transaction.step().as_str()));
        let money = settlement(attempt).map(|settlement| match settlement {
            Settlement::Paid => "paid",
            Settlement::Late => "late",
            Settlement::Second => "second",
        });
        marks.extend(money.map(|money| ("money", money)));
        if attempt.told_failed > 0 && attempt.told_paid > 0 {
            marks.push(("money", "after a failure"));
        }
        if attempt.order.state == OrderState::Refused {
            marks.push(("rail", "refused"));
        }
    }
    if world.runs.len() > 1
        && world.runs.windows(2).any(|two| (two[0].attempt, two[0].work) == (two[1].attempt, two[1].work))
    {
        marks.push(("work", "done by two"));
    }
    if world.late_calls.iter().any(|place| world.attempts[*place].is_settled()) {
        marks.push(("call", "arrives after the end"));
    }
    if world.runs.iter().any(|run| matches!(run.phase, Phase::Has(_)) && world.attempts[run.attempt].is_settled()) {
        marks.push(("answer", "overtaken by the outcome"));
    }
    machine.seen.mark(marks);
}
