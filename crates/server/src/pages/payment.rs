//! The page of a payment: one template, one block per state. What is decided here is only how a state
//! looks and how the page keeps itself fresh, never what a state means.

mod fields;

use askama::Template;

use super::amount;
use super::assets::{Asset, SCRIPT};
use super::headers::Nonce;
use super::html::{Frame, address, initial, outward, own_path, render as draw};
use super::moment;
use super::qr::{self, Drawing};
use super::text::{Around, Text, plain};
use super::view::{
    Amount, Closed, CodeError, Due, End, FieldKind, Invoice, Item, Leave, Method, PaidWith, PaymentPage, PhoneError,
    Problem, Reason, Receipt, Received, Refunded, Standing, State, Subject,
};

/// The page as HTML; answer with it and [`super::headers::for_page`] of the same nonce.
pub fn render(page: &PaymentPage, nonce: &Nonce) -> String {
    draw(&Payment::new(page, nonce))
}

#[derive(Template)]
#[template(path = "payment.html")]
struct Payment<'a> {
    frame: Frame,
    t: Text,
    page: &'a PaymentPage,
    script: &'static Asset,
    merchant: String,
    amount: String,
    digits: String,
    watch: bool,
    /// Seconds; without script a waiting page asks again by itself, unless it leads outward.
    refresh: Option<u32>,
    /// Leads outward by itself at once.
    go: Option<&'a str>,
    /// Back to the shop after a moment.
    back: Option<&'a str>,
}

impl<'a> Payment<'a> {
    fn new(page: &'a PaymentPage, nonce: &Nonce) -> Self {
        let (go, back) = ways_out(page);
        let accent = page.merchant.accent.as_deref();
        let kept: Vec<(&str, &str)> = page.kept.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Self {
            frame: Frame::new(nonce, accent, page.language, &page.path, &kept),
            t: Text::new(page.language.locale),
            page,
            script: &SCRIPT,
            merchant: plain(&page.merchant.name),
            amount: page.amount.as_ref().map(|it| amount::format(it, page.language.locale)).unwrap_or_default(),
            digits: page.amount.as_ref().map(|it| amount::digits(it, page.language.locale)).unwrap_or_default(),
            watch: page.unsettled || !is_final(&page.state),
            refresh: waits(page).then(|| pause_seconds(page.reads)),
            go,
            back,
        }
    }

    fn rate(&self, percent: &str) -> String {
        amount::rate(percent, self.page.language.locale)
    }

    fn here(&self) -> String {
        address(&self.page.path, self.page.language)
    }

    fn action(&self, name: &str) -> String {
        address(&format!("{}/{name}", self.page.path), self.page.language)
    }

    /// This page once more, one read later.
    fn again(&self) -> String {
        let here = self.here();
        let joint = if here.contains('?') { '&' } else { '?' };
        format!("{here}{joint}reads={}", self.page.reads.saturating_add(1))
    }

    fn out(&self, url: &'a str) -> Option<&'a str> {
        outward(url, self.page.test_mode)
    }

    fn out_of(&self, url: &'a Option<String>) -> Option<&'a str> {
        url.as_deref().and_then(|it| self.out(it))
    }

    fn logo(&self) -> Option<&'a str> {
        self.page.merchant.logo_path.as_deref().and_then(own_path)
    }

    fn initial(&self) -> String {
        initial(&self.merchant)
    }

    // What the templates call takes references, since askama passes every variable as one.

    fn money(&self, amount: &Amount) -> String {
        amount::format(amount, self.page.language.locale)
    }

    fn clean(&self, text: &str) -> String {
        plain(text)
    }

    fn day(&self, unix_seconds: &i64) -> String {
        moment::day(*unix_seconds, self.t)
    }

    /// What stands below the amount.
    fn lines(&self) -> Vec<String> {
        match &self.page.subject {
            Subject::Order { description, .. } => description.iter().map(|it| plain(it)).collect(),
            Subject::Link { title, description, .. } => {
                [title].into_iter().chain(description).map(|it| plain(it)).collect()
            }
            Subject::Invoice(invoice) => self.invoice_lines(invoice),
            Subject::Unissued => Vec::new(),
        }
    }

    fn invoice_lines(&self, invoice: &Invoice) -> Vec<String> {
        let (number, day) = (plain(&invoice.number), self.day(&invoice.due_at));
        let named = |key| self.t.with_two(key, ("number", number.as_str()), ("day", day.as_str()));
        let first = match invoice.due {
            Due::Ahead => named("invoice-due-line"),
            Due::Passed => named("invoice-overdue-line"),
            Due::Settled => self.t.with("invoice-line", "number", &number),
        };
        let (paid, total, left) = (self.money(&invoice.paid), self.money(&invoice.total), self.money(&invoice.left));
        let is_waiting = invoice.due != Due::Settled;
        let second = (is_waiting && invoice.paid.minor > 0)
            .then(|| self.t.with_two("invoice-part-paid", ("paid", &paid), ("total", &total)));
        let third = (is_waiting && self.page.amount.as_ref() != Some(&invoice.left))
            .then(|| self.t.with("part-line", "left", &left));
        [first].into_iter().chain(second).chain(third).collect()
    }

    fn invoice(&self) -> Option<&'a Invoice> {
        match &self.page.subject {
            Subject::Order { .. } | Subject::Link { .. } | Subject::Unissued => None,
            Subject::Invoice(invoice) => Some(invoice),
        }
    }

