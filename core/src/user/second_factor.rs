//! The second factor: codes of an authenticator (TOTP, RFC 6238, SHA-1, six digits, 30 seconds),
//! and recovery codes that replace it once each.

use chrono::TimeDelta;
use sha2::{Digest, Sha256};
use totp_rs::{Algorithm, Builder, Totp};

use super::{AccountEmail, UserRefusal};
use crate::clock::Timestamp;
use crate::crypto::seal::{NO_ORGANIZATION, Sealed, Sealer};
use crate::fault::Fault;
use crate::ids::{Ids, UserId};

/// Bytes of a secret: as many as SHA-1 gives, as RFC 4226 recommends.
const SECRET_BYTES: usize = 20;
const DIGITS: u8 = 6;
const STEP: TimeDelta = TimeDelta::seconds(30);
/// Steps before and after the present one whose codes are accepted: clocks differ.
const SKEW_STEPS: u16 = 1;
/// What an authenticator shows beside the account.
const ISSUER: &str = "Waypost";
/// Random bytes of a recovery code: 80 bits.
const RECOVERY_BYTES: usize = 10;
/// Hexadecimal digits between the hyphens of a recovery code.
const RECOVERY_GROUP: usize = 5;

/// The secret that a user's authenticator and Waypost share.
pub(super) struct SecondFactor([u8; SECRET_BYTES]);

/// What an authenticator needs.
#[derive(Debug)]
pub struct Enrolment {
    /// The secret in base 32, to type.
    pub secret: String,
    /// An `otpauth` URI, for a QR code.
    pub uri: String,
}

/// Ten recovery codes, which are shown once.
pub struct RecoveryCodes(pub Vec<String>);

impl SecondFactor {
    pub(super) fn generate(ids: &Ids) -> Self {
        Self(ids.random_bytes())
    }

    pub(super) fn seal(&self, sealer: &Sealer, user_id: UserId) -> Vec<u8> {
        sealer.seal(NO_ORGANIZATION, Sealed::TotpSecret, user_id.0, &self.0)
    }

    pub(super) fn open(sealer: &Sealer, user_id: UserId, sealed: &[u8]) -> Result<Self, Fault> {
        let plain = sealer.open(NO_ORGANIZATION, Sealed::TotpSecret, user_id.0, sealed)?;
        let secret = plain.try_into();
        let secret = secret.map_err(|_| Fault::internal("open a second factor", "wrong length"))?;
        Ok(Self(secret))
    }

    /// The secret for an authenticator.
    pub(super) fn enrolment(&self, email: &AccountEmail) -> Result<Enrolment, UserRefusal> {
        let unusable = |error: totp_rs::TotpError| {
            UserRefusal::Fault(Fault::internal("show a second factor", error.to_string()))
        };
        let builder = self.builder().with_issuer(Some(ISSUER));
        // A colon would end the issuer.
        let totp = builder.with_account_name(email.as_str().replace(':', ""));
        let uri = totp.build().map_err(unusable)?.to_url().map_err(unusable)?;
        let secret = totp_rs::Secret::from(self.0).to_base32();
        Ok(Enrolment { secret, uri })
    }

    /// The time step of a code, if it is right and later than the last accepted one.
    pub(super) fn step_of(
        &self,
        code: &str,
        now: Timestamp,
        last_step: Option<i64>,
    ) -> Option<i64> {
        let seconds = u64::try_from(now.timestamp()).ok()?;
        let code: String = code.chars().filter(|c| !c.is_whitespace()).collect();
        let is_code = code.len() == usize::from(DIGITS) && code.bytes().all(|b| b.is_ascii_digit());
        let step = is_code
            .then(|| self.totp().check(&code, seconds))
            .flatten()?;
        let step = i64::try_from(step).ok()?;
        last_step.is_none_or(|last| step > last).then_some(step)
    }

    fn totp(&self) -> Totp {
        self.builder().build_noncompliant()
    }

    fn builder(&self) -> Builder {
        Builder::new()
            .with_algorithm(Algorithm::SHA1)
            .with_digits(DIGITS)
            .with_skew(SKEW_STEPS)
            .with_step_duration(STEP.num_seconds().unsigned_abs())
            .with_secret(self.0)
    }
}

impl RecoveryCodes {
    /// How many codes a user gets.
    pub const COUNT: usize = 10;

    pub(super) fn generate(ids: &Ids) -> Self {
        let code = || {
            let digits = hex::encode(ids.random_bytes::<RECOVERY_BYTES>());
            let groups = digits.as_bytes().chunks(RECOVERY_GROUP);
            let groups: Vec<String> = groups
                .map(|group| String::from_utf8_lossy(group).into_owned())
                .collect();
            groups.join("-")
        };
        Self((0..Self::COUNT).map(|_| code()).collect())
    }

    pub(super) fn hashes(&self) -> Vec<[u8; 32]> {
        self.0.iter().map(|code| Self::hash(code)).collect()
    }

    /// The hash of a code as somebody types it: hyphens, spaces and case do not count.
    pub(super) fn hash(code: &str) -> [u8; 32] {
        let plain = code.chars().filter(char::is_ascii_alphanumeric);
        let plain: String = plain.collect::<String>().to_ascii_lowercase();
        Sha256::digest(plain.as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::clock::Clock;

    fn at(seconds: i64) -> Timestamp {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    /// The secret of the test values in RFC 6238, appendix B; of the eight digits there an
    /// authenticator with six shows the last.
    const RFC: SecondFactor = SecondFactor(*b"12345678901234567890");

    #[test]
    fn codes_are_those_of_rfc_6238() {
        for (seconds, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
        ] {
            assert_eq!(RFC.step_of(code, at(seconds), None), Some(seconds / 30));
        }
    }

    #[test]
    fn a_code_is_accepted_once_and_one_step_early_or_late() {
        let now = at(1_111_111_111);
        let step = now.timestamp() / 30;
        assert_eq!(RFC.step_of("050 471", now, Some(step - 1)), Some(step));
        assert_eq!(RFC.step_of("050471", now, Some(step)), None);
        let late = now + STEP;
        assert_eq!(RFC.step_of("050471", late, None), Some(step));
        assert_eq!(RFC.step_of("050471", late + STEP, None), None);
        for wrong in ["", "05047", "0504711", "-50471", "o50471", "５"] {
            assert_eq!(RFC.step_of(wrong, now, None), None, "{wrong}");
        }
    }

    #[test]
    fn an_authenticator_can_read_the_uri() {
        let email = AccountEmail::parse("Ada+x@Example.com").unwrap();
        let enrolment = RFC.enrolment(&email).unwrap();
        assert_eq!(enrolment.secret, "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        let uri = url::Url::parse(&enrolment.uri).unwrap();
        assert_eq!((uri.scheme(), uri.host_str()), ("otpauth", Some("totp")));
        let query: Vec<(String, String)> = uri.query_pairs().into_owned().collect();
        assert!(query.contains(&("secret".to_owned(), enrolment.secret)));
        assert!(query.contains(&("issuer".to_owned(), "Waypost".to_owned())));
    }

    #[test]
    fn recovery_codes_are_read_as_people_type_them() {
        let codes = RecoveryCodes::generate(&Ids::new(Clock::system()));
        assert_eq!(codes.0.len(), RecoveryCodes::COUNT);
        let code = &codes.0[0];
        assert_eq!(code.len(), 23, "{code}");
        let typed = format!(" {} ", code.to_uppercase().replace('-', " "));
        assert_eq!(RecoveryCodes::hash(&typed), codes.hashes()[0]);
    }
}
