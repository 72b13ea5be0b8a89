//! What can happen in a history, as plain data: a kind, its dice, and a fault. What it is about is thrown when it happens, so
//! a history stays one when a part of it is taken out.

use std::fmt;

use crate::random::Dice;

macro_rules! names {
    ($(#[$meaning:meta])* $name:ident { $($variant:ident => $text:literal),* $(,)? }) => {
        $(#[$meaning])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($variant),* }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant),*];

            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == text)
            }
        }
    };
}

names! {
    /// What somebody does.
    Kind {
        CreateCheckout => "create_checkout",
        CancelCheckout => "cancel_checkout",
        Pay => "pay",
        GoOn => "go_on",
        SubmitCode => "submit_code",
        Decide => "decide",
        Callback => "callback",
        Return => "return",
        Refund => "refund",
        DecideRefund => "decide_refund",
        CreateInvoice => "create_invoice",
        FinalizeInvoice => "finalize_invoice",
        UpdateInvoice => "update_invoice",
        SendInvoice => "send_invoice",
        CancelInvoice => "cancel_invoice",
        RecordPayment => "record_payment",
        CreateLink => "create_link",
        UpdateLink => "update_link",
        DeleteLink => "delete_link",
        CreateCustomer => "create_customer",
        DeleteCustomer => "delete_customer",
        CreateProduct => "create_product",
        UpdateProduct => "update_product",
        DeleteProduct => "delete_product",
        Look => "look",
        LookElsewhere => "look_elsewhere",
        List => "list",
        Replay => "replay",
        ReuseKey => "reuse_key",
        Work => "work",
        Deliver => "deliver",
        Number => "number",
        Wait => "wait",
        MeetDeadline => "meet_deadline",
        JumpClock => "jump_clock",
        Crash => "crash",
    }
}

names! {
    /// What goes wrong meanwhile.
    Fault {
        None => "none",
        StoreBegin => "store_begin",
        StoreStatement => "store_statement",
        StoreCommit => "store_commit",
        StoreConflict => "store_conflict",
        CallLost => "call_lost",
        AnswerLost => "answer_lost",
        CallRefused => "call_refused",
        CrashInCall => "crash_in_call",
        CrashBeforeCall => "crash_before_call",
        UnknownCommit => "unknown_commit",
    }
}

impl Fault {
    /// Whether the process dies of it, as soon as it calls somebody.
    pub fn kills(self) -> bool {
        matches!(self, Fault::CrashInCall | Fault::CrashBeforeCall)
    }

    /// Whether it is the storage that says no, or says nothing.
    pub fn is_of_storage(self) -> bool {
        match self {
            Fault::StoreBegin
            | Fault::StoreStatement
            | Fault::StoreCommit
            | Fault::StoreConflict
            | Fault::UnknownCommit => true,
            Fault::None
            | Fault::CallLost
            | Fault::AnswerLost
            | Fault::CallRefused
            | Fault::CrashInCall
            | Fault::CrashBeforeCall => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    pub kind: Kind,
    pub fault: Fault,
    pub dice: u64,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:x}", self.kind.as_str(), self.fault.as_str(), self.dice)
    }
}

impl Operation {
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (kind, fault) = (Kind::parse(words.next()?)?, Fault::parse(words.next()?)?);
        Some(Self { kind, fault, dice: u64::from_str_radix(words.next()?, 16).ok()? })
    }
}

const WEIGHTS: &[(Kind, u64)] = &[
    (Kind::CreateCheckout, 14),
    (Kind::CancelCheckout, 5),
    (Kind::Pay, 34),
    (Kind::GoOn, 5),
    (Kind::SubmitCode, 8),
    (Kind::Decide, 22),
    (Kind::Callback, 8),
    (Kind::Return, 4),
    (Kind::Refund, 12),
    (Kind::DecideRefund, 8),
    (Kind::CreateInvoice, 8),
    (Kind::FinalizeInvoice, 4),
    (Kind::UpdateInvoice, 7),
    (Kind::SendInvoice, 1),
    (Kind::CancelInvoice, 3),
    (Kind::RecordPayment, 7),
    (Kind::CreateLink, 4),
    (Kind::UpdateLink, 4),
    (Kind::DeleteLink, 1),
    (Kind::CreateCustomer, 4),
    (Kind::DeleteCustomer, 2),
    (Kind::CreateProduct, 3),
    (Kind::UpdateProduct, 2),
    (Kind::DeleteProduct, 1),
    (Kind::Look, 12),
    (Kind::LookElsewhere, 5),
    (Kind::List, 4),
    (Kind::Replay, 8),
    (Kind::ReuseKey, 2),
    (Kind::Work, 28),
    (Kind::Deliver, 8),
    (Kind::Number, 3),
    (Kind::Wait, 10),
    (Kind::MeetDeadline, 12),
    (Kind::JumpClock, 1),
    (Kind::Crash, 2),
];

/// A history is of one mood: what it does much of, and how much goes wrong in it.
pub fn generate(seed: u64, length: usize) -> Vec<Operation> {
    generate_without(seed, length, None)
}

/// A history in which one kind of operation never happens: what only that kind reaches is not reached.
pub fn generate_without(seed: u64, length: usize, never: Option<Kind>) -> Vec<Operation> {
    generate_weighed(seed, length, |kind| u64::from(Some(kind) != never))
}

/// A history in which the network speaks by itself more than anything else happens.
pub fn generate_hostile(seed: u64, length: usize) -> Vec<Operation> {
    let speaks = [Kind::Callback, Kind::Decide, Kind::DecideRefund, Kind::Refund];
    generate_weighed(seed, length, |kind| if speaks.contains(&kind) { 4 } else { 1 })
}

fn generate_weighed(seed: u64, length: usize, weigh: impl Fn(Kind) -> u64) -> Vec<Operation> {
    let mut dice = Dice::new(seed);
    let mut mood: Vec<(Kind, u64)> =
        WEIGHTS.iter().map(|(kind, weight)| (*kind, weight * [1, 1, 1, 2, 4][dice.below(5) as usize])).collect();
    mood.iter_mut().for_each(|(kind, weight)| *weight *= weigh(*kind));
    let all: u64 = mood.iter().map(|(_, weight)| weight).sum();
    let calm = [3, 6, 12, 40][dice.below(4) as usize];
    let operation = |dice: &mut Dice| {
        let mut place = dice.below(all);
        let mut kind = Kind::Look;
        for (one, weight) in &mood {
            if place < *weight {
                kind = *one;
                break;
            }
            place -= weight;
        }
        let fault = match dice.one_in(calm) {
            true => Fault::ALL[dice.below(Fault::ALL.len() as u64) as usize],
            false => Fault::None,
        };
        Operation { kind, fault, dice: dice.next() }
    };
    (0..length).map(|_| operation(&mut dice)).collect()
}
