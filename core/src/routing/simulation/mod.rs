//! What the messages of a past period would have done under given rules.
//!
//! They are routed again in the order in which they were accepted, by the accounts as they are
//! now. Caps count as they do when messages are sent, by hours and days of UTC, and begin with
//! the period. Nothing is sent and nothing is counted.

pub mod store;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use tokio::sync::Semaphore;

use super::conditions::MessageClass;
use super::mailbox_provider::MailboxProvider;
use super::rule::{self, RoutingRule, RuleRefusal, RuleTerms, wire_words};
use super::snapshot_cache::SnapshotCache;
use super::target_usage::UsageWindow;
use super::targets::{Draw, OverCap, Target, TargetSequences};
use super::{RouteRefusal, RoutingRequest, RoutingSnapshot, candidates, resolve};
use crate::address::EmailAddress;
use crate::clock::{Clock, Timestamp};
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;
use crate::ids::{Ids, MessageId, OrganizationId, ProviderAccountId, RoutingRuleId};

/// The most messages that are looked at. Of a period with more, every second, third … is.
pub const MESSAGES_MAX: u64 = 100_000;
/// Messages read by one statement.
const PAGE: u32 = 5_000;
const HOURS_A_DAY: i64 = 24;

/// How far back messages are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimulationPeriod {
    Hour,
    Day,
    Week,
}

wire_words!(SimulationPeriod: Hour = "hour", Day = "day", Week = "week");

impl SimulationPeriod {
    fn length(self) -> TimeDelta {
        match self {
            Self::Hour => TimeDelta::hours(1),
            Self::Day => TimeDelta::days(1),
            Self::Week => TimeDelta::days(7),
        }
    }
}

/// A message of the period.
#[derive(Debug, Clone)]
pub struct PastMessage {
    pub id: MessageId,
    pub accepted_at: Timestamp,
    pub sender: EmailAddress,
    pub tags: Vec<String>,
    pub recipients: u32,
    /// Each domain once, that of the first recipient first; `None` if they were not recorded,
    /// or no rule looks at them.
    pub recipient_domains: Option<Vec<String>>,
    pub class: MessageClass,
    /// `None` if no rule looks at it.
    pub size_bytes: Option<u64>,
    /// The account that it went through, or was to.
    pub account_id: ProviderAccountId,
    /// Whether no other account could have it.
    pub is_pinned: bool,
}

/// What became of the messages. If only a part of them was looked at, the counts are those of
/// the part, multiplied.
#[derive(Debug)]
pub struct SimulationResult {
    pub from: Timestamp,
    pub to: Timestamp,
    pub messages: u64,
    pub recipients: u64,
    /// One of so many messages was looked at.
    pub sampled_one_in: u32,
    pub accounts: HashMap<ProviderAccountId, AccountCount>,
    /// The rules in the order in which they are checked.
    pub rules: Vec<RuleCount>,
    /// Messages that no rule matched, and those that named their account.
    pub without_rule: u64,
    /// Messages that no account accepts.
    pub no_active_provider: u64,
    pub domain_not_verified: u64,
    /// Recipients that were still waiting for a cap when sending would have been given up.
    pub unsent: u64,
}

/// The recipients of an account.
#[derive(Debug, Default, Clone, Copy)]
pub struct AccountCount {
    /// In the simulation.
    pub recipients: u64,
    /// In fact.
    pub actual: u64,
}

/// What a rule decided.
#[derive(Debug)]
pub struct RuleCount {
    pub rule: RoutingRule,
    pub messages: u64,
    pub recipients: u64,
    /// As in the rule.
    pub targets: Vec<TargetCount>,
}

/// What a target got.
#[derive(Debug, Clone, Copy)]
pub struct TargetCount {
    pub account_id: ProviderAccountId,
    pub recipients: u64,
    /// Recipients for whom its hourly cap was reached.
    pub over_hourly_cap: u64,
    /// Recipients for whom its daily cap was reached.
    pub over_daily_cap: u64,
    /// Recipients that waited for a later hour, and were sent through it.
    pub waited: u64,
}

/// Routes past messages. Cheap to clone.
#[derive(Clone)]
pub struct Simulator {
    pool: PgPool,
    snapshots: SnapshotCache,
    clock: Clock,
    ids: Ids,
    /// How long sending is tried.
    retry_horizon: Duration,
    /// One at a time in a process: each takes a processor for seconds.
    permit: Arc<Semaphore>,
}

