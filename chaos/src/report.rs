//! The output at the end of a run: all rows about what is wrong, the counts, and the
//! summary line.

use std::collections::BTreeMap;

use waypost_simulator::Simulator;

use crate::load::LoadResult;
use crate::output::progress;
use crate::receiver::Counts;
use crate::records;
use crate::tenants::Tenant;
use crate::verification::{Verification, Violation};

/// Violations of each kind that are printed in detail.
const SHOWN_MAX: usize = 3;

/// Prints the results of the requests.
pub(crate) fn print_load(results: &LoadResult, exits: usize) {
    for (why, count) in &results.repeated {
        progress(format!("requests repeated after {why}: {count}"));
    }
    progress(format!(
        "responses replayed for a repeated request: {}; processes that ended: {exits}",
        results.replayed,
    ));
    if results.cut_by_stop > 0 {
        progress(format!(
            "requests that an API's graceful stop left without a response: {}",
            results.cut_by_stop
        ));
    }
    for why in results.failed.iter().take(SHOWN_MAX) {
        progress(format!("a request was not accepted: {why}"));
    }
}

/// Prints the counts behind the summary line.
pub(crate) fn print_counts(verification: &Verification, simulator: &Simulator, tenants: &[Tenant]) {
    progress(format!(
        "recipients at the providers: {}; not delivered: {} cancelled, {} rejected, {} by onUnknown: fail, {} because two responses were lost",
        simulator.captured_count(),
        verification.cancelled,
        verification.rejected,
        verification.failed_by_policy,
        verification.lost_twice,
    ));
    let callbacks = simulator.callbacks();
    progress(format!(
        "provider events: {} reported in {} calls, {} of them twice on purpose, {} given up ({} missing)",
        callbacks.acknowledged,
        callbacks.sent,
        callbacks.duplicated,
        callbacks.given_up,
        verification.given_up_by_sns,
    ));
    let all = tenants.iter().map(|tenant| tenant.receiver.counts());
    let sum = all.fold(Counts::default(), |sum, one| Counts {
        accepted: sum.accepted + one.accepted,
        repeated: sum.repeated + one.repeated,
        rejected: sum.rejected + one.rejected,
        unsigned: sum.unsigned + one.unsigned,
    });
    progress(format!(
        "webhooks: {} received, {} more of them repeated, {} rejected by failing receivers, {} without a valid signature",
        sum.accepted, sum.repeated, sum.rejected, sum.unsigned,
    ));
}

/// Prints the first violations of each kind, with all rows about them.
pub(crate) async fn print_violations(
    database_url: &str,
    verification: &Verification,
    simulator: &Simulator,
    tenants: &[Tenant],
) {
    let mut shown: BTreeMap<String, usize> = BTreeMap::new();
    for one in &verification.violations {
        let count = shown.entry(one.kind.to_string()).or_default();
        *count += 1;
        if *count <= SHOWN_MAX {
            print_violation(database_url, one, simulator, tenants).await;
        }
    }
    for (kind, count) in shown {
        progress(format!("{kind}: {count}"));
    }
}

async fn print_violation(
    database_url: &str,
    one: &Violation,
    simulator: &Simulator,
    tenants: &[Tenant],
) {
    progress(format!(
        "{}: {} (organization {}, message {}, position {}, onUnknown: {})",
        one.kind,
        one.address,
        one.organization,
        one.message_id,
        one.position,
        one.policy.name(),
    ));
    for recipient in simulator.captured_to(&one.address) {
        let (provider, id) = (recipient.provider.name(), recipient.provider_message_id);
        println!(
            "           accepted by {provider} as {id} at {}",
            recipient.accepted_at
        );
    }
    let events = tenants[one.organization]
        .receiver
        .events(&one.message_id, &one.address);
    println!("           webhooks {}", events.join(" "));
    match records::history(database_url, &one.message_id, one.position).await {
        Ok(lines) => lines.iter().for_each(|line| println!("           {line}")),
        Err(error) => println!("           the tables cannot be read: {error}"),
    }
}
