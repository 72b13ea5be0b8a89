//! What the simulator's pages are told.

use super::{Amount, Language, Method};

/// The simulator's pages: the far side of a payment in test mode.
#[derive(Debug, Clone)]
pub struct SimulatorPage {
    pub merchant_name: String,
    pub amount: Amount,
    pub language: Language,
    /// `/simulator/<token>`; the forms post to it.
    pub path: String,
    pub form_token: String,
    pub scene: Scene,
}

#[derive(Debug, Clone)]
pub enum Scene {
    /// What Wave's app or page would ask.
    WalletApproval {
        phone: Option<String>,
    },
    /// A push on the handset.
    PhonePrompt {
        method: Method,
        phone: String,
    },
    /// A choice of test cards: no field on our pages can take a card number.
    CardPage {
        problem: Option<CardProblem>,
    },
    CardChallenge {
        last4: String,
    },
    Done {
        outcome: Outcome,
        back: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardProblem {
    NotChosen,
    UnknownCard,
}

/// What the tester lets happen; the value of the form field `outcome`. They mirror the test numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Approve,
    InsufficientFunds,
    Refuse,
    Silent,
    AnswerLost,
    Later,
    Twice,
}

impl Outcome {
    pub const ALL: [Self; 7] = [
        Self::Approve,
        Self::InsufficientFunds,
        Self::Refuse,
        Self::Silent,
        Self::AnswerLost,
        Self::Later,
        Self::Twice,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::InsufficientFunds => "insufficient_funds",
            Self::Refuse => "refuse",
            Self::Silent => "silent",
            Self::AnswerLost => "answer_lost",
            Self::Later => "later",
            Self::Twice => "twice",
        }
    }

    pub fn parse(value: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == value)
    }
}