impl Simulator {
    /// Simulates with the accounts of `snapshots`; mail waits for caps as long as
    /// `retry_horizon`.
    #[must_use]
    pub fn new(
        pool: PgPool,
        snapshots: SnapshotCache,
        clock: Clock,
        ids: Ids,
        retry_horizon: Duration,
    ) -> Self {
        Self {
            pool,
            snapshots,
            clock,
            ids,
            retry_horizon,
            permit: Arc::new(Semaphore::new(1)),
        }
    }

    /// Routes the live messages of a period by these rules, or by those of the organization.
    ///
    /// # Errors
    /// Why a rule could not be created, with its index.
    pub async fn simulate(
        &self,
        organization_id: OrganizationId,
        rules: Option<Vec<RuleTerms>>,
        period: SimulationPeriod,
    ) -> Result<SimulationResult, (usize, RuleRefusal)> {
        let doing = "simulate routing rules";
        if let Some(terms) = &rules {
            let mut connection = self
                .pool
                .acquire()
                .await
                .or_fault(doing)
                .map_err(at_start)?;
            for (index, terms) in terms.iter().enumerate() {
                let sealer = self.snapshots.sealer();
                let checked = rule::check(&mut connection, sealer, organization_id, terms).await;
                checked.map_err(|refusal| (index, refusal))?;
            }
        }
        let snapshot = self
            .snapshots
            .reload(organization_id)
            .await
            .map_err(at_start)?;
        let mut snapshot = RoutingSnapshot::clone(&snapshot);
        if let Some(terms) = rules {
            snapshot.rules = self.as_rules(organization_id, terms);
            snapshot.read_regions(organization_id, self.snapshots.sealer());
        }
        // Never closed.
        let _permit = self.permit.acquire().await;
        let to = self.clock.now();
        let from = to - period.length();
        let wait_hours = self.retry_horizon.as_secs() / 3_600;
        let wait_hours = i64::try_from(wait_hours).unwrap_or(i64::MAX);
        let mut simulation = Simulation::new(snapshot, (from, to), wait_hours);
        self.run(organization_id, &mut simulation)
            .await
            .map_err(at_start)?;
        Ok(simulation.result)
    }

    /// The rules in the order in which they are checked.
    fn as_rules(&self, organization_id: OrganizationId, terms: Vec<RuleTerms>) -> Vec<RoutingRule> {
        let now = self.clock.now();
        let rules = terms.into_iter().map(|terms| RoutingRule {
            id: self.ids.next_at(now),
            organization_id,
            terms,
            created_at: now,
            updated_at: now,
        });
        let mut rules: Vec<RoutingRule> = rules.collect();
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.terms.priority));
        rules
    }

    async fn run(
        &self,
        organization_id: OrganizationId,
        simulation: &mut Simulation,
    ) -> Result<(), Fault> {
        let doing = "read the messages of a period";
        let mut page = store::PeriodPage {
            organization_id,
            after: None,
            from: simulation.result.from,
            to: simulation.result.to,
            one_in: 1,
            size: PAGE,
            looks_at_recipients: simulation.looks_at_recipients(),
            looks_at_size: simulation.snapshot.looks_at_size(),
        };
        let count = db::bounded(doing, async {
            let mut connection = self.pool.acquire().await.or_fault(doing)?;
            store::count(&mut connection, &page).await
        });
        let one_in = count.await?.div_ceil(MESSAGES_MAX).max(1);
        page.one_in = u32::try_from(one_in).unwrap_or(u32::MAX);
        simulation.result.sampled_one_in = page.one_in;
        loop {
            let messages = db::bounded(doing, async {
                let mut connection = self.pool.acquire().await.or_fault(doing)?;
                store::messages(&mut connection, &page).await
            });
            let messages = messages.await?;
            let providers = self.mailbox_providers(simulation, &messages.found).await?;
            for message in &messages.found {
                simulation.send(message, &providers);
            }
            match messages.next {
                Some(after) => page.after = Some(after),
                None => return Ok(()),
            }
            // A page takes milliseconds to route.
            tokio::task::yield_now().await;
        }
    }

    /// Who takes the mail of the recipients of messages, as far as that is known.
    async fn mailbox_providers(
        &self,
        simulation: &Simulation,
        messages: &[PastMessage],
    ) -> Result<HashMap<String, MailboxProvider>, Fault> {
        if !simulation.snapshot.looks_at_mailbox_providers() {
            return Ok(HashMap::new());
        }
        let domains = messages
            .iter()
            .filter_map(|one| one.recipient_domains.as_ref());
        let mut domains: Vec<String> = domains.flatten().cloned().collect();
        domains.sort();
        domains.dedup();
        self.snapshots.mailbox_providers().read(&domains).await
    }
}

