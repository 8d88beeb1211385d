//! HTML pages for recipients: in the language of the browser and the colours of the
//! organization, without scripts and external resources, and readable without their style.
//! Handlebars escapes every value on a page.

use std::sync::LazyLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use handlebars::Handlebars;
use poem::http::{HeaderValue, StatusCode, header};
use poem::{IntoResponse, Request, Response};
use poem_openapi::registry::{
    MetaMediaType, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef,
};
use poem_openapi::{ApiResponse, registry::Registry};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use waypost_core::fault::{Fault, FaultKind};
use waypost_core::organization::brand_color::BrandColor;
use waypost_core::unsubscribe::follow::Subscription;

use super::language::Language;
use super::style;
use super::texts::{Notice, PageText, Texts};
use crate::error::{Failure, RETRY_AFTER_SECONDS};
use crate::middleware::rate_limits;

/// The headers of every page. A page is for one recipient: caches must not store it,
/// search engines must not list it, and no other site may see its address.
const HEADERS: [(header::HeaderName, &str); 5] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::VARY, "Accept-Language"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::HeaderName::from_static("x-robots-tag"), "noindex"),
];

/// The name of the template of all pages.
const PAGE: &str = "page";

/// The template of all pages, and the sentences in each language.
static TEMPLATES: LazyLock<Handlebars<'static>> = LazyLock::new(|| {
    let mut templates = Handlebars::new();
    let mut add = |name: &str, source: &str| {
        templates
            .register_template_string(name, source)
            .expect("the pages are valid templates");
    };
    add(PAGE, include_str!("pages/page.hbs"));
    for language in Language::ALL {
        for kind in SubscriptionPage::ALL {
            let page = kind.page(Texts::of(language));
            add(
                &sentence_name(language, kind, true),
                &with_names(page.of_group),
            );
            add(
                &sentence_name(language, kind, false),
                &with_names(page.of_all),
            );
        }
    }
    templates
});

/// The pages about the messages of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubscriptionPage {
    Unsubscribed,
    ConfirmUnsubscribe,
    ConfirmUndo,
    Resubscribed,
    StillSuppressed,
}

/// The pages about a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkPage {
    Valid,
    Invalid,
    /// For a link that leads to a page of the sender.
    InvalidTracked,
    Expired,
}

/// Makes the pages of a request, in its language.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pages {
    language: Language,
}

/// Whose page it is, and what its button does.
#[derive(Debug)]
pub(crate) struct SubscriptionContent {
    pub(crate) subscription: Subscription,
    /// The recipient's address, masked.
    pub(crate) address: String,
    /// The target of the form, relative to the page: a proxy may serve the API under
    /// another path. Without one there is no form.
    pub(crate) action: Option<String>,
}

/// A page with its status.
#[derive(Debug)]
pub(crate) struct HtmlPage {
    status: StatusCode,
    language: Language,
    /// The value of `Retry-After`, in seconds.
    retry_after: Option<u64>,
    style: String,
    html: String,
}

/// What the template shows.
#[derive(Serialize)]
struct PageView<'a> {
    language: &'static str,
    style: &'a str,
    title: &'static str,
    /// HTML, in which names are escaped.
    sentence: String,
    organization: Option<&'a str>,
    your_address: &'static str,
    address: Option<&'a str>,
    form: Option<Form<'a>>,
}

#[derive(Serialize)]
struct Form<'a> {
    action: &'a str,
    question: Option<&'static str>,
    label: &'static str,
    /// Whether the button is not what the page is for.
    is_quiet: bool,
}

/// The names in a sentence.
#[derive(Serialize)]
struct Names<'a> {
    sender: &'a str,
    group: Option<&'a str>,
}

impl SubscriptionPage {
    const ALL: [Self; 5] = [
        Self::Unsubscribed,
        Self::ConfirmUnsubscribe,
        Self::ConfirmUndo,
        Self::Resubscribed,
        Self::StillSuppressed,
    ];

    fn page(self, texts: &'static Texts) -> &'static PageText {
        match self {
            Self::Unsubscribed => &texts.unsubscribed,
            Self::ConfirmUnsubscribe => &texts.confirm_unsubscribe,
            Self::ConfirmUndo => &texts.confirm_undo,
            Self::Resubscribed => &texts.resubscribed,
            Self::StillSuppressed => &texts.still_suppressed,
        }
    }

    fn form<'a>(self, texts: &Texts, action: &'a str) -> Form<'a> {
        let (question, label, is_quiet) = match self {
            Self::Unsubscribed => (Some(texts.was_it_a_mistake), texts.undo, true),
            Self::ConfirmUnsubscribe => (None, texts.unsubscribe, false),
            Self::ConfirmUndo => (None, texts.subscribe_again, false),
            Self::Resubscribed | Self::StillSuppressed => (None, texts.unsubscribe, true),
        };
        Form {
            action,
            question,
            label,
            is_quiet,
        }
    }
}

impl Pages {
    /// The pages in the language that the browser of a request asks for.
    pub(crate) fn of(request: &Request) -> Self {
        let headers = request.headers().get_all(header::ACCEPT_LANGUAGE);
        let values: Vec<&str> = headers
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        Self::in_language(Language::preferred(&values.join(",")))
    }

    pub(crate) fn in_language(language: Language) -> Self {
        Self { language }
    }

