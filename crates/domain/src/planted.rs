//! Defects on purpose, so that a check that finds nothing can be seen to find something.
//!
//! Product code asks `planted!(Defect::…)` where a defect would sit: a constant `false` without the feature `planted`,
//! and with it the one that `plant` chose for this process. No build for use can hold one.

#[cfg(all(feature = "planted", not(debug_assertions)))]
compile_error!("a build with planted defects is for tests: it needs debug assertions");

macro_rules! defects {
    ($($(#[$meaning:meta])* $variant:ident => $name:literal,)*) => {
        /// What can be wrong, one at a time.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Defect {
            $($(#[$meaning])* $variant,)*
        }

        impl Defect {
            pub const ALL: &[Defect] = &[$(Defect::$variant,)*];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Defect::$variant => $name,)*
                }
            }
        }
    };
}

defects! {
    /// A checkout can still be paid in the very microsecond in which it expires.
    CheckoutExpiryInclusive => "checkout_expiry_inclusive",
    /// What earlier refunds took is forgotten when the next one is asked for.
    RefundBoundForgotten => "refund_bound_forgotten",
    /// A checkout expires although the provider has an attempt of it.
    CheckoutHoldForgotten => "checkout_hold_forgotten",
    /// A checkout expires in the middle of a second, and prints another time.
    CheckoutExpiryNotWhole => "checkout_expiry_not_whole",
    /// Money that came twice is credited as if it were only late.
    SecondMoneyIsLate => "second_money_is_late",
    /// A cancelled checkout can still be paid.
    CancelledCheckoutPayable => "cancelled_checkout_payable",
    /// The sequence of a checkout's events has gaps.
    CheckoutEventSkipped => "checkout_event_skipped",
    /// A checkout goes on showing the attempt of before.
    CheckoutAttemptHidden => "checkout_attempt_hidden",
    /// A session can be used in the very microsecond in which it expires.
    SessionExpiryInclusive => "session_expiry_inclusive",
    /// While the provider has an attempt, another one begins.
    ProcessingSessionReplaced => "processing_session_replaced",
    /// Another method goes on with the session of the first.
    OtherMethodKept => "other_method_kept",
    /// The provider reports another amount, and it counts as paid.
    WrongAmountTaken => "wrong_amount_taken",
    /// The provider reports the right number in another currency, and it counts as paid.
    WrongCurrencyTaken => "wrong_currency_taken",
    /// A lost answer hides what the provider said of the attempt meanwhile.
    LostAnswerHidesWord => "lost_answer_hides_word",
    /// A word that overtakes a call answers the request in its place.
    WordAnswersForCall => "word_answers_for_call",
    /// What the provider said before it had the code lets the payer type another one beside it.
    OldWordReopens => "old_word_reopens",
    /// What was closed before anybody called its provider is handed over all the same.
    StartedForNobody => "started_for_nobody",
    /// An answer clears what a person has to look at.
    ParkedIsClearedByAnswer => "parked_is_cleared_by_answer",
    /// An answer that was lost is taken for a no.
    LostStartFails => "lost_start_fails",
    /// Money that comes after a failure is dropped.
    CorrectionIgnored => "correction_ignored",
    /// A wrong code costs no try.
    CodeTriesForgotten => "code_tries_forgotten",
    /// A payer who comes back counts as one who has paid.
    ReturnIsProof => "return_is_proof",
    /// What a person has to look at is cleared by a question.
    ParkedIsCleared => "parked_is_cleared",
    /// A session that was closed fails once more when its attempt does.
    LateOutcomeReopens => "late_outcome_reopens",
    /// A lost answer is not shown as unknown.
    UnknownNotShown => "unknown_not_shown",
    /// What a failed refund held is never released.
    FailedRefundKeepsHold => "failed_refund_keeps_hold",
    /// A refund of a part counts as one of all.
    PartIsWhole => "part_is_whole",
    /// A refund without an amount asks for the whole payment, whatever is left.
    RefundDefaultIsWhole => "refund_default_is_whole",
    /// The provider pays another amount back, and it counts.
    RefundWrongAmountTaken => "refund_wrong_amount_taken",
    /// The provider pays the right number back in another currency, and it counts.
    RefundWrongCurrencyTaken => "refund_wrong_currency_taken",
    /// A refund whose answer was lost is taken for failed, and its money is free again.
    LostRefundFails => "lost_refund_fails",
    /// A refund that went through after all stays failed.
    RefundCorrectionIgnored => "refund_correction_ignored",
    /// An invoice is overdue one microsecond too late.
    OverdueInclusive => "overdue_inclusive",
    /// A payment is recorded beside one that the provider may confirm.
    HeldPaymentForgotten => "held_payment_forgotten",
    /// A change that is based on an older revision overwrites the newer one.
    StaleVersionTaken => "stale_version_taken",
    /// A change does not count the revision.
    RevisionStands => "revision_stands",
    /// An overdue invoice can be changed.
    OverdueUpdatable => "overdue_updatable",
    /// Parts of an invoice are taken where the merchant wants none.
    PartsNotAsked => "parts_not_asked",
    /// An invoice whose due date has passed is overdue as soon as it is changed.
    GraceForgotten => "grace_forgotten",
    /// An invoice is cancelled while the provider has an attempt of it.
    CancelWhileProcessing => "cancel_while_processing",
    /// Of a cancelled invoice all money that comes is the first.
    LateMoneyNotCounted => "late_money_not_counted",
    /// Tax is rounded down.
    TaxRoundedDown => "tax_rounded_down",
    /// A fee is not taken.
    FeeForgotten => "fee_forgotten",
    /// A link can be paid in the very microsecond in which it expires.
    LinkExpiryInclusive => "link_expiry_inclusive",
    /// Attempts whose outcome is open have no place in a link's limit.
    LinkRoomIgnored => "link_room_ignored",
    /// A link that is used up stays active.
    LinkStaysActive => "link_stays_active",
    /// A payment of an inactive link is not counted.
    LinkUseNotCounted => "link_use_not_counted",
    /// An expired link becomes active again.
    ExpiredLinkReactivated => "expired_link_reactivated",
    /// The merchant is credited with the fee as well.
    FeeToMerchant => "fee_to_merchant",
    /// Second money is credited to the merchant.
    SecondMoneyCredited => "second_money_credited",
    /// Second money shows the fee that would have been taken of the first.
    SecondMoneyShowsFee => "second_money_shows_fee",
    /// Second money is paid back out of the merchant's balance.
    RefundOfSecondMoneyFromMerchant => "refund_of_second_money_from_merchant",
    /// A corrected refund is posted as if it had been held.
    CorrectionFromPending => "correction_from_pending",
    /// A delivery is given up after its first failure.
    GivenUpEarly => "given_up_early",
    /// A checkout is cancelled without its event.
    CancelUntold => "cancel_untold",
    /// The session of a cancelled checkout stays open.
    CancelKeepsSession => "cancel_keeps_session",
    /// An older attempt's word comes when a checkout's time is over, and the session that was open last stays so.
    ExpiryKeepsSession => "expiry_keeps_session",
    /// A checkout expires without its event.
    ExpiryUntold => "expiry_untold",
    /// Nobody watches a checkout's expiry.
    TimerForgotten => "timer_forgotten",
    /// Late money is not in the ledger.
    LateMoneyNotPosted => "late_money_not_posted",
    /// What is paid does not tell that it is.
    CompletionUntold => "completion_untold",
    /// A payment tells twice that it succeeded.
    SuccessToldTwice => "success_told_twice",
    /// When money arrives, another session for the same money stays open.
    RivalStaysOpen => "rival_stays_open",
    /// An attempt fails without its event.
    FailureUntold => "failure_untold",
    /// The rail is not asked again.
    QuestionForgotten => "question_forgotten",
    /// A request's answer is not stored in its transaction.
    AnswerNotKept => "answer_not_kept",
    /// A refusal is not stored under its key.
    RefusalNotKept => "refusal_not_kept",
    /// A key's answer comes from running once more.
    KeylessAnswers => "keyless_answers",
    /// A refund that was asked for is never handed to its rail.
    RefundNotSent => "refund_not_sent",
    /// A refund takes more than the merchant has.
    BalanceUnchecked => "balance_unchecked",
    /// A completed refund is not in the ledger.
    RefundNotPosted => "refund_not_posted",
    /// A refund ends without its event.
    RefundUntold => "refund_untold",
    /// A refund whose answer was never stored is sent again to who would pay twice.
    RefundSentAgain => "refund_sent_again",
    /// An attempt whose answer was never stored is ordered again from who would charge twice.
    ChargedAgain => "charged_again",
    /// The answer of a payment is never stored under its key.
    KeyStaysRunning => "key_stays_running",
    /// The open session of an invoice goes on for the amount of before.
    UpdateKeepsSession => "update_keeps_session",
    /// Nobody watches an invoice's overdue moment.
    OverdueForgotten => "overdue_forgotten",
    /// A recorded payment leaves the session for the whole amount open.
    RecordingKeepsSession => "recording_keeps_session",
    /// Of a failed payment nobody is told.
    DeliveryNotOwed => "delivery_not_owed",
    /// A number is given out twice.
    NumberReused => "number_reused",
    /// Both modes count in one series.
    NumberOfOtherMode => "number_of_other_mode",
    /// Another request with the same key gets the first one's answer.
    FingerprintIgnored => "fingerprint_ignored",
    /// A key is forgotten when it moves from memory to its run.
    RunsNotSearched => "runs_not_searched",
    /// Both modes share their idempotency keys.
    KeysOfAllModes => "keys_of_all_modes",
    /// A job that was done is owed for ever.
    JobNeverDone => "job_never_done",
    /// A job whose time moved while it was held stays held.
    LeaseNeverReleased => "lease_never_released",
    /// A job that somebody took and died with is never taken again.
    LeaseNeverEnds => "lease_never_ends",
    /// On PostgreSQL a job is due one microsecond too late.
    DueLateOnPostgres => "due_late_on_postgres",
    /// A job that failed is not owed any more.
    FailedJobForgotten => "failed_job_forgotten",
    /// An event is sent before the one of the same object that comes first.
    DeliveredOutOfOrder => "delivered_out_of_order",
    /// What waits behind an event of its object is never sent.
    NextNotCalled => "next_not_called",
    /// The log of events has gaps.
    LogSkipsPlaces => "log_skips_places",
    /// A list holds what belongs to the other mode.
    ListOfAllModes => "list_of_all_modes",
    /// A list holds what belongs to somebody else.
    ListOfAllOrganizations => "list_of_all_organizations",
    /// A list of checkouts of one status forgets its other filters.
    FilterDropped => "filter_dropped",
    /// An object of another organization is found.
    OrganizationIgnored => "organization_ignored",
    /// An object of another organization can be changed.
    ChangeOfAllOrganizations => "change_of_all_organizations",
    /// An object of the other mode is found.
    ModeIgnored => "mode_ignored",
    /// What a refused command wrote is kept.
    SavepointKept => "savepoint_kept",
    /// SQLite syncs its log before a checkpoint only, as is often advised.
    SynchronousNormal => "synchronous_normal",
    /// SQLite never syncs.
    SynchronousOff => "synchronous_off",
    /// Writes are answered before they are committed.
    AnswerBeforeCommit => "answer_before_commit",
    /// Each request takes a kibibyte of memory and never gives it back.
    RequestKeepsMemory => "request_keeps_memory",
    /// What a command changes was read before its transaction, and is saved whoever has saved it meanwhile.
    VersionUnguarded => "version_unguarded",
    /// Who only looks is shown an object as it was a moment ago.
    StaleRead => "stale_read",
    /// The key of a command that only adds is stored in a transaction of its own.
    KeyOutsideTransaction => "key_outside_transaction",
    /// A request says itself in which mode it is.
    LivemodeTaken => "livemode_taken",
    /// Whoever reads the log reads every request.
    RequestLogged => "request_logged",
    /// The answer of a receiver is read to its end, wherever that is.
    AnswerUncapped => "answer_uncapped",
    /// A client's own word about its address is believed.
    ForwardedBelieved => "forwarded_believed",
    /// Connections end with the listener, before what was accepted is answered.
    ListenerDroppedFirst => "listener_dropped_first",
    /// Where a name leads is looked at when it is saved, and not when it is called.
    RegistrationCheckOnly => "registration_check_only",
    /// After a disk was full nothing is written any more.
    LatchStaysReadOnly => "latch_stays_read_only",
    /// The body of a request may be as long as it likes.
    BodyUncapped => "body_uncapped",
    /// Whoever sends a request's headers slowly is waited for.
    NoHeaderTimer => "no_header_timer",
    /// A cursor that is none breaks its request.
    CursorBreaks => "cursor_breaks",
    /// What outsiders wrote stands on a page as they wrote it.
    PageUnescaped => "page_unescaped",
    /// A form is taken wherever its browser says that it came from.
    ForeignFormTaken => "foreign_form_taken",
    /// A text is read whatever its checksum says.
    ChecksumIgnored => "checksum_ignored",
    /// The rail keeps what nobody has a use for.
    NothingWithdrawn => "nothing_withdrawn",
}

