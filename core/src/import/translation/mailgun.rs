//! Mailgun's stored templates: Handlebars with the helper `equal`.

use super::Finder;
use super::expression::TagWord;
use super::handlebars::{self, Dialect, loosely_equal};

/// What Mailgun replaces in the finished mail.
const REPLACED: [(&str, &str); 5] = [
    (
        "%recipient",
        "Mailgun puts a variable of the recipient there; write it as {{name}} and send it as a variable",
    ),
    (
        "%unsubscribe_url%",
        "Mailgun puts its unsubscribe link there; write {{unsubscribeUrl}} and send with an unsubscribe group",
    ),
    (
        "%tag_unsubscribe_url%",
        "Mailgun puts a link to unsubscribe from a tag there; write {{unsubscribeUrl}} and send with an unsubscribe group",
    ),
    (
        "%mailing_list_unsubscribe_url%",
        "Waypost has no mailing lists; write {{unsubscribeUrl}} and send with an unsubscribe group",
    ),
    (
        "%unsubscribe_email%",
        "Waypost takes no mail to unsubscribe",
    ),
];

struct MailgunDialect;

pub(super) fn translate(finder: &mut Finder<'_>) -> String {
    finder.refuse_texts(&REPLACED);
    handlebars::translate(finder, &MailgunDialect)
}

impl Dialect for MailgunDialect {
    fn call(&self, name: &str, values: &[TagWord]) -> Option<Result<TagWord, String>> {
        match (name, values) {
            ("equal", [left, right]) => Some(loosely_equal(left, right).ok_or_else(|| {
                "equal of two variables compares them as texts, which Waypost's eq does not"
                    .to_owned()
            })),
            ("equal", _) => Some(Err("equal takes two values".to_owned())),
            _ => None,
        }
    }
}
