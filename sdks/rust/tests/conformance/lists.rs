//! Lists.

use std::collections::HashSet;

use futures_util::TryStreamExt;
use serde_json::json;
use waypost::types::{MessageStatus, SendBatchRequest};
use waypost::{Error, chrono::DateTime, serde_json};

use crate::sending::batch_message;
use crate::support::{Proxied, RUN, always, live};

/// Sends this many messages with a tag, and gives their ids.
async fn add(count: usize, tag: &str) -> Vec<String> {
    let messages = vec![batch_message("ada@example.org", tag); count];
    let sent = live().await.messages().send_batch(&SendBatchRequest::new(messages)).await.unwrap();
    sent.results.into_iter().map(|result| result.message_id.unwrap()).collect()
}

#[tokio::test]
async fn c40_paging_while_rows_are_added() {
    let tag = format!("paging-{}", *RUN);
    let first = add(25, &tag).await;
    let mut messages = live().await.messages().list().tag(&tag).limit(5).stream();
    let mut seen = Vec::new();
    while let Some(message) = messages.try_next().await.unwrap() {
        if seen.len() % 5 == 0 {
            add(3, &tag).await;
        }
        seen.push(message.id);
    }
    let different: HashSet<&String> = seen.iter().collect();
    assert_eq!(different.len(), seen.len(), "a row came twice");
    let missing: Vec<&String> = first.iter().filter(|id| !different.contains(id)).collect();
    assert_eq!(missing, Vec::<&String>::new(), "rows are missing");
}

#[tokio::test]
async fn c41_pages_one_by_one() {
    let tag = format!("pages-{}", *RUN);
    add(3, &tag).await;
    let page = live().await.messages().list().tag(&tag).limit(2).page(1).await.unwrap();
    assert_eq!(page.data.len(), 2);
    assert_eq!(page.pagination.as_ref().unwrap().total, 3);
    let next = page.next().await.unwrap().unwrap();
    assert_eq!(next.data.len(), 1);
    assert!(next.next().await.unwrap().is_none());
    let same = json!([["pagination", "nextCursor"], page.pagination.unwrap().next_cursor]);
    let proxied = Proxied::new(json!([always(json!({ "set": [same] }))])).await;
    let endless: Result<Vec<_>, Error> =
        proxied.client.messages().list().tag(&tag).limit(2).stream().try_collect().await;
    assert!(matches!(endless, Err(Error::Usage(text)) if text.contains("same page twice")));
}

#[tokio::test]
async fn c42_a_short_list_is_a_list_like_the_others() {
    let providers = live().await.providers();
    let page = providers.list().await.unwrap();
    let all: Vec<_> = providers.list().stream().try_collect().await.unwrap();
    assert_eq!(all, page.data);
    assert!(!all.is_empty() && page.pagination.is_none() && page.next().await.unwrap().is_none());
}

#[tokio::test]
async fn c43_filters() {
    let proxied = Proxied::new(json!([])).await;
    let list = proxied.client.messages().list().status([MessageStatus::Bounced, MessageStatus::Failed]);
    list.created_from(DateTime::UNIX_EPOCH).await.unwrap();
    let query = proxied.requests().await[0]["query"].as_str().unwrap().replace("%2C", ",").replace("%3A", ":");
    let mut pairs: Vec<&str> = query.split('&').collect();
    pairs.sort_unstable();
    assert_eq!(pairs, ["createdFrom=1970-01-01T00:00:00Z", "status=BOUNCED,FAILED"]);
}