impl Defect {
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|defect| defect.as_str() == text)
    }
}

#[cfg(feature = "planted")]
mod chosen {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Defect;

    /// One above its place in the list; 0 is none.
    static CHOSEN: AtomicUsize = AtomicUsize::new(0);

    /// Chooses the defect of this process.
    pub fn plant(defect: Option<Defect>) {
        CHOSEN.store(defect.map_or(0, |defect| defect as usize + 1), Ordering::Relaxed);
    }

    pub fn is_planted(defect: Defect) -> bool {
        CHOSEN.load(Ordering::Relaxed) == defect as usize + 1
    }
}

#[cfg(feature = "planted")]
pub use chosen::{is_planted, plant};

/// Never: this build has no defects on purpose.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub const fn is_planted(_: Defect) -> bool {
    false
}

/// Whether this defect is the one that was planted.
#[macro_export]
macro_rules! planted {
    (Defect::$variant:ident) => {
        $crate::planted::is_planted($crate::planted::Defect::$variant)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_defect_has_a_name_of_its_own() {
        for (place, defect) in Defect::ALL.iter().enumerate() {
            assert_eq!(*defect as usize, place);
            assert_eq!(Defect::parse(defect.as_str()), Some(*defect));
        }
    }

    #[test]
    #[cfg(not(feature = "planted"))]
    fn nothing_is_planted_without_the_feature() {
        assert!(Defect::ALL.iter().all(|defect| !is_planted(*defect)));
    }
}