fn at_start(fault: Fault) -> (usize, RuleRefusal) {
    (0, RuleRefusal::Fault(fault))
}

/// A simulation under way.
struct Simulation {
    snapshot: RoutingSnapshot,
    sequences: TargetSequences,
    /// The places of each rule in the result.
    rule_indexes: HashMap<RoutingRuleId, usize>,
    usage: HashMap<(RoutingRuleId, ProviderAccountId), TargetLoad>,
    /// How many hours sending is tried.
    wait_hours: i64,
    result: SimulationResult,
}

impl Simulation {
    fn new(snapshot: RoutingSnapshot, (from, to): (Timestamp, Timestamp), wait_hours: i64) -> Self {
        let rules: Vec<RuleCount> = snapshot.rules.iter().cloned().map(RuleCount::new).collect();
        let indexes = rules.iter().enumerate();
        Self {
            rule_indexes: indexes
                .map(|(index, count)| (count.rule.id, index))
                .collect(),
            snapshot,
            sequences: TargetSequences::default(),
            usage: HashMap::new(),
            wait_hours,
            result: SimulationResult {
                from,
                to,
                messages: 0,
                recipients: 0,
                sampled_one_in: 1,
                accounts: HashMap::new(),
                rules,
                without_rule: 0,
                no_active_provider: 0,
                domain_not_verified: 0,
                unsent: 0,
            },
        }
    }

    fn looks_at_recipients(&self) -> bool {
        let mut rules = self.snapshot.rules.iter();
        rules.any(|rule| rule.terms.looks_at_recipients())
    }

    /// Routes a message, and lets the accounts send it.
    fn send(&mut self, message: &PastMessage, providers: &HashMap<String, MailboxProvider>) {
        let times = u64::from(self.result.sampled_one_in);
        let recipients = u64::from(message.recipients) * times;
        self.result.messages += times;
        self.result.recipients += recipients;
        let account = self.result.accounts.entry(message.account_id);
        account.or_default().actual += recipients;
        if message.is_pinned {
            self.result.without_rule += times;
            return self.count(message.account_id, None, recipients);
        }
        let domains = message.recipient_domains.as_ref();
        let domain = |index: usize| domains?.get(index).map(String::as_str);
        let request = RoutingRequest {
            sender: &message.sender,
            tags: message.tags.iter().map(String::as_str).collect(),
            recipients: domains.is_some().then_some(&domain),
            mailbox_providers: &|domain| {
                let own = MailboxProvider::of_own_domain(domain);
                own.or_else(|| providers.get(domain).copied())
            },
            class: Some(message.class),
            size_bytes: message.size_bytes,
            is_test: false,
            draw: Draw::Next(&self.sequences),
        };
        let route = match resolve(&self.snapshot, &request) {
            Ok(route) => route,
            Err(RouteRefusal::NoActiveProvider | RouteRefusal::NoneInRegion(_)) => {
                self.result.no_active_provider += times;
                return;
            }
            Err(RouteRefusal::DomainNotVerified(_)) => {
                self.result.domain_not_verified += times;
                return;
            }
        };
        let index = route.rule_id.and_then(|id| self.rule_indexes.get(&id));
        let Some((index, rule)) =
            index.and_then(|index| Some((*index, self.snapshot.rules.get(*index)?)))
        else {
            self.result.without_rule += times;
            self.count(route.account_id, None, recipients);
            return;
        };
        let accounts = match rule.terms.targets.iter().any(Target::is_capped) {
            true => candidates(&self.snapshot, route.account_id, Some(rule), &request),
            false => vec![route.account_id],
        };
        if let Some(count) = self.result.rules.get_mut(index) {
            count.messages += times;
            count.recipients += recipients;
        }
        let hour = hour_of(message.accepted_at);
        self.place(index, &accounts, hour, recipients);
    }

