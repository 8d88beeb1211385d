//! Calls before they are done, and what they give: answers, pages of lists, files.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, TryFutureExt};
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use reqwest::Response;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::generated::errors::Error;
use crate::generated::types::Pagination;
use crate::runtime::http::{Http, Request, usage};

/// A call of an operation: `await` does it. Until then nothing is sent, and the methods say how to do it. To cancel it,
/// drop the future.
#[derive(Debug, Clone)]
#[must_use = "a call does nothing until it is awaited"]
pub struct Call<A, P = ()> {
    http: Arc<Http>,
    request: Request,
    pub(crate) params: P,
    answer: PhantomData<fn() -> A>,
}

impl<A, P> Call<A, P> {
    pub(crate) fn new(http: &Arc<Http>, request: Request, params: P) -> Self {
        Self { http: Arc::clone(http), request, params, answer: PhantomData }
    }

    /// Makes a call that creates something safe to repeat: the same key is done once. Without it each call has its own.
    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        self.header("idempotency-key", key)
    }

    /// How long to wait for the answer to an attempt.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.request.timeout = Some(timeout);
        self
    }

    /// How often to repeat the call if it fails and is safe to repeat.
    pub fn max_retries(mut self, max_retries: u32) -> Self {
        self.request.max_retries = Some(max_retries);
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.request.headers.insert(name.to_ascii_lowercase(), value.into());
        self
    }
}

/// A page of a list.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Page<T> {
    /// The items of this page.
    pub data: Vec<T>,
    /// Where this page is; `None` for a short list, which has one page.
    pub pagination: Option<Pagination>,
    http: Arc<Http>,
    request: Request,
}

impl<T: DeserializeOwned + Send + 'static> Page<T> {
    /// The page after this one; `None` at the end. Rows that are added to the list meanwhile move nothing.
    pub fn next(&self) -> BoxFuture<'static, Result<Option<Self>, Error>> {
        let (http, mut request) = (Arc::clone(&self.http), self.request.clone());
        let cursor = self.pagination.as_ref().and_then(|it| it.next_cursor.clone()).map(|it| ("cursor".to_owned(), it));
        Box::pin(async move {
            let Some(cursor) = cursor else { return Ok(None) };
            if request.query.contains(&cursor) {
                return usage("The service gave the same page twice. Does a proxy store its answers?");
            }
            request.query.retain(|(name, _)| name != "page" && name != "cursor");
            request.query.push(cursor);
            Self::ask(http, request).await.map(Some)
        })
    }
}

impl<T: DeserializeOwned + Send + 'static, P: Serialize> Call<Page<T>, P> {
    /// All items of the list. The pages are asked for one after the other, as the items are taken.
    pub fn stream(self) -> BoxStream<'static, Result<T, Error>> {
        let first = self.into_future().map_ok(Some).boxed();
        let pages = stream::try_unfold(first, |page| async move {
            let Some(page) = page.await? else { return Ok::<_, Error>(None) };
            let next = page.next();
            Ok(Some((stream::iter(page.data).map(Ok), next)))
        });
        pages.try_flatten().boxed()
    }
}

/// A file, as it comes.
#[derive(Debug)]
#[non_exhaustive]
pub struct Download {
    /// The answer, with its headers. Its `chunk` reads a large file piece by piece.
    pub response: Response,
    http: Arc<Http>,
}

impl Download {
    /// The whole file.
    pub async fn bytes(self) -> Result<Vec<u8>, Error> {
        self.response.bytes().await.map(Vec::from).map_err(|error| self.http.broken(&error))
    }
}

impl<A: Answer, P: Serialize> IntoFuture for Call<A, P> {
    type Output = Result<A, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(mut self) -> Self::IntoFuture {
        let params = serde_json::to_value(&self.params).unwrap_or_default();
        let params = params.as_object().into_iter().flatten();
        self.request.query = params.map(|(name, value)| (name.clone(), text(value))).collect();
        Box::pin(A::ask(self.http, self.request))
    }
}

/// What a call can give.
pub trait Answer: Sized + Send + 'static {
    #[doc(hidden)]
    fn ask(http: Arc<Http>, request: Request) -> impl Future<Output = Result<Self, Error>> + Send;
}

impl<T: DeserializeOwned + Send + 'static> Answer for T {
    async fn ask(http: Arc<Http>, request: Request) -> Result<Self, Error> {
        if request.data { Ok(http.json::<Body<T>>(&request).await?.data) } else { http.json(&request).await }
    }
}

impl<T: DeserializeOwned + Send + 'static> Answer for Page<T> {
    async fn ask(http: Arc<Http>, request: Request) -> Result<Self, Error> {
        let Body { data, pagination } = http.json(&request).await?;
        Ok(Self { data, pagination, http, request })
    }
}

impl Answer for Download {
    async fn ask(http: Arc<Http>, request: Request) -> Result<Self, Error> {
        let (response, _) = http.send(&request, true).await?;
        Ok(Self { http, response })
    }
}

#[derive(Deserialize)]
struct Body<T> {
    data: T,
    pagination: Option<Pagination>,
}

/// A parameter as a query has it: a list as `a,b`.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(","),
        value => value.to_string(),
    }
}
