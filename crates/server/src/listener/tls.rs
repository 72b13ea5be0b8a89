//! TLS from a certificate and a key in PEM files. Certificates are the operator's: none is made or renewed here.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Why TLS can't start, as a sentence for the operator.
#[derive(Debug)]
pub struct TlsFault {
    sentence: String,
    /// What the file system said, where it was that.
    pub io: Option<io::ErrorKind>,
}

impl TlsFault {
    fn new(sentence: String) -> Self {
        Self { sentence, io: None }
    }

    fn unreadable(path: &Path, error: &pem::Error) -> Self {
        let io = match error {
            pem::Error::Io(error) => Some(error.kind()),
            _ => None,
        };
        Self { sentence: format!("{} can't be read as PEM: {error}", path.display()), io }
    }
}

impl fmt::Display for TlsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for TlsFault {}

/// TLS 1.3 and 1.2, HTTP/2 preferred.
pub fn tls_config(certificates: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsFault> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect)
        .map_err(|error| TlsFault::unreadable(certificates, &error))?;
    if chain.is_empty() {
        return Err(TlsFault::new(format!("{} holds no certificate", certificates.display())));
    }
    let key_bytes = PrivateKeyDer::from_pem_file(key).map_err(|error| TlsFault::unreadable(key, &error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsFault::new(format!("TLS can't be set up: {error}")))?
        .with_no_client_auth()
        .with_single_cert(chain, key_bytes)
        .map_err(|error| {
            TlsFault::new(format!(
                "certificate {} and key {} don't fit: {error}",
                certificates.display(),
                key.display()
            ))
        })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