    /// Also one of which nothing is told.
    fn is_invoice(&self) -> bool {
        match &self.page.subject {
            Subject::Invoice(_) | Subject::Unissued => true,
            Subject::Order { .. } | Subject::Link { .. } => false,
        }
    }

    fn items(&self) -> &'a [Item] {
        match &self.page.subject {
            Subject::Order { items, .. } => items,
            Subject::Invoice(invoice) => &invoice.items,
            Subject::Link { .. } | Subject::Unissued => &[],
        }
    }

    fn reference(&self) -> Option<&'a String> {
        match &self.page.subject {
            Subject::Order { reference, .. } => reference.as_ref(),
            Subject::Invoice(_) | Subject::Link { .. } | Subject::Unissued => None,
        }
    }

    /// A drawing of the page's own address, for the camera of a phone.
    fn drawn_address(&self) -> Option<Drawing> {
        match (&self.page.subject, &self.page.state) {
            (Subject::Link { address: Some(address), .. }, State::Choose { .. }) => qr::draw(address),
            (Subject::Link { .. } | Subject::Order { .. } | Subject::Invoice(_) | Subject::Unissued, _) => None,
        }
    }

    fn own<'p>(&self, path: &'p Option<String>) -> Option<&'p str> {
        path.as_deref().and_then(own_path)
    }

    fn moment(&self, unix_seconds: &i64) -> String {
        moment::in_words(*unix_seconds, self.t)
    }

    fn name(&self, method: &Method) -> String {
        self.t.get(match method {
            Method::Wave => "wave",
            Method::Afrimoney => "afrimoney",
            Method::Qmoney => "qmoney",
            Method::Card => "card",
        })
    }

    fn paid_by(&self, method: &Method) -> String {
        match method {
            Method::Card => self.t.get("paid-with-card"),
            Method::Wave | Method::Afrimoney | Method::Qmoney => self.name(method),
        }
    }

    fn paid_with(&self, way: &PaidWith) -> String {
        match way {
            PaidWith::Online(method) => self.paid_by(method),
            PaidWith::Cash => self.t.get("paid-with-cash"),
            PaidWith::BankTransfer => self.t.get("paid-with-bank-transfer"),
            PaidWith::Check => self.t.get("paid-with-check"),
            PaidWith::WesternUnion => self.t.get("paid-with-western-union"),
            PaidWith::Other => self.t.get("paid-with-other"),
        }
    }

    /// Who is asked whether the payer paid.
    fn asked(&self, method: &Method) -> String {
        match method {
            Method::Card => self.t.get("card-bank"),
            Method::Wave | Method::Afrimoney | Method::Qmoney => self.name(method),
        }
    }

    fn pay_with(&self, method: &Method) -> String {
        self.t.get(match method {
            Method::Wave => "pay-with-wave",
            Method::Afrimoney => "pay-with-afrimoney",
            Method::Qmoney => "pay-with-qmoney",
            Method::Card => "pay-with-card",
        })
    }

    /// What a tap on the method will do.
    fn will(&self, method: &Method) -> String {
        self.t.get(match method {
            Method::Wave => "will-wave",
            Method::Afrimoney => "will-afrimoney",
            Method::Qmoney => "will-qmoney",
            Method::Card => "will-card",
        })
    }

    /// `title`, `body` or `open` of the page that leads to the method.
    fn redirect_word(&self, part: &str, method: &Method) -> String {
        self.t.get(&format!("redirect-{part}-{}", method.as_str()))
    }

    fn problem(&self, problem: &Problem) -> String {
        match problem {
            Problem::NotStarted(Method::Card) => {
                self.t.with("problem-card-not-started", "another", self.another(&Method::Card))
            }
            Problem::NotStarted(method) => {
                let (name, another) = (self.name(method), self.another(method));
                self.t.with_two("problem-not-started", ("method", &name), ("another", another))
            }
            Problem::InProgress => self.t.get("problem-in-progress"),
            Problem::TooOften => self.t.get("problem-too-often"),
            Problem::StaleForm => self.t.get("problem-stale-form"),
            Problem::AmountChanged => self.t.get("problem-amount-changed"),
            Problem::NoNewPayment => self.t.get("problem-no-new-payment"),
            Problem::LastPlaceHeld => self.t.get("problem-last-place-held"),
        }
    }

    fn is_told_to_wait(&self) -> bool {
        is_told_to_wait(&self.page.state)
    }

    /// Above a choice of nothing.
    fn none_title(&self) -> &'static str {
        if self.is_told_to_wait() { "title-checking" } else { "choose-none-title" }
    }

    /// Where no method takes what is paid here.
    fn not_online(&self) -> String {
        let key = if self.invoice().is_some() { "choose-none-invoice" } else { "choose-none-body" };
        self.t.with(key, "merchant", &self.merchant)
    }

    /// Whether another method than this one is offered, as the texts ask.
    fn another(&self, method: &Method) -> &'static str {
        let is_offered = match &self.page.state {
            State::Choose { methods, .. } | State::NotPaid { methods, .. } => methods.iter().any(|it| it != method),
            State::NeedsPhone { other_methods, .. }
            | State::ApproveOnPhone { other_methods, .. }
            | State::Redirecting { other_methods, .. } => *other_methods,
            // Nobody is asked there to try again.
            _ => false,
        };
        if is_offered { "yes" } else { "no" }
    }

    fn phone_error(&self, error: &PhoneError, method: &Method) -> String {
        match error {
            PhoneError::Missing => self.t.get("phone-missing"),
            PhoneError::Format => self.t.get("phone-format"),
            PhoneError::NotStarted => self.t.with("phone-not-started", "another", self.another(method)),
            PhoneError::TooOften => self.t.get("problem-too-often"),
        }
    }

    fn code_error(&self, error: &CodeError, length: &u8) -> String {
        match error {
            CodeError::Missing => self.t.get("code-missing"),
            CodeError::Format => self.t.count("code-format", u32::from(*length)),
            CodeError::Wrong => self.t.get("code-wrong"),
            CodeError::Expired => self.t.get("code-expired"),
            CodeError::TooOften => self.t.get("problem-too-often"),
            CodeError::StaleForm => self.t.get("problem-stale-form"),
            CodeError::AmountChanged => self.t.get("problem-amount-changed"),
            CodeError::NoNewPayment => self.t.get("problem-no-new-payment"),
            CodeError::InProgress => self.t.get("problem-in-progress"),
            CodeError::NotSentAgain => self.t.get("code-not-sent-again"),
        }
    }

    fn reason(&self, reason: &Reason, method: &Method) -> String {
        let name = self.name(method);
        match (reason, method) {
            (Reason::InsufficientFunds, Method::Card) => self.t.get("reason-card-funds"),
            (Reason::InsufficientFunds, _) => self.t.with("reason-funds", "method", &name),
            (Reason::Declined, Method::Card) => self.t.get("reason-card-declined"),
            (Reason::Declined, _) => self.t.with("reason-declined", "method", &name),
            (Reason::WrongCode, _) => self.t.get("reason-wrong-code"),
            (Reason::Expired, _) => self.t.get("reason-expired"),
            (Reason::Cancelled, _) => self.t.get("reason-cancelled"),
            (Reason::ProviderError, Method::Card) => self.t.get("reason-card-error"),
            (Reason::ProviderError, _) => self.t.with("reason-error", "method", &name),
        }
    }

    fn standing(&self, standing: &Standing) -> String {
        match standing {
            Standing::NothingTaken => self.t.get("nothing-taken"),
            Standing::Unknown(method) => self.t.with("not-certain", "method", self.asked(method)),
        }
    }

    fn late(&self, after: &End) -> String {
        self.t.get(match (after, self.invoice()) {
            (End::Expiry, _) => "late-expired",
            (End::Cancellation, None) => "late-cancelled",
            (End::Cancellation, Some(_)) => "late-invoice-cancelled",
        })
    }

    fn closed(&self, reason: &Closed) -> String {
        self.t.get(match reason {
            Closed::ByMerchant => "closed-by-merchant",
            Closed::Expired => "closed-expired",
            Closed::UsedUp => "closed-used-up",
        })
    }

    /// How many digits the payer got, in a sentence that the template marks the phone up in.
    fn code_sent(&self, length: &u8) -> Around {
        self.t.around_count("code-sent", "phone", u32::from(*length))
    }

    fn attempts_left(&self, attempts: &u8) -> String {
        self.t.count("code-left", u32::from(*attempts))
    }

    fn resend_after(&self, seconds: &u32) -> String {
        self.t.count("resend-after", *seconds)
    }

    /// Where there is something to do; empty while there is time enough, and filled in when there is not.
    fn time_left(&self) -> Option<String> {
        let asks_for_action = matches!(
            self.page.state,
            State::Choose { .. }
                | State::NeedsPhone { .. }
                | State::ApproveOnPhone { .. }
                | State::EnterCode { .. }
                | State::Redirecting { .. }
                | State::NotPaid { .. }
        );
        let left = self.page.time_left.map(|left| moment::left_in_words(left, self.t));
        asks_for_action.then(|| left.unwrap_or_default())
    }

    fn is_whole(&self, refunded: &Option<Refunded>) -> bool {
        is_whole(refunded)
    }

    fn are_paid_back(&self, receipts: &[Receipt]) -> bool {
        are_paid_back(receipts.iter().map(|receipt| &receipt.refunded))
    }

    /// All that the page says is paid.
    fn is_paid_back(&self) -> bool {
        let back = given_back(self.page);
        !back.is_empty() && back.into_iter().all(is_whole)
    }

    /// Only where nothing is with a rail.
    fn can_leave(&self) -> bool {
        self.page.leave.is_some()
            && matches!(self.page.state, State::Choose { .. } | State::NeedsPhone { .. } | State::NotPaid { .. })
    }

    fn name_class(&self) -> &'static str {
        if self.merchant.chars().count() > 28 { "name much" } else { "name" }
    }

    /// The title says the state, and an error first, since it is what a screen reader reads first.
    fn title(&self) -> String {
        let (key, failed) = match &self.page.state {
            State::Choose { methods, problem, .. } => {
                let key = if methods.is_empty() { self.none_title() } else { "title-pay" };
                (key, problem.is_some() || self.has_field_error())
            }
            State::NeedsPhone { error, problem, .. } => ("title-phone", error.is_some() || problem.is_some()),
            State::ApproveOnPhone { problem, .. } => ("approve-title", problem.is_some()),
            State::EnterCode { error, .. } => ("code-title", error.is_some()),
            State::Redirecting { problem, .. } => ("title-pay", problem.is_some()),
            State::Checking { .. } => ("title-checking", false),
            State::Leaving { .. } => ("leaving-title", false),
            State::Paid { .. } if self.is_paid_back() => ("refunded-title", false),
            State::Paid { .. } => ("paid-title", false),
            State::NotPaid { .. } => ("not-paid-title", false),
            State::Draft => ("draft-title", false),
            State::Closed { .. } => ("closed-title", false),
            State::Expired { .. } => ("expired-title", false),
            State::Cancelled { .. } => ("cancelled-title", false),
            State::PaidLate { .. } => ("late-title", false),
            State::AlreadyPaid { .. } => ("already-title", false),
        };
        let said = self.t.get(key);
        let parts = [said.as_str(), &self.amount, &self.merchant];
        let title = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ");
        if failed { self.t.with("title-error", "title", &title) } else { title }
    }

    fn amount_class(&self) -> &'static str {
        amount::class(&self.digits)
    }
}

