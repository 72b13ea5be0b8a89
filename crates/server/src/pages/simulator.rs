//! The simulator's pages: the far side of a payment in test mode, drawn so that nobody takes them for a
//! real wallet or bank. They ask for nothing secret: no PIN, and cards are chosen from a list, so that
//! no field here can take a real card number.

use askama::Template;

use super::amount;
use super::headers::Nonce;
use super::html::{Frame, address, outward, render as draw};
use super::text::{Text, plain};
use super::view::{CardProblem, Method, Outcome, Scene, SimulatorPage};

pub fn render(page: &SimulatorPage, nonce: &Nonce) -> String {
    draw(&Simulator {
        frame: Frame::new(nonce, None, page.language, &page.path, &[]),
        t: Text::new(page.language.locale),
        page,
        merchant: plain(&page.merchant_name),
        amount: amount::format(&page.amount, page.language.locale),
    })
}

/// A test card, as the README documents it.
pub struct TestCard {
    pub number: &'static str,
    shown: &'static str,
    text_key: &'static str,
}

pub const CARDS: [TestCard; 4] = [
    TestCard { number: "4242424242424242", shown: "4242 4242 4242 4242", text_key: "card-approved" },
    TestCard { number: "4000000000000002", shown: "4000 0000 0000 0002", text_key: "card-declined" },
    TestCard { number: "4000000000009995", shown: "4000 0000 0000 9995", text_key: "card-no-funds" },
    TestCard { number: "4000002500003155", shown: "4000 0025 0000 3155", text_key: "card-challenge" },
];

#[derive(Template)]
#[template(path = "simulator.html")]
struct Simulator<'a> {
    frame: Frame,
    t: Text,
    page: &'a SimulatorPage,
    merchant: String,
    amount: String,
}

impl<'a> Simulator<'a> {
    fn action(&self) -> String {
        address(&self.page.path, self.page.language)
    }

    fn asks(&self) -> String {
        let (merchant, amount) = (self.merchant.as_str(), self.amount.as_str());
        self.t.with_two("simulated-asks", ("merchant", merchant), ("amount", amount))
    }

    fn cards(&self) -> &'static [TestCard] {
        &CARDS
    }

    /// The outcomes that a real payer hardly meets, behind a fold.
    fn faults(&self) -> [Outcome; 4] {
        [Outcome::Silent, Outcome::AnswerLost, Outcome::Later, Outcome::Twice]
    }

    fn outcome(&self, outcome: &Outcome) -> String {
        self.t.get(match outcome {
            Outcome::Approve => "outcome-approve",
            Outcome::InsufficientFunds => "outcome-funds",
            Outcome::Refuse => "outcome-refuse",
            Outcome::Silent => "outcome-silent",
            Outcome::AnswerLost => "outcome-lost",
            Outcome::Later => "outcome-later",
            Outcome::Twice => "outcome-twice",
        })
    }

    fn title(&self) -> String {
        match &self.page.scene {
            Scene::WalletApproval { .. } => self.t.get("simulated-wave"),
            Scene::PhonePrompt { method: Method::Qmoney, .. } => self.t.get("simulated-qmoney"),
            Scene::PhonePrompt { .. } => self.t.get("simulated-afrimoney"),
            Scene::CardPage { .. } => self.t.get("simulated-card"),
            Scene::CardChallenge { .. } => self.t.get("simulated-bank"),
            Scene::Done { .. } => self.t.get("simulated-done"),
        }
    }

    fn card_problem(&self, problem: &CardProblem) -> String {
        self.t.get(match problem {
            CardProblem::NotChosen => "card-not-chosen",
            CardProblem::UnknownCard => "card-unknown",
        })
    }

    fn back(&self, url: &'a Option<String>) -> Option<&'a str> {
        url.as_deref().and_then(|it| outward(it, true))
    }
}
