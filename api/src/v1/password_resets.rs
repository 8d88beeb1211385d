//! Links by which users set a new password. The operator makes them.

use std::sync::Arc;

use poem_openapi::payload::Json;
use poem_openapi::{Object, OpenApi};
use waypost_core::user::password::NewPassword;

use crate::context::Context;
use crate::error::Failure;
use crate::fields::people::LinkToken;
use crate::middleware::auth::Anyone;
use crate::request::body::{JsonBody, OTHER_BYTES_MAX};
use crate::response::{Data, Success};
use crate::v1::Section;
use crate::validate::Validated;

pub(crate) struct PasswordResetsApi {
    pub(crate) context: Arc<Context>,
}

/// The link to look up.
#[derive(Debug, Object)]
struct LookUpPasswordResetRequest {
    /// The token in the link, after `#`.
    token: Validated<LinkToken>,
}

/// Whose password a link sets.
#[derive(Debug, Object)]
struct PasswordResetDetail {
    /// The address of the user.
    email: String,
}

/// The new password.
#[derive(Debug, Object)]
struct AcceptPasswordResetRequest {
    /// The token in the link, after `#`.
    token: Validated<LinkToken>,
    /// The new password, of 12 to 128 characters.
    password: Validated<NewPassword>,
}

#[OpenApi(tag = "Section::PasswordResets")]
impl PasswordResetsApi {
    /// Look up a link that sets a password
    ///
    /// Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Returns 404 if the
    /// link is unknown, used or expired.
    #[oai(
        path = "/v1/password-resets/look-up",
        method = "post",
        operation_id = "look_up_password_reset"
    )]
    async fn look_up_password_reset(
        &self,
        caller: Anyone,
        body: JsonBody<LookUpPasswordResetRequest, OTHER_BYTES_MAX>,
    ) -> Result<Json<Data<PasswordResetDetail>>, Failure> {
        caller.authorize()?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let token = request.token.take("token", &mut issues);
        let (Some(token), true) = (token, issues.is_empty()) else {
            return Err(Failure::Invalid(issues));
        };
        let found = self.context.password_resets.find(&token.0).await?;
        let email = found.ok_or(Failure::NotFound(LINK))?;
        let email = email.as_str().to_owned();
        Ok(Json(Data {
            data: PasswordResetDetail { email },
        }))
    }

    /// Set a password by a link
    ///
    /// Requires no API key and no session, and the header `X-Waypost-Csrf: 1`. Ends all sessions
    /// of the user, who then signs in with the new password. The second factor stays.
    #[oai(
        path = "/v1/password-resets/accept",
        method = "post",
        operation_id = "accept_password_reset"
    )]
    async fn accept_password_reset(
        &self,
        caller: Anyone,
        body: JsonBody<AcceptPasswordResetRequest, OTHER_BYTES_MAX>,
    ) -> Result<Json<Success>, Failure> {
        caller.authorize()?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let token = request.token.take("token", &mut issues);
        let password = request.password.take("password", &mut issues);
        let (Some(token), Some(password), true) = (token, password, issues.is_empty()) else {
            return Err(Failure::Invalid(issues));
        };
        let resets = &self.context.password_resets;
        let ended = resets.accept(&token.0, password).await?;
        let ended = ended.ok_or(Failure::NotFound(LINK))?;
        self.context.sessions.forget(&ended).await;
        Ok(Json(Success { success: true }))
    }
}

const LINK: &str = "link";
