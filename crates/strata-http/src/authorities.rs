//! The certificate authorities that a client trusts.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Certificate authorities beside the public ones.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Authorities(Vec<CertificateDer<'static>>);

impl Authorities {
    /// The certificates of a PEM file. The error says what is wrong with it.
    pub fn from_pem(pem: &[u8]) -> Result<Self, String> {
        let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.map_err(|error| error.to_string())?;
        if certificates.is_empty() {
            return Err("it has no certificate".to_owned());
        }
        for certificate in &certificates {
            RootCertStore::empty().add(certificate.clone()).map_err(|error| error.to_string())?;
        }
        Ok(Self(certificates))
    }

    /// The TLS settings of a client that trusts them and the public authorities.
    pub(crate) fn client_config(&self) -> ClientConfig {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        // `from_pem` has seen that each can be added.
        roots.add_parsable_certificates(self.0.iter().cloned());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = [&rustls::version::TLS13, &rustls::version::TLS12];
        let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(&versions);
        #[allow(clippy::expect_used, reason = "the provider has both versions, whatever the settings are")]
        let config = config.expect("ring has TLS 1.2 and 1.3");
        config.with_root_certificates(roots).with_no_client_auth()
    }
}

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} certificates", self.0.len())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_certificate_is_refused() {
        let check = |pem: &str, expected: &str| {
            let error = Authorities::from_pem(pem.as_bytes()).unwrap_err();
            assert!(error.contains(expected), "{pem}: {error}");
        };
        check("", "no certificate");
        check("not a certificate", "no certificate");
        check("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "");
        check("-----BEGIN CERTIFICATE-----\nAAAA\n", "");
    }

    #[test]
    fn the_public_authorities_stay() {
        assert_eq!(Authorities::default().client_config().alpn_protocols, Vec::<Vec<u8>>::new());
        assert!(webpki_roots::TLS_SERVER_ROOTS.len() > 50);
    }
}