fn is_whole(refunded: &Option<Refunded>) -> bool {
    refunded.as_ref().is_some_and(|refunded| refunded.is_whole)
}

fn are_paid_back<'p>(mut refunded: impl Iterator<Item = &'p Option<Refunded>>) -> bool {
    refunded.all(is_whole)
}

/// Of each payment that a page calls paid, what was given back since.
fn given_back(page: &PaymentPage) -> Vec<&Option<Refunded>> {
    match (&page.state, &page.subject) {
        (State::Paid { receipt: Some(receipt), .. }, _) => vec![&receipt.refunded],
        (State::Paid { receipt: None, .. }, Subject::Invoice(invoice)) => {
            invoice.payments.iter().map(|payment| &payment.refunded).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether the payer has to wait for the answer about what they began before they pay again.
fn is_told_to_wait(state: &State) -> bool {
    matches!(
        state,
        State::Choose { problem: Some(Problem::InProgress), .. }
            | State::NeedsPhone { problem: Some(Problem::InProgress), .. }
    )
}

/// Nothing that happens later changes what these say, as far as the payer is concerned, unless an attempt is unsettled.
fn is_final(state: &State) -> bool {
    match state {
        // What is given back of it shows whenever somebody looks again.
        State::Paid { .. } | State::Leaving { .. } => true,
        // Money that may come back is waited for.
        State::PaidLate { receipts, kept_apart, .. } => {
            let late = receipts.iter().map(|receipt| &receipt.refunded);
            are_paid_back(late.chain(kept_apart.iter().map(|apart| &apart.refunded)))
        }
        State::AlreadyPaid { second_payments, .. } => {
            are_paid_back(second_payments.iter().map(|apart| &apart.refunded))
        }
        State::Cancelled { kept_apart, .. } if !are_paid_back(kept_apart.iter().map(|apart| &apart.refunded)) => false,
        State::Expired { standing, .. } | State::Cancelled { standing, .. } => *standing == Standing::NothingTaken,
        State::Draft
        | State::Closed { .. }
        | State::Choose { .. }
        | State::NeedsPhone { .. }
        | State::ApproveOnPhone { .. }
        | State::EnterCode { .. }
        | State::Redirecting { .. }
        | State::Checking { .. }
        | State::NotPaid { .. } => false,
    }
}

/// States in which the payer waits for us and types nothing that a fresh page would take away.
fn waits(page: &PaymentPage) -> bool {
    match &page.state {
        State::Choose { methods, .. } => is_told_to_wait(&page.state) && (methods.is_empty() || !fields::asks(page)),
        State::ApproveOnPhone { .. } | State::Redirecting { .. } | State::Checking { .. } => true,
        State::Expired { standing, .. } | State::Cancelled { standing, .. } | State::Closed { standing, .. } => {
            *standing != Standing::NothingTaken
        }
        State::Draft
        | State::NeedsPhone { .. }
        | State::EnterCode { .. }
        | State::Leaving { .. }
        | State::Paid { .. }
        | State::NotPaid { .. }
        | State::PaidLate { .. }
        | State::AlreadyPaid { .. } => false,
    }
}

fn ways_out(page: &PaymentPage) -> (Option<&str>, Option<&str>) {
    let checked = |url: &'_ str| outward(url, page.test_mode).is_some();
    match &page.state {
        State::Redirecting { url, automatic: true, .. } if checked(url) => (Some(url), None),
        State::Leaving { return_url, automatic: true } if checked(return_url) => (Some(return_url), None),
        // Who looks at what was given back is not led away from it.
        State::Paid { .. } if given_back(page).into_iter().any(Option::is_some) => (None, None),
        State::Paid { return_url: Some(url), .. } if checked(url) && !page.unsettled => (None, Some(url)),
        _ => (None, None),
    }
}

/// Five seconds, then half as long again each time, at most a minute.
fn pause_seconds(reads: u32) -> u32 {
    (0..reads.min(8)).fold(5, |pause, _| (pause * 3 / 2).min(60))
}

#[cfg(test)]
mod tests {
    use super::pause_seconds;

    #[test]
    fn the_pauses_grow_to_a_minute() {
        let pauses: Vec<u32> = (0..9).map(pause_seconds).collect();
        assert_eq!(pauses, [5, 7, 10, 15, 22, 33, 49, 60, 60]);
        assert_eq!(pause_seconds(u32::MAX), 60);
    }
}
