//! What is taken away to see that its absence is found.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Rows are locked, and read again, before anything is decided by them and written.
    FreshRows,
    /// A rail that takes a second call for another order is not called again.
    OneCall,
    /// No to a second call says nothing of the first.
    SecondNo,
    /// Nor does no to a call that somebody else's may have come before.
    OthersCall,
    /// While one attempt is open no other begins.
    OpenSession,
    /// Whoever ends what is paid asks the rail to drop what it has of it.
    Withdrawal,
}
