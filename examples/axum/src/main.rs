//! A shop that welcomes its users by mail, and learns by webhooks what became of the mail.

use std::collections::{HashMap, HashSet};
use std::env;
use std::error::Error;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;
use waypost::types::{SendMessageRequest, WebhookEvent};
use waypost::{Waypost, webhooks};

struct Shop {
    waypost: Waypost,
    webhook_secret: String,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    users: HashMap<String, User>,
    webhooks_seen: HashSet<String>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct User {
    id: String,
    email: String,
    email_status: &'static str,
}

#[derive(Deserialize)]
struct SignUp {
    name: String,
    email: String,
}

type Refusal = (StatusCode, Json<Value>);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let shop = Shop {
        waypost: Waypost::from_env()?, // WAYPOST_URL and WAYPOST_API_KEY
        webhook_secret: env::var("WAYPOST_WEBHOOK_SECRET")?,
        memory: Mutex::default(),
    };
    let app = Router::new()
        .route("/sign-up", post(sign_up))
        .route("/users/{id}", get(user))
        .route("/webhooks/waypost", post(webhook))
        .with_state(Arc::new(shop));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", env::var("PORT")?.parse()?)).await?;
    Ok(axum::serve(listener, app).await?)
}

async fn sign_up(
    State(shop): State<Arc<Shop>>,
    Json(form): Json<SignUp>,
) -> Result<(StatusCode, Json<User>), Refusal> {
    let id = Uuid::new_v4().to_string();
    let user = User {
        id: id.clone(),
        email: form.email,
        email_status: "sent",
    };
    // Before the mail is sent: the webhook may be faster than the answer.
    shop.memory
        .lock()
        .unwrap()
        .users
        .insert(id.clone(), user.clone());
    let mail = SendMessageRequest::new(&user.email)
        .from("Shop <welcome@example.com>")
        .subject(format!("Welcome, {}", form.name))
        .text(format!("Hello {}, it is good to have you.", form.name));
    match shop
        .waypost
        .messages()
        .send(&mail)
        .idempotency_key(format!("welcome-{id}"))
        .await
    {
        Ok(_) => Ok((StatusCode::CREATED, Json(user))),
        Err(error) => {
            shop.memory.lock().unwrap().users.remove(&id);
            Err(match error {
                waypost::Error::Validation(answer) => {
                    refuse(StatusCode::UNPROCESSABLE_ENTITY, &answer.message)
                }
                error => refuse(StatusCode::BAD_GATEWAY, &error.to_string()),
            })
        }
    }
}

async fn webhook(
    State(shop): State<Arc<Shop>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    let event = webhooks::verify(&body, &headers, [&shop.webhook_secret])
        .map_err(|error| refuse(StatusCode::BAD_REQUEST, &error.to_string()))?;
    let (email, status) = match event {
        WebhookEvent::Delivered(event) => (event.data.recipient, "delivered"),
        WebhookEvent::Bounced(event) => (event.data.recipient, "bounced"),
        WebhookEvent::Complained(event) => (event.data.recipient, "complained"),
        _ => return Ok(StatusCode::NO_CONTENT),
    };
    let delivery = headers
        .get("webhook-id")
        .and_then(|id| id.to_str().ok())
        .unwrap_or_default();
    let mut memory = shop.memory.lock().unwrap();
    if memory.webhooks_seen.insert(delivery.to_owned()) {
        let users = memory.users.values_mut();
        for user in users.filter(|user| user.email.eq_ignore_ascii_case(&email)) {
            user.email_status = status;
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

async fn user(
    State(shop): State<Arc<Shop>>,
    Path(id): Path<String>,
) -> Result<Json<User>, StatusCode> {
    shop.memory
        .lock()
        .unwrap()
        .users
        .get(&id)
        .cloned()
        .map(Json)
        .ok_or(StatusCode::NOT_FOUND)
}

fn refuse(status: StatusCode, error: &str) -> Refusal {
    (status, Json(json!({ "error": error })))
}