    /// A page about the messages of a sender, in the colours of its organization.
    pub(crate) fn subscription(
        self,
        kind: SubscriptionPage,
        content: &SubscriptionContent,
    ) -> HtmlPage {
        let texts = Texts::of(self.language);
        let subscription = &content.subscription;
        let names = Names {
            sender: &subscription.sender,
            group: subscription.group.as_deref(),
        };
        let sentence = sentence_name(self.language, kind, names.group.is_some());
        let sentence = TEMPLATES.render(&sentence, &names);
        let form = content.action.as_deref();
        self.render(
            StatusCode::OK,
            subscription.brand_color,
            PageView {
                language: self.language.as_str(),
                style: "",
                title: kind.page(texts).title,
                sentence: sentence.expect("the sentences can be rendered"),
                organization: Some(&subscription.organization),
                your_address: texts.your_address,
                address: Some(&content.address),
                form: form.map(|action| kind.form(texts, action)),
            },
        )
    }

    /// A page about a link. It says nothing of whom the link is for.
    pub(crate) fn link(self, kind: LinkPage) -> HtmlPage {
        let texts = Texts::of(self.language);
        let (status, notice) = match kind {
            LinkPage::Valid => (StatusCode::OK, &texts.valid),
            LinkPage::Invalid => (StatusCode::BAD_REQUEST, &texts.invalid),
            LinkPage::InvalidTracked => (StatusCode::BAD_REQUEST, &texts.invalid_tracked),
            LinkPage::Expired => (StatusCode::GONE, &texts.expired),
        };
        self.notice(status, notice)
    }

    /// The page for a client that opened too many links that are not valid.
    pub(crate) fn too_many(self, wait: Duration) -> HtmlPage {
        let notice = &Texts::of(self.language).too_many;
        HtmlPage {
            retry_after: Some(rate_limits::whole_seconds(wait).max(1)),
            ..self.notice(StatusCode::TOO_MANY_REQUESTS, notice)
        }
    }

    /// The page for a fault. It shows no details of it.
    pub(crate) fn fault(self, fault: Fault) -> HtmlPage {
        let texts = Texts::of(self.language);
        let (notice, retry_after) = match fault.kind() {
            FaultKind::Unavailable => (&texts.unavailable, Some(RETRY_AFTER_SECONDS.into())),
            FaultKind::Internal => (&texts.failed, None),
        };
        let failure = Failure::from(fault);
        failure.log();
        HtmlPage {
            retry_after,
            ..self.notice(failure.status(), notice)
        }
    }

    fn notice(self, status: StatusCode, notice: &Notice) -> HtmlPage {
        let view = PageView {
            language: self.language.as_str(),
            style: "",
            title: notice.title,
            sentence: notice.text.to_owned(),
            organization: None,
            your_address: "",
            address: None,
            form: None,
        };
        self.render(status, None, view)
    }

    fn render(self, status: StatusCode, color: Option<BrandColor>, view: PageView<'_>) -> HtmlPage {
        let style = style::of(color);
        let view = PageView {
            style: &style,
            ..view
        };
        let html = TEMPLATES.render(PAGE, &view);
        HtmlPage {
            status,
            language: self.language,
            retry_after: None,
            html: html.expect("the pages can be rendered"),
            style,
        }
    }
}

impl HtmlPage {
    /// The page without its headers.
    pub(crate) fn into_html(self) -> String {
        self.html
    }

    /// Allows only the page's own style, by its hash, and forms that post to this server.
    fn policy(&self) -> String {
        let hash = STANDARD.encode(Sha256::digest(&self.style));
        format!(
            "default-src 'none'; style-src 'sha256-{hash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        )
    }
}

fn sentence_name(language: Language, kind: SubscriptionPage, has_group: bool) -> String {
    let group = if has_group { "group" } else { "all" };
    format!("{} {kind:?} {group}", language.as_str())
}

/// A text as a template, in which names are set apart and have their own direction.
fn with_names(text: &str) -> String {
    let text = text.replace("{sender}", "<strong><bdi>{{sender}}</bdi></strong>");
    text.replace("{group}", "<strong><bdi>{{group}}</bdi></strong>")
}

impl IntoResponse for HtmlPage {
    fn into_response(self) -> Response {
        let policy = HeaderValue::from_str(&self.policy()).expect("the policy is visible ASCII");
        let language = HeaderValue::from_static(self.language.as_str());
        let mut response = poem::web::Html(self.html).into_response();
        response.set_status(self.status);
        let headers = response.headers_mut();
        for (name, value) in HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        headers.insert(header::CONTENT_LANGUAGE, language);
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl ApiResponse for HtmlPage {
    fn meta() -> MetaResponses {
        let rows = [
            (
                200,
                "A page that reports what was done, or asks for a confirmation.",
            ),
            (400, "A page: the link is not valid."),
            (410, "A page: the link has expired."),
            (
                429,
                "A page: the client opened too many links that are not valid. Try again after `Retry-After` seconds.",
            ),
            (500, "A page: an unexpected error occurred."),
            (
                503,
                "A page: the service is not available. Try again after `Retry-After` seconds.",
            ),
        ];
        let responses = rows.map(|(status, description)| MetaResponse {
            description,
            status: Some(status),
            status_range: None,
            content: vec![MetaMediaType {
                content_type: "text/html",
                schema: MetaSchemaRef::Inline(Box::new(MetaSchema::new("string"))),
            }],
            headers: vec![],
        });
        MetaResponses {
            responses: responses.into(),
        }
    }

    fn register(_: &mut Registry) {}
}
