//! The signed-in user: name, password and second factor.

use std::sync::Arc;

use poem_openapi::payload::Json;
use poem_openapi::{Object, OpenApi};
use waypost_core::issue::Issue;
use waypost_core::text::Name;
use waypost_core::user::UserChange;
use waypost_core::user::password::NewPassword;

use crate::context::Context;
use crate::error::{Failure, change_refused};
use crate::fields::people::{Code, GivenPassword};
use crate::middleware::auth::SignedIn;
use crate::request::body::{JsonBody, OTHER_BYTES_MAX};
use crate::response::Data;
use crate::v1::Section;
use crate::v1::session::UserView;
use crate::validate::{Settable, Validated};

pub(crate) struct UserApi {
    pub(crate) context: Arc<Context>,
}

/// The changes to the user. Absent fields keep their values.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct UpdateUserRequest {
    /// The name of the user.
    name: Validated<Settable<Name>>,
    /// A new password, of 12 to 128 characters.
    password: Validated<Settable<NewPassword>>,
    /// The present password. Required with a new one.
    current_password: Validated<Option<GivenPassword>>,
}

/// How to begin a second factor.
#[derive(Debug, Object)]
struct StartTotpRequest {
    /// The present password.
    password: Validated<GivenPassword>,
}

/// The secret of a second factor, which is shown once.
#[derive(Debug, Object)]
struct TotpEnrolment {
    /// The secret in base 32, to type into an authenticator.
    secret: String,
    /// The `otpauth` URI of the secret, for a QR code.
    uri: String,
}

/// How to confirm a second factor.
#[derive(Debug, Object)]
struct ConfirmTotpRequest {
    /// A code of the authenticator.
    code: Validated<Code>,
}

/// The recovery codes, which are shown once.
#[derive(Debug, Object)]
#[oai(rename = "RecoveryCodes", rename_all = "camelCase")]
struct RecoveryCodesView {
    /// Ten codes. Each replaces the code of the second factor once.
    recovery_codes: Vec<String>,
}

/// How to remove the second factor.
#[derive(Debug, Object)]
struct DisableTotpRequest {
    /// The present password.
    password: Validated<GivenPassword>,
    /// A code of the authenticator, or a recovery code.
    code: Validated<Code>,
}

#[OpenApi(tag = "Section::User")]
impl UserApi {
    /// Change the user
    ///
    /// Requires a session. A new password ends the user's other sessions.
    #[oai(path = "/v1/user", method = "patch", operation_id = "update_user")]
    async fn update_user(
        &self,
        caller: SignedIn,
        body: JsonBody<UpdateUserRequest, OTHER_BYTES_MAX>,
    ) -> Result<Json<Data<UserView>>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let is_present = request.current_password.is_given();
        let name = request.name.change("name", &mut issues);
        let password = request.password.change("password", &mut issues);
        let present = request.current_password.take(PRESENT, &mut issues);
        if password.is_some() && !is_present {
            issues.push(Issue::new(PRESENT, "is required with a new password"));
        }
        if !issues.is_empty() {
            return Err(Failure::Invalid(issues));
        }
        let wanted = UserChange {
            name,
            password: password.zip(present.flatten().map(|given| given.0)),
        };
        let changed = self.context.users.change(caller.act(), wanted).await;
        let (user, ended) = changed.map_err(|refusal| change_refused(refusal, PRESENT))?;
        self.context.sessions.forget(&ended).await;
        Ok(Json(Data { data: user.into() }))
    }

    /// Begin a second factor
    ///
    /// Requires a session. Makes the secret of an authenticator (TOTP). It has no effect until it
    /// is confirmed; a secret that was not confirmed is replaced.
    #[oai(path = "/v1/user/totp", method = "post", operation_id = "start_totp")]
    async fn start_totp(
        &self,
        caller: SignedIn,
        body: JsonBody<StartTotpRequest, OTHER_BYTES_MAX>,
    ) -> Result<Json<Data<TotpEnrolment>>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let password = request.password.take(PASSWORD, &mut issues);
        let (Some(password), true) = (password, issues.is_empty()) else {
            return Err(Failure::Invalid(issues));
        };
        let users = &self.context.users;
        let started = users
            .start_second_factor(caller.session.user_id, password.0)
            .await
            .map_err(|refusal| change_refused(refusal, PASSWORD))?;
        Ok(Json(Data {
            data: TotpEnrolment {
                secret: started.secret,
                uri: started.uri,
            },
        }))
    }

    /// Confirm a second factor
    ///
    /// Requires a session. From now on a sign-in with the password requires a code. Only this
    /// response contains the recovery codes.
    #[oai(
        path = "/v1/user/totp/confirm",
        method = "post",
        operation_id = "confirm_totp"
    )]
    async fn confirm_totp(
        &self,
        caller: SignedIn,
        body: JsonBody<ConfirmTotpRequest, OTHER_BYTES_MAX>,
    ) -> Result<Json<Data<RecoveryCodesView>>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let code = request.code.take("code", &mut issues);
        let (Some(code), true) = (code, issues.is_empty()) else {
            return Err(Failure::Invalid(issues));
        };
        let users = &self.context.users;
        let codes = users
            .confirm_second_factor(caller.act(), &code.0)
            .await
            .map_err(|refusal| change_refused(refusal, PASSWORD))?;
        Ok(Json(Data {
            data: RecoveryCodesView {
                recovery_codes: codes.0,
            },
        }))
    }

    /// Remove the second factor
    ///
    /// Requires a session.
    #[oai(
        path = "/v1/user/totp/disable",
        method = "post",
        operation_id = "disable_totp"
    )]
    async fn disable_totp(
        &self,
        caller: SignedIn,
        body: JsonBody<DisableTotpRequest, OTHER_BYTES_MAX>,
    ) -> Result<Json<Data<UserView>>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let password = request.password.take(PASSWORD, &mut issues);
        let code = request.code.take("code", &mut issues);
        let (Some(password), Some(code), true) = (password, code, issues.is_empty()) else {
            return Err(Failure::Invalid(issues));
        };
        let users = &self.context.users;
        let user = users
            .disable_second_factor(caller.act(), password.0, &code.0)
            .await
            .map_err(|refusal| change_refused(refusal, PASSWORD))?;
        Ok(Json(Data { data: user.into() }))
    }
}

const PASSWORD: &str = "password";
const PRESENT: &str = "currentPassword";
