//! What has to hold in every state, and on every edge between two.

use domain::event::EventType;
use domain::payment::{Step, TransactionStatus};
use domain::refund::RefundStatus;
use stateright::Property;

use super::Machine;
use super::world::{Order, Phase, Row, Run, TOTAL, Word, World};

pub(crate) fn all() -> Vec<Property<Machine>> {
    vec![
        Property::always("no assertion fails, and only listed edges are taken", |machine: &Machine, world| {
            mark(machine, world);
            world.broken.is_none()
        }),
        Property::always("refunds, open ones included, are at most what was paid", |_, world: &World| {
            let sum = |open: bool| -> i64 {
                let counts = |row: &&Row| match row.refund.status() {
                    RefundStatus::Pending | RefundStatus::Processing => open,
                    RefundStatus::Completed => !open,
                    RefundStatus::Failed => false,
                };
                world.refunds.iter().filter(counts).map(|row| row.refund.amount.minor).sum()
            };
            let transaction = &world.transaction;
            sum(false) + sum(true) <= TOTAL
                && (sum(false), sum(true)) == (transaction.refunded().minor, transaction.refunding().minor)
        }),
        Property::always("the rail takes one order for one reference", |_, world: &World| {
            world.refunds.iter().all(|row| row.taken <= 1)
        }),
        Property::always(
            "what the rail pays back is at most what it got, unless a person is told",
            |_, world: &World| {
                let sum: i64 = world.refunds.iter().filter(|row| is_done(row)).map(|row| row.refund.amount.minor).sum();
                let is_told = |row: &Row| row.refund.parked.is_some() || is_heard_of(world, row);
                sum <= TOTAL || world.refunds.iter().any(is_told)
            },
        ),
        Property::always("what is paid back is booked, or somebody will hear of it", |_, world: &World| {
            let is_known = |row: &Row| {
                row.refund.status() == RefundStatus::Completed || row.refund.parked.is_some() || is_heard_of(world, row)
            };
            world.refunds.iter().filter(|row| is_done(row)).all(is_known)
        }),
        Property::always("what is booked as paid back is", |_, world: &World| {
            let is_at_rail = |row: &Row| row.refund.source.rail().is_none() || is_done(row);
            let is_completed = |row: &&Row| row.refund.status() == RefundStatus::Completed;
            world.refunds.iter().filter(is_completed).all(is_at_rail)
        }),
        Property::always("the books say the same as the payment", |_, world: &World| {
            let (books, transaction) = (&world.books, &world.transaction);
            let left = TOTAL - transaction.refunded().minor;
            books.sum() == 0
                && books.refunds_pending == -transaction.refunding().minor
                && books.rail + books.offline_received == left
        }),
        Property::always("nobody takes for lost what is being sent", |_, world: &World| {
            let calls = |run: &&Run| run.holds && matches!(run.phase, Phase::Calls { .. });
            world.runs.iter().filter(calls).all(|run| world.refunds[run.place].refund.step() != Step::Unknown)
        }),
        Property::always("what is undecided is asked about", |_, world: &World| {
            let is_asked = |row: &Row| row.ask.is_some() || row.send.is_some();
            world.refunds.iter().all(|row| row.refund.step() == Step::Settled || is_asked(row))
        }),
        Property::always("every end is told once", |_, world: &World| {
            world.refunds.iter().all(|row| {
                let is_completed = row.refund.status() == RefundStatus::Completed;
                let is_failed = row.refund.status() == RefundStatus::Failed;
                let failed = row.told.times(EventType::RefundFailed);
                row.told.times(EventType::RefundCompleted) == u8::from(is_completed)
                    && failed <= 1
                    && (!is_failed || failed == 1)
            })
        }),
    ]
}

fn is_done(row: &Row) -> bool {
    matches!(row.order, Order::Done { .. })
}

/// Somebody will ask. About what failed nobody does, so a rail that corrects itself says so until it is heard.
fn is_heard_of(world: &World, row: &Row) -> bool {
    let is_reported =
        |(place, word): &(usize, Word)| world.refunds[*place].refund.id == row.refund.id && *word == Word::Done;
    row.ask.is_some()
        || row.send.is_some()
        || (row.order == Order::Done { corrected: true } && world.callbacks.iter().any(is_reported))
}

/// An edge that no state table of the contract has.
pub(super) fn forbidden_edge(before: &World, after: &World) -> Option<String> {
    use TransactionStatus::{Completed, PartiallyRefunded, Refunded};
    let (from, to) = (before.transaction.status(), after.transaction.status());
    let is_listed = match from {
        Completed => matches!(to, PartiallyRefunded | Refunded),
        PartiallyRefunded => to == Refunded,
        _ => false,
    };
    if from != to && !is_listed {
        return Some(format!("the payment: {} to {}", from.as_str(), to.as_str()));
    }
    before.refunds.iter().zip(&after.refunds).find_map(|(before, after)| {
        use RefundStatus::{Completed, Failed, Pending, Processing};
        let (from, to) = (before.refund.status(), after.refund.status());
        let is_listed = match from {
            Pending => matches!(to, Processing | Completed | Failed),
            Processing => matches!(to, Completed | Failed),
            Failed => to == Completed,
            Completed => false,
        };
        (from != to && !is_listed).then(|| format!("a refund: {} to {}", from.as_str(), to.as_str()))
    })
}

fn mark(machine: &Machine, world: &World) {
    let mut marks = vec![("payment", world.transaction.status().as_str())];
    for row in &world.refunds {
        marks.push(("refund", row.refund.status().as_str()));
        marks.push(("step", row.refund.step().as_str()));
        if row.refund.parked.is_some() {
            marks.push(("refund", "more than was left"));
        }
        if row.order == (Order::Done { corrected: true }) && row.refund.status() == RefundStatus::Completed {
            marks.push(("refund", "completed after a failure"));
        }
        if row.order == Order::Refused {
            marks.push(("rail", "refused"));
        }
    }
    let refunds = &world.refunds;
    if refunds.len() > 1 && refunds.iter().all(|row| row.refund.step() != Step::Settled) {
        marks.push(("refund", "two at once"));
    }
    machine.seen.mark(marks);
}
