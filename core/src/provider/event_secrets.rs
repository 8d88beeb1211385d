//! What an account's provider is recognised by when it calls us: never shown,
//! sealed like credentials.

use serde::{Deserialize, Serialize};

use crate::secret::Secret;

/// What is needed to verify the events of one account.
#[derive(Debug, Clone)]
pub enum EventSecrets {
    /// SendGrid: the key that its signatures are checked with.
    Sendgrid {
        /// Base64 of the DER SubjectPublicKeyInfo of a P-256 key.
        public_key: String,
    },
    /// Postmark signs nothing: a user name and a password that we made up.
    Postmark {
        /// The user name of HTTP Basic.
        username: String,
        /// Its password.
        password: Secret,
    },
    /// Mailgun: the account-wide webhook signing key.
    Mailgun {
        /// The key of its HMAC.
        signing_key: Secret,
    },
    /// SES: anyone may subscribe our URL to a topic of theirs, so only messages of
    /// this one count.
    Ses {
        /// The ARN of the SNS topic that the configuration set publishes to.
        topic_arn: TopicArn,
    },
}

/// The ARN of an SNS topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicArn(String);

impl TopicArn {
    /// Reads `arn:aws(-cn|-us-gov)?:sns:<region>:<12 digits>:<name>`, the name 1 to
    /// 256 of `A-Za-z0-9_-` (SNS CreateTopic); topics of the FIFO kind cannot post
    /// to HTTPS.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let [arn, partition, service, region, account, name] = parts[..] else {
            return None;
        };
        let region_fits = super::credentials::SesRegion::parse(region).is_some();
        let account_fits = account.len() == 12 && account.bytes().all(|b| b.is_ascii_digit());
        let name_fits = (1..=256).contains(&name.len())
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        let fits = arn == "arn"
            && matches!(partition, "aws" | "aws-cn" | "aws-us-gov")
            && service == "sns"
            && region_fits
            && account_fits
            && name_fits;
        fits.then(|| Self(text.to_owned()))
    }

    /// The ARN.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_arns_of_standard_topics_are_read() {
        let good = "arn:aws:sns:eu-west-1:123456789012:ses-events";
        assert_eq!(TopicArn::parse(good).unwrap().as_str(), good);
        for bad in [
            "",
            "arn:aws:sns:eu-west-1:123456789012:ses.fifo",
            "arn:aws:sqs:eu-west-1:123456789012:ses",
            "arn:aws:sns:eu-west-1:12345678901:ses",
            "arn:aws:sns:evil/:123456789012:ses",
            "arn:aws:sns:eu-west-1:123456789012:ses:5ef1f0c1",
        ] {
            assert_eq!(TopicArn::parse(bad), None, "{bad}");
        }
    }
}
