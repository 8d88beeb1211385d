//! Keys that sign callbacks: a new P-256 key for each SendGrid webhook, HMAC for Mailgun,
//! and one RSA key with its certificate for SNS, generated in each process.

use std::sync::LazyLock;

use aws_lc_rs::digest::{self, SHA1_FOR_LEGACY_USE_ONLY};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use num_bigint::BigUint;
use rcgen::{CertificateParams, PKCS_RSA_SHA256};
use rustls_pki_types::PrivatePkcs8KeyDer;
use sha2::Sha256;

/// The prefix of a SHA-1 `DigestInfo` (RFC 8017 §9.2).
const SHA1_PREFIX: &str = "3021300906052b0e03021a05000414";

static SNS: LazyLock<SnsKey> = LazyLock::new(SnsKey::generate);

/// The certificate that verifies messages of SNS, as PEM.
pub(crate) fn sns_certificate() -> &'static str {
    &SNS.certificate
}

/// The key pair of one SendGrid webhook.
#[derive(Debug)]
pub(crate) struct SendGridKey(EcdsaKeyPair);

impl SendGridKey {
    pub(crate) fn generate() -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING);
        Self(pair.expect("the machine has randomness"))
    }

    /// Base64 of the DER SubjectPublicKeyInfo.
    pub(crate) fn public_key(&self) -> String {
        let der: Result<PublicKeyX509Der<'_>, _> = self.0.public_key().as_der();
        STANDARD.encode(der.expect("a P-256 key has this form").as_ref())
    }

    /// Base64 of the DER signature over the timestamp's text and the body.
    pub(crate) fn sign(&self, timestamp: &str, body: &[u8]) -> String {
        let message = [timestamp.as_bytes(), body].concat();
        let signature = self.0.sign(&SystemRandom::new(), &message);
        STANDARD.encode(signature.expect("a P-256 key signs anything"))
    }
}

/// Mailgun's signature: hexadecimal HMAC over timestamp and token.
pub(crate) fn sign_mailgun(key: &str, timestamp: &str, token: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("any length is fine");
    mac.update(timestamp.as_bytes());
    mac.update(token.as_bytes());
    hex::encode(mac.finalize().into_bytes())
}

/// The signature version of an SNS topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SnsVersion {
    /// RSA with SHA-1, the default of a topic.
    One,
    /// RSA with SHA-256.
    Two,
}

impl SnsVersion {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::One => "1",
            Self::Two => "2",
        }
    }

    /// Base64 of the signature.
    pub(crate) fn sign(self, text: &str) -> String {
        STANDARD.encode(match self {
            Self::One => SNS.sign_sha1(text.as_bytes()),
            Self::Two => SNS.sign_sha256(text.as_bytes()),
        })
    }
}

struct SnsKey {
    pair: RsaKeyPair,
    modulus: BigUint,
    exponent: BigUint,
    certificate: String,
}

impl SnsKey {
    fn generate() -> Self {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).expect("the machine has randomness");
        let pkcs8: Pkcs8V1Der<'_> = pair.as_der().expect("an RSA key has this form");
        let (modulus, exponent) = components(pkcs8.as_ref()).expect("an RSA key has both");
        let signer = PrivatePkcs8KeyDer::from(pkcs8.as_ref());
        let signer = rcgen::KeyPair::from_pkcs8_der_and_sign_algo(&signer, &PKCS_RSA_SHA256)
            .expect("an RSA key signs its certificate");
        let names = vec!["sns.amazonaws.com".to_owned()];
        let certificate = CertificateParams::new(names)
            .and_then(|wanted| wanted.self_signed(&signer))
            .expect("a constant name fits into a certificate");
        Self {
            modulus: BigUint::from_bytes_be(modulus),
            exponent: BigUint::from_bytes_be(exponent),
            certificate: certificate.pem(),
            pair,
        }
    }

    fn sign_sha256(&self, message: &[u8]) -> Vec<u8> {
        let mut signature = vec![0; self.pair.public_modulus_len()];
        self.pair
            .sign(
                &RSA_PKCS1_SHA256,
                &SystemRandom::new(),
                message,
                &mut signature,
            )
            .expect("the buffer has the key's length");
        signature
    }

    /// Computed here, since the library no longer signs with SHA-1. It is much slower,
    /// and not in constant time, which a test key does not need.
    fn sign_sha1(&self, message: &[u8]) -> Vec<u8> {
        let length = self.pair.public_modulus_len();
        let mut info = hex::decode(SHA1_PREFIX).expect("is hexadecimal");
        info.extend_from_slice(digest::digest(&SHA1_FOR_LEGACY_USE_ONLY, message).as_ref());
        let mut encoded = vec![0xff; length];
        (encoded[0], encoded[1]) = (0, 1);
        encoded[length - info.len() - 1] = 0;
        encoded[length - info.len()..].copy_from_slice(&info);
        let power = BigUint::from_bytes_be(&encoded).modpow(&self.exponent, &self.modulus);
        let power = power.to_bytes_be();
        let mut signature = vec![0; length - power.len()];
        signature.extend_from_slice(&power);
        signature
    }
}

/// Modulus and private exponent of a PKCS#8 RSA key.
fn components(pkcs8: &[u8]) -> Option<(&[u8], &[u8])> {
    let (outer, _) = element(pkcs8)?;
    let (_version, rest) = element(outer)?;
    let (_algorithm, rest) = element(rest)?;
    let (key, _) = element(rest)?;
    let (inner, _) = element(key)?;
    let (_version, rest) = element(inner)?;
    let (modulus, rest) = element(rest)?;
    let (_public, rest) = element(rest)?;
    let (exponent, _) = element(rest)?;
    Some((modulus, exponent))
}

/// The content of the first DER element, and what follows it.
fn element(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = der.get(1..)?.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        _ => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let digits = digits.iter();
            let length = digits.fold(0, |sum, &digit| sum << 8 | usize::from(digit));
            (length, rest)
        }
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::sign_mailgun;

    #[test]
    fn a_signature_of_mailgun_is_the_published_one() {
        // rails/rails, actionmailbox/test/controllers/ingresses/mailgun.
        let signature = sign_mailgun(
            "tbsy84uSV1Kt3ZJZELY2TmShPRs91E3yL4tzf96297vBCkDWgL",
            "1539112500",
            "7VwW7k6Ak7zcTwoSoNm7aTtbk1g67MKAnsYLfUB7PdszbgR5Xi",
        );
        let published = "ef24c5225322217bb065b80bb54eb4f9206d764e3e16abab07f0a64d1cf477cc";
        assert_eq!(signature, published);
    }
}
