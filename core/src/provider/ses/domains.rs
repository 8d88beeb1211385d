//! The identities of an SES account in one region, and the DNS records of those that are
//! domains. Identities that are single addresses are left out: they are no sender domains
//! (an account with only those shows none).
//!
//! SES throttles all calls except sends to about one per second, so the details may be
//! incomplete: the remaining domains then have their states from the list and no records.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::{SesApi, error_name, error_text, is_access_denied};
use crate::provider::call::{CallStep, ProviderReply};
use crate::provider::domain::{
    DOMAIN_DETAILS_MAX, DOMAINS_MAX, DnsPurpose, DnsRecord, DnsRecordType, DnsStatus, DomainList,
    DomainState, FoundDomain, add_domain,
};
use crate::provider::outcome::unusable_reply;

/// The page size of the identity list: the allowed maximum (MODEL).
const PAGE: usize = 1_000;
/// The most pages read: addresses fill pages too.
const PAGES_MAX: usize = 10;
/// The zone of the DKIM keys if the record names none (MODEL, DkimAttributes).
const DKIM_ZONE: &str = "dkim.amazonses.com";
/// Every character except those that stay unencoded in a path segment or a query value
/// (RFC 3986 "unreserved"), as the signature requires.
pub(super) const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

pub(super) fn list(api: SesApi) -> CallStep<DomainList> {
    list_page(api, None, PAGES_MAX, Vec::new())
}

fn list_page(
    api: SesApi,
    token: Option<String>,
    pages_left: usize,
    mut found: Vec<FoundDomain>,
) -> CallStep<DomainList> {
    let mut query = format!("PageSize={PAGE}");
    if let Some(token) = token {
        query.push_str(&format!(
            "&NextToken={}",
            utf8_percent_encode(&token, RESERVED)
        ));
    }
    let url = api.base.query("/v2/email/identities", &query);
    api.clone().get(url, move |reply| {
        let document = reply.json().unwrap_or_default();
        let Some(page) = document["EmailIdentities"].as_array() else {
            return CallStep::Done(no_list(&reply, &document));
        };
        for identity in page {
            if found.len() < DOMAINS_MAX && identity["IdentityType"] == "DOMAIN" {
                let name = identity["IdentityName"].as_str().unwrap_or_default();
                let domain = FoundDomain {
                    domain: name.to_owned(),
                    state: read_state(identity["VerificationStatus"].as_str()),
                    dns_records: Vec::new(),
                };
                add_domain(&mut found, domain);
            }
        }
        let next = document["NextToken"]
            .as_str()
            .filter(|token| !token.is_empty());
        match next {
            Some(next) if pages_left > 1 && found.len() < DOMAINS_MAX => {
                list_page(api, Some(next.to_owned()), pages_left - 1, found)
            }
            _ => read_details(api, 0, found),
        }
    })
}

fn no_list(reply: &ProviderReply, document: &Value) -> DomainList {
    let text = error_text(reply, document);
    match error_name(reply, document) {
        Some(name) if is_access_denied(&name) => {
            DomainList::not_visible(reply, "the key may not list identities")
        }
        Some(name) => DomainList::undecided(reply, &format!("{name}: {text}")),
        None => DomainList::undecided(reply, unusable_reply(reply).unwrap_or("not a reply of SES")),
    }
}

/// Reads the record of one domain after the other; the first failure ends it.
fn read_details(api: SesApi, index: usize, mut found: Vec<FoundDomain>) -> CallStep<DomainList> {
    let Some(domain) = found.get(index).filter(|_| index < DOMAIN_DETAILS_MAX) else {
        return CallStep::Done(DomainList::Visible(found));
    };
    let encoded = utf8_percent_encode(&domain.domain, RESERVED);
    let url = api.base.at(&format!("/v2/email/identities/{encoded}"));
    api.clone().get(url, move |reply| {
        let record = reply.json().filter(|_| reply.status == 200);
        let Some(record) = record else {
            return CallStep::Done(DomainList::Visible(found));
        };
        let domain = &mut found[index];
        domain.dns_records = read_records(&record, &domain.domain, &api.region);
        read_details(api, index + 1, found)
    })
}

/// A domain from its identity record.
pub(super) fn read_identity(identity: &Value, domain: &str, region: &str) -> FoundDomain {
    FoundDomain {
        domain: domain.to_owned(),
        state: read_state(identity["VerificationStatus"].as_str()),
        dns_records: read_records(identity, domain, region),
    }
}

/// `TEMPORARY_FAILURE` means that SES cannot tell now.
fn read_state(status: Option<&str>) -> DomainState {
    match status {
        Some("SUCCESS") => DomainState::Verified,
        Some("PENDING" | "FAILED" | "NOT_STARTED") => DomainState::Unverified,
        _ => DomainState::Unknown,
    }
}

fn read_status(status: Option<&str>) -> DnsStatus {
    match status {
        Some("SUCCESS") => DnsStatus::Verified,
        Some("FAILED") => DnsStatus::Failed,
        _ => DnsStatus::Pending,
    }
}

fn read_records(identity: &Value, domain: &str, region: &str) -> Vec<DnsRecord> {
    let mut records = dkim_records(&identity["DkimAttributes"], domain);
    records.extend(mail_from_records(&identity["MailFromAttributes"], region));
    records
}

/// One CNAME per token. With the customer's own key (`EXTERNAL`) the tokens are selectors,
/// and SES does not know the record's value.
fn dkim_records(dkim: &Value, domain: &str) -> Vec<DnsRecord> {
    if dkim["SigningAttributesOrigin"] == "EXTERNAL" {
        return Vec::new();
    }
    let zone = dkim["SigningHostedZone"].as_str().unwrap_or(DKIM_ZONE);
    let tokens = dkim["Tokens"].as_array();
    let tokens = tokens.into_iter().flatten().filter_map(Value::as_str);
    tokens
        .map(|token| DnsRecord {
            record_type: DnsRecordType::Cname,
            name: format!("{token}._domainkey.{domain}"),
            value: format!("{token}.{zone}"),
            priority: None,
            purpose: DnsPurpose::Dkim,
            status: read_status(dkim["Status"].as_str()),
        })
        .collect()
}

/// Exactly one MX and one SPF record on the MAIL FROM domain, if there is one (DG
/// mail-from.md).
fn mail_from_records(mail_from: &Value, region: &str) -> Vec<DnsRecord> {
    let name = mail_from["MailFromDomain"].as_str().unwrap_or_default();
    if name.is_empty() {
        return Vec::new();
    }
    let status = read_status(mail_from["MailFromDomainStatus"].as_str());
    let exchanger = DnsRecord {
        record_type: DnsRecordType::Mx,
        name: name.to_owned(),
        value: format!("feedback-smtp.{region}.amazonses.com"),
        priority: Some(10),
        purpose: DnsPurpose::ReturnPath,
        status,
    };
    let policy = DnsRecord {
        record_type: DnsRecordType::Txt,
        value: "v=spf1 include:amazonses.com ~all".to_owned(),
        priority: None,
        purpose: DnsPurpose::Spf,
        ..exchanger.clone()
    };
    vec![exchanger, policy]
}