    /// Gives recipients to the accounts of a rule, in order, as far as their caps go.
    fn place(&mut self, index: usize, accounts: &[ProviderAccountId], hour: i64, recipients: u64) {
        let Some(rule) = self.result.rules.get(index).map(|count| count.rule.clone()) else {
            return;
        };
        let mut left = recipients;
        for account in accounts {
            let mut targets = rule.terms.targets.iter();
            let target = targets.find(|target| target.account_id == *account);
            let Some(target) = target.filter(|target| target.is_capped()) else {
                return self.count(*account, Some(index), left);
            };
            let usage = self.usage.entry((rule.id, *account)).or_default();
            let (taken, reached) = usage.take(target, hour, left);
            self.count(*account, Some(index), taken);
            left -= taken;
            let Some(window) = reached.filter(|_| left > 0) else {
                return;
            };
            if let Some(count) = self.target_count(index, *account) {
                match window {
                    UsageWindow::Hour => count.over_hourly_cap += left,
                    UsageWindow::Day => count.over_daily_cap += left,
                }
            }
            if rule.terms.over_cap == OverCap::Wait {
                return self.wait(index, &[*target], hour, left);
            }
        }
        let named = rule.terms.targets.iter();
        let named = named.filter(|target| accounts.contains(&target.account_id));
        let named: Vec<Target> = named.copied().collect();
        self.wait(index, &named, hour, left);
    }

    /// Gives recipients to the first of these targets that has room again.
    fn wait(&mut self, index: usize, targets: &[Target], hour: i64, recipients: u64) {
        let Some(rule_id) = self.result.rules.get(index).map(|count| count.rule.id) else {
            return;
        };
        let mut left = recipients;
        for later in hour + 1..=hour.saturating_add(self.wait_hours) {
            for target in targets {
                let usage = self.usage.entry((rule_id, target.account_id)).or_default();
                let (taken, _) = usage.take(target, later, left);
                if taken == 0 {
                    continue;
                }
                left -= taken;
                self.count(target.account_id, Some(index), taken);
                if let Some(count) = self.target_count(index, target.account_id) {
                    count.waited += taken;
                }
            }
            if left == 0 {
                return;
            }
        }
        self.result.unsent += left;
    }

    fn count(&mut self, account: ProviderAccountId, rule: Option<usize>, recipients: u64) {
        self.result.accounts.entry(account).or_default().recipients += recipients;
        if let Some(count) = rule.and_then(|index| self.target_count(index, account)) {
            count.recipients += recipients;
        }
    }

    fn target_count(
        &mut self,
        rule: usize,
        account: ProviderAccountId,
    ) -> Option<&mut TargetCount> {
        let mut targets = self.result.rules.get_mut(rule)?.targets.iter_mut();
        targets.find(|target| target.account_id == account)
    }
}

impl RuleCount {
    fn new(rule: RoutingRule) -> Self {
        let targets = rule.terms.targets.iter();
        let targets = targets.map(|target| TargetCount {
            account_id: target.account_id,
            recipients: 0,
            over_hourly_cap: 0,
            over_daily_cap: 0,
            waited: 0,
        });
        Self {
            targets: targets.collect(),
            rule,
            messages: 0,
            recipients: 0,
        }
    }
}

/// The recipients that a target had in each hour and on each day, by their numbers since 1970.
#[derive(Default)]
struct TargetLoad {
    hours: HashMap<i64, u64>,
    days: HashMap<i64, u64>,
}

impl TargetLoad {
    /// Takes places of an hour, up to so many. Says which cap is reached if there are fewer.
    fn take(&mut self, target: &Target, hour: i64, wanted: u64) -> (u64, Option<UsageWindow>) {
        let day = hour.div_euclid(HOURS_A_DAY);
        let (in_hour, on_day) = (
            self.hours.entry(hour).or_default(),
            self.days.entry(day).or_default(),
        );
        let room = |window: UsageWindow, used: u64| match window.cap(target) {
            Some(cap) => u64::from(cap).saturating_sub(used),
            None => u64::MAX,
        };
        let hourly = room(UsageWindow::Hour, *in_hour);
        let daily = room(UsageWindow::Day, *on_day);
        let taken = wanted.min(hourly).min(daily);
        *in_hour += taken;
        *on_day += taken;
        let reached = match hourly < daily {
            true => UsageWindow::Hour,
            false => UsageWindow::Day,
        };
        (taken, (taken < wanted).then_some(reached))
    }
}

fn hour_of(time: Timestamp) -> i64 {
    time.timestamp().div_euclid(3_600)
}
