//! Authenticated and encrypted data connections (DCAU and PROT of RFC 2228 and GFD.020).
//!
//! This end makes a key with a certificate that it signs itself, valid for one command only, and gives both to the server over
//! the encrypted control connection (`DCSC P`). Each end of a data connection then shows that certificate in a TLS handshake
//! and accepts no other one. So nothing of the user's is delegated.
//!
//! The end that accepts a TCP connection is the server of TLS. With `PROT C`, TLS ends after the handshake: as on the control
//! connection, the accepting end sends one byte in it and the connecting end answers `0`, which delegates nothing; the data
//! then follow in the clear. With `PROT S` and `PROT P` they are TLS records. GridFTP servers encrypt with both.

use crate::control::is_pause;
use crate::error::FtpError;
use crate::signatures::Signatures;
use crate::transfer::{Flow, lost};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Connection, DigitallySignedStruct,
    DistinguishedName as Subject, ServerConfig, ServerConnection, SignatureScheme,
};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::{fmt, io};

/// Bytes of the header of a TLS record (RFC 8446, section 5.1).
const RECORD_HEADER_BYTES: usize = 5;
/// The largest record (RFC 8446, section 5.2).
const RECORD_BYTES_MAX: usize = (16 << 10) + 256;

/// Protection of the bytes of data connections, beyond authentication of both ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Privacy {
    /// They are in the clear (`PROT C`).
    Clear,
    /// Changes are noticed (`PROT S`). Servers encrypt them as well.
    Safe,
    /// They are encrypted (`PROT P`).
    Private,
}

/// The key of the data connections of a command. Clones share it.
#[derive(Clone)]
pub struct Guard(Arc<Keys>);

struct Keys {
    privacy: Privacy,
    /// Certificate, key, and the certificate again as the authority that has signed it, in PEM.
    pem: String,
    accepting: Arc<ServerConfig>,
    connecting: Arc<ClientConfig>,
}

/// The key could not be made.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The certificate could not be made.
    #[error("cannot make a certificate for data connections")]
    Certificate(#[from] rcgen::Error),
    /// TLS does not take it.
    #[error("cannot use the certificate of data connections")]
    Tls(#[from] rustls::Error),
}

impl Guard {
    /// Makes a key.
    ///
    /// # Errors
    /// The cryptographic library's.
    pub fn new(privacy: Privacy) -> Result<Self, GuardError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        // A server sends it as the name of the host that it connects to.
        params.distinguished_name.push(DnType::CommonName, "hikyaku");
        let pair = KeyPair::generate()?;
        let certificate = params.self_signed(&pair)?;
        let pem = [certificate.pem(), pair.serialize_pem(), certificate.pem()].concat();
        let key = || PrivateKeyDer::from(PrivatePkcs8KeyDer::from(pair.serialize_der()));
        let chain = vec![certificate.der().clone()];
        let provider = Arc::new(aws_lc_rs::default_provider());
        let only =
            Arc::new(Only { certificate: chain[0].clone(), signatures: Signatures::of(&provider) });
        // TLS 1.2 has another order of messages at the end of the handshake.
        let versions = &[&rustls::version::TLS13];
        let mut accepting = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)?
            .with_client_cert_verifier(Arc::clone(&only) as Arc<dyn ClientCertVerifier>)
            .with_single_cert(chain.clone(), key())?;
        // A ticket would come where the data begin.
        accepting.send_tls13_tickets = 0;
        let mut connecting = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)?
            .dangerous()
            .with_custom_certificate_verifier(only)
            .with_client_auth_cert(chain, key())?;
        connecting.resumption = rustls::client::Resumption::disabled();
        connecting.enable_sni = false;
        let (accepting, connecting) = (Arc::new(accepting), Arc::new(connecting));
        Ok(Self(Arc::new(Keys { privacy, pem, accepting, connecting })))
    }

    /// The protection of the bytes.
    pub(crate) fn privacy(&self) -> Privacy {
        self.0.privacy
    }

    /// The credential that is sent to the server.
    pub(crate) fn pem(&self) -> &str {
        &self.0.pem
    }

    /// Authenticates a connection that the server has opened. Returns its TLS, if the bytes go through it.
    pub(crate) fn accept(
        &self,
        stream: &mut TcpStream,
        flow: &Flow<'_>,
    ) -> Result<Option<Box<Connection>>, FtpError> {
        let tls =
            ServerConnection::new(Arc::clone(&self.0.accepting)).map_err(FtpError::DataTls)?;
        let mut handshake = Handshake { tls: tls.into(), stream, flow };
        handshake.run()?;
        if self.0.privacy == Privacy::Clear {
            handshake.send(b"0")?;
            handshake.receive_byte()?;
            return Ok(None);
        }
        Ok(Some(Box::new(handshake.tls)))
    }

    /// Authenticates a connection that this end has opened. Returns its TLS, if the bytes go through it.
    pub(crate) fn connect(
        &self,
        stream: &mut TcpStream,
        flow: &Flow<'_>,
    ) -> Result<Option<Box<Connection>>, FtpError> {
        // The name is neither sent nor looked at.
        let name = ServerName::IpAddress(std::net::Ipv4Addr::LOCALHOST.into());
        let tls = ClientConnection::new(Arc::clone(&self.0.connecting), name);
        let tls = tls.map_err(FtpError::DataTls)?;
        let mut handshake = Handshake { tls: tls.into(), stream, flow };
        handshake.run()?;
        if self.0.privacy == Privacy::Clear {
            handshake.receive_byte()?;
            handshake.send(b"0")?;
            return Ok(None);
        }
        Ok(Some(Box::new(handshake.tls)))
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}

