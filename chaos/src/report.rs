//! What a run prints at its end: everything known of what is wrong, the counts, and the
//! one line that says it all.

use std::collections::BTreeMap;

use waypost_simulator::Simulator;

use crate::hooks::Counts;
use crate::load::Answers;
use crate::records;
use crate::say::say;
use crate::tally::{Offence, Tally};
use crate::tenants::Tenant;

/// Of each kind of what is wrong, so many are shown.
const SHOWN_MAX: usize = 3;

/// Says what became of the requests.
pub(crate) fn say_answers(answers: &Answers, deaths: usize) {
    for (why, count) in &answers.repeated {
        say(format!("requests repeated after {why}: {count}"));
    }
    say(format!(
        "answers given again to a repeated request: {}; processes that died: {deaths}",
        answers.replayed,
    ));
    if answers.cut > 0 {
        say(format!(
            "requests that an API's graceful stop left without an answer: {}",
            answers.cut
        ));
    }
    for why in answers.failed.iter().take(SHOWN_MAX) {
        say(format!("a request was not accepted: {why}"));
    }
}

/// Says what is behind the counts of the last line.
pub(crate) fn say_counts(tally: &Tally, simulator: &Simulator, tenants: &[Tenant]) {
    say(format!(
        "copies at the providers: {}; not delivered: {} refused, {} by onUnknown: fail, {} as two answers were lost",
        simulator.captured_count(),
        tally.refused,
        tally.failed_by_policy,
        tally.lost_twice,
    ));
    let callbacks = simulator.callbacks();
    say(format!(
        "events of providers: {} told in {} calls, {} of them twice on purpose, {} given up ({} missed)",
        callbacks.acknowledged,
        callbacks.sent,
        callbacks.duplicated,
        callbacks.given_up,
        tally.untold,
    ));
    let all = tenants.iter().map(|tenant| tenant.hooks.counts());
    let sum = all.fold(Counts::default(), |sum, one| Counts {
        taken: sum.taken + one.taken,
        repeated: sum.repeated + one.repeated,
        refused: sum.refused + one.refused,
        forged: sum.forged + one.forged,
    });
    say(format!(
        "webhooks: {} taken, {} more of them again, {} refused by receivers that failed, {} not rightly signed",
        sum.taken, sum.repeated, sum.refused, sum.forged,
    ));
}

/// Shows the first few of each kind of what is wrong, with all that is known of them.
pub(crate) async fn say_offences(
    database_url: &str,
    tally: &Tally,
    simulator: &Simulator,
    tenants: &[Tenant],
) {
    let mut shown: BTreeMap<String, usize> = BTreeMap::new();
    for one in &tally.wrong {
        let count = shown.entry(one.wrong.to_string()).or_default();
        *count += 1;
        if *count <= SHOWN_MAX {
            say_offence(database_url, one, simulator, tenants).await;
        }
    }
    for (wrong, count) in shown {
        say(format!("{wrong}: {count}"));
    }
}

async fn say_offence(database_url: &str, one: &Offence, simulator: &Simulator, tenants: &[Tenant]) {
    say(format!(
        "{}: {} (organization {}, message {}, position {}, onUnknown: {})",
        one.wrong,
        one.address,
        one.organization,
        one.message_id,
        one.position,
        one.policy.name(),
    ));
    for copy in simulator.captured_to(&one.address) {
        let (provider, id) = (copy.provider.name(), copy.provider_message_id);
        println!("           copy {provider} {id} at {}", copy.accepted_at);
    }
    let told = tenants[one.organization]
        .hooks
        .told(&one.message_id, &one.address);
    println!("           told {}", told.join(" "));
    match records::history(database_url, &one.message_id, one.position).await {
        Ok(lines) => lines.iter().for_each(|line| println!("           {line}")),
        Err(error) => println!("           the tables cannot be read: {error}"),
    }
}
