//! `GET /v1/suppressions/export`: all suppressions, as lines of JSON. Pages are read from
//! Postgres while the client takes the ones before, so nothing is held in memory.

use std::io;
use std::sync::Arc;

use futures_util::stream;
use poem::Body;
use poem_openapi::payload::Binary;
use poem_openapi::types::ToJSON;
use poem_openapi::{ApiResponse, OpenApi};
use waypost_core::ids::{OrganizationId, SuppressionId, UnsubscribeGroupId};
use waypost_core::suppression::export::PAGE_SIZE;
use waypost_core::suppression::store::SuppressionFilter;
use waypost_core::suppression::{Suppression, SuppressionSource};

use crate::context::Context;
use crate::error::Failure;
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::query::Query;
use crate::v1::Section;
use crate::v1::suppressions::SuppressionView;
use crate::validate::Validated;

pub(crate) struct SuppressionExportApi {
    pub(crate) context: Arc<Context>,
}

#[derive(ApiResponse)]
enum Exported {
    /// The suppressions: one `Suppression` in JSON on each line, the newest first. If the
    /// export fails on the way, the connection breaks off before the end of the response.
    #[oai(status = 200, content_type = "application/x-ndjson")]
    Lines(Binary<Body>),
}

#[OpenApi(tag = "Section::Suppressions")]
impl SuppressionExportApi {
    /// Export suppressions
    ///
    /// Requires the permission `SETTINGS_WRITE`. Addresses are stored as hashes, so the
    /// export holds `emailHash` and no address. A CSV file with the columns `emailHash`,
    /// `source` and `createdAt` can be imported again. Suppressions that are added while
    /// the export runs are not in it.
    #[oai(
        path = "/v1/suppressions/export",
        method = "get",
        operation_id = "export_suppressions"
    )]
    async fn export_suppressions(
        &self,
        caller: Requires<permission::SettingsWrite>,
        /// Only suppressions with this source.
        source: Query<Validated<Option<SuppressionSource>>>,
        /// Only suppressions of this unsubscribe group.
        #[oai(name = "groupId")]
        group_id: Query<Validated<Option<UnsubscribeGroupId>>>,
    ) -> Result<Exported, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let source = source.0.take("source", &mut issues);
        let group_id = group_id.0.take("groupId", &mut issues);
        let (Some(source), Some(group_id)) = (source, group_id) else {
            return Err(Failure::Invalid(issues));
        };
        let mut export = Export {
            context: Arc::clone(&self.context),
            organization_id: caller.organization_id(),
            filter: SuppressionFilter {
                source,
                unsubscribe_group_id: group_id,
                ..SuppressionFilter::default()
            },
            after: None,
            is_complete: false,
        };
        // The first page is read before the answer begins, so that a failure has a status.
        let first = export.next_page().await?;
        let rest = stream::try_unfold(export, |mut export| async move {
            if export.is_complete {
                return Ok(None);
            }
            let page = export.next_page().await.map_err(|failure| {
                failure.log();
                io::Error::other("the export failed")
            })?;
            Ok::<_, io::Error>(Some((page, export)))
        });
        let pages = futures_util::StreamExt::chain(stream::iter([Ok(first)]), rest);
        Ok(Exported::Lines(Binary(Body::from_bytes_stream(pages))))
    }
}

/// The state of an export.
struct Export {
    context: Arc<Context>,
    organization_id: OrganizationId,
    filter: SuppressionFilter,
    after: Option<SuppressionId>,
    is_complete: bool,
}

impl Export {
    /// The lines of the next page.
    async fn next_page(&mut self) -> Result<String, Failure> {
        let suppressions = &self.context.suppressions;
        let rows = suppressions
            .export_page(self.organization_id, self.filter, self.after)
            .await?;
        self.after = rows.last().map(|row| row.id);
        self.is_complete = rows.len() < PAGE_SIZE;
        Ok(rows.into_iter().map(line).collect())
    }
}

fn line(suppression: Suppression) -> String {
    let view = SuppressionView::from(suppression).to_json();
    let mut line = view.unwrap_or_default().to_string();
    line.push('\n');
    line
}