/// Accepts one certificate, byte for byte, of an end that has its key.
#[derive(Debug)]
struct Only {
    certificate: CertificateDer<'static>,
    signatures: Signatures,
}

impl Only {
    fn check(&self, shown: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        match *shown == self.certificate {
            true => Ok(()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }
}

/// TLS 1.2 is not offered.
fn no_tls12() -> Result<HandshakeSignatureValid, rustls::Error> {
    Err(rustls::PeerIncompatible::Tls12NotOfferedOrEnabled.into())
}

/// The methods about signatures, which both verifiers have in common.
macro_rules! signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            no_tls12()
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            self.signatures.tls13(message, certificate, signed)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.signatures.schemes()
        }
    };
}

impl ServerCertVerifier for Only {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check(end_entity).map(|()| ServerCertVerified::assertion())
    }

    signatures!();
}

impl ClientCertVerifier for Only {
    fn root_hint_subjects(&self) -> &[Subject] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check(end_entity).map(|()| ClientCertVerified::assertion())
    }

    signatures!();
}

/// A handshake on a connection whose reads and writes pause now and then. It reads record by record, because bytes after the
/// last one need not be TLS.
struct Handshake<'h> {
    tls: Connection,
    stream: &'h mut TcpStream,
    flow: &'h Flow<'h>,
}

impl Handshake<'_> {
    fn run(&mut self) -> Result<(), FtpError> {
        loop {
            self.flush()?;
            if !self.tls.is_handshaking() {
                return Ok(());
            }
            self.read_record()?;
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), FtpError> {
        self.tls.writer().write_all(bytes).map_err(FtpError::Data)?;
        self.flush()
    }

    /// Waits for one byte, whichever it is.
    fn receive_byte(&mut self) -> Result<(), FtpError> {
        loop {
            match self.tls.reader().read(&mut [0]) {
                Ok(1) => return Ok(()),
                Ok(_) => return Err(lost()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.read_record()?,
                Err(error) => return Err(FtpError::Data(error)),
            }
        }
    }

    fn read_record(&mut self) -> Result<(), FtpError> {
        let mut header = [0; RECORD_HEADER_BYTES];
        self.read_exact(&mut header)?;
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        if length > RECORD_BYTES_MAX {
            return Err(FtpError::Lie("sends something else than TLS on a data connection"));
        }
        let mut record = header.to_vec();
        record.resize(RECORD_HEADER_BYTES + length, 0);
        self.read_exact(&mut record[RECORD_HEADER_BYTES..])?;
        let mut rest = record.as_slice();
        while !rest.is_empty() {
            self.tls.read_tls(&mut rest).map_err(FtpError::Data)?;
            if let Err(error) = self.tls.process_new_packets() {
                // Sends the alert with the reason, if the connection is still open.
                let _ = self.flush();
                return Err(FtpError::DataTls(error));
            }
        }
        Ok(())
    }

    fn read_exact(&mut self, bytes: &mut [u8]) -> Result<(), FtpError> {
        let mut have = 0;
        while have < bytes.len() {
            self.check()?;
            match self.stream.read(&mut bytes[have..]) {
                Ok(0) => return Err(lost()),
                Ok(read) => have += read,
                Err(error) if is_pause(error.kind()) => {}
                Err(error) => return Err(FtpError::Data(error)),
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), FtpError> {
        while self.tls.wants_write() {
            self.check()?;
            let written: io::Result<usize> = self.tls.write_tls(self.stream);
            match written {
                Ok(_) => {}
                Err(error) if is_pause(error.kind()) => {}
                Err(error) => return Err(FtpError::Data(error)),
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), FtpError> {
        if self.flow.is_over() { Err(FtpError::Stopped) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
