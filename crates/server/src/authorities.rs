//! Who may vouch for the name of another machine.

use rustls::RootCertStore;

/// What this system trusts; nobody, where it has no such list.
pub(crate) fn of_this_machine() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "certificate authorities of this system could not be read");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    roots
}
