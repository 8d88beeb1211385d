//! The routes of the API, and the order of the middleware around them.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use poem::endpoint::make_sync;
use poem::middleware::CatchPanic;
use poem::web::{Data, Json, Redirect};
use poem::{Endpoint, EndpointExt, IntoResponse, Response, Route, get, handler};
use serde_json::{Value, json};
use waypost_core::fault::Fault;
use waypost_core::ids::Ids;

use crate::compat;
use crate::context::Context;
use crate::dashboard::{self, Dashboard};
use crate::error::Failure;
use crate::middleware::measure::{self, MeasuredOperations};
use crate::middleware::methods::{self, Methods};
use crate::middleware::unknown_fields::{self, KnownFields};
use crate::middleware::{availability, rate_limits, request_id};
use crate::openapi::{self, ApiService};
use crate::request::memory;
use crate::served::{ASK_EACH_TIME, ServedAs, ServedFile};

/// The whole API as one endpoint. The last `around` is the outermost.
pub(crate) fn routes(context: &Arc<Context>, ids: Ids) -> impl Endpoint<Output = Response> + use<> {
    let service = openapi::service(context);
    let derived = DERIVED.get_or_init(|| Derived::of(&service));
    let methods = Arc::clone(&derived.methods);
    let known = Arc::clone(&derived.known);
    let operations = Arc::clone(&derived.operations);
    let dashboard = Arc::new(Dashboard::new(&context.accounts.public_url));
    Route::new()
        .at("/healthz", get(healthz))
        .at("/readyz", get(readyz))
        .at(
            "/openapi.json",
            get(make_sync(move |request| derived.document.respond(&request))),
        )
        .at(
            "/docs",
            get(make_sync(move |request| derived.page.respond(&request))),
        )
        // Relative, because a proxy may serve the API under another path.
        .at("/docs/", get(make_sync(|_| Redirect::see_other("../docs"))))
        .nest_no_strip(compat::BASE, compat::routes())
        .nest("/", service)
        .with(CatchPanic::new().with_handler(panicked))
        .around(availability::wrap)
        .around(memory::wrap)
        // As one type, all layers and handlers nest deeper than the compiler goes.
        .boxed()
        .around(move |next, request| dashboard::wrap(next, request, Arc::clone(&dashboard)))
        .around(move |next, request| unknown_fields::wrap(next, request, Arc::clone(&known)))
        .around(rate_limits::wrap)
        .around(compat::wrap)
        // Without a box here, the type is nested too deeply for an optimized build.
        .boxed()
        .data(Arc::clone(context))
        .around(move |next, request| request_id::wrap(next, request, ids.clone()))
        .around(move |next, request| methods::wrap(next, request, Arc::clone(&methods)))
        .around(move |next, request| measure::wrap(next, request, Arc::clone(&operations)))
}

/// What the API derives from its document, which is the same for every configuration. A
/// process derives it once: it takes 0.8 s without optimization, and the tests start many
/// APIs in one process.
static DERIVED: OnceLock<Derived> = OnceLock::new();

struct Derived {
    methods: Arc<Methods>,
    known: Arc<KnownFields>,
    operations: Arc<MeasuredOperations>,
    document: ServedFile,
    page: ServedFile,
}

impl Derived {
    fn of(service: &ApiService) -> Self {
        let document = openapi::document(service);
        let served = with_compat(&document);
        let for_page = document.clone();
        Self {
            methods: Arc::new(Methods::of(&served)),
            known: Arc::new(KnownFields::of(&served)),
            operations: Arc::new(MeasuredOperations::of(&served)),
            document: ServedFile::new(
                ServedAs {
                    content_type: "application/json",
                    caching: ASK_EACH_TIME,
                    headers: &[],
                },
                Box::new(move || document.to_string().into_bytes()),
            ),
            page: ServedFile::new(
                ServedAs {
                    content_type: "text/html; charset=utf-8",
                    caching: ASK_EACH_TIME,
                    headers: openapi::PAGE_HEADERS,
                },
                Box::new(move || openapi::page(&for_page).into_bytes()),
            ),
        }
    }
}

/// The document with the paths of other vendors' operations, which are not in it.
fn with_compat(document: &Value) -> Value {
    let mut served = document.clone();
    if let Some(paths) = served["paths"].as_object_mut() {
        paths.extend(compat::paths());
    }
    served
}

/// Reports that the process runs. It does not depend on Postgres or Redis.
#[handler]
fn healthz() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// Reports whether Postgres and Redis answer and the schema is current; 503 if not.
#[handler]
async fn readyz(context: Data<&Arc<Context>>) -> Response {
    let (status, body) = context.accept.readiness.ask().await;
    Json(body).with_status(status).into_response()
}

/// The response if a handler panicked. The panic itself is logged by the panic hook.
fn panicked(_payload: Box<dyn Any + Send>) -> Response {
    Failure::Fault(Fault::internal("serve a request", "the handler panicked")).into_response()
}
