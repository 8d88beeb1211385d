//! The refusals of users, sessions, members and invitations as failures.

use waypost_core::invitation::InvitationRefusal;
use waypost_core::member::MemberRefusal;
use waypost_core::session::SessionRefusal;
use waypost_core::user::UserRefusal;

use super::{Failure, Reason};

const WRONG_CODE: &str = "The code is wrong or was used before";

impl From<SessionRefusal> for Failure {
    fn from(refusal: SessionRefusal) -> Self {
        match refusal {
            SessionRefusal::User(refusal) => sign_in_refused(refusal),
            SessionRefusal::NotAMember => Self::Denied(
                Reason::NotAMember,
                "The user is not a member of the organization",
            ),
            SessionRefusal::Ended => Self::Unauthenticated,
            SessionRefusal::Fault(fault) => Self::Fault(fault),
        }
    }
}

/// The failure of a sign-in: 401, the same for a wrong address and a wrong password.
fn sign_in_refused(refusal: UserRefusal) -> Failure {
    match refusal {
        UserRefusal::WrongPassword => {
            Failure::SignInRefused(None, "The email address or the password is wrong")
        }
        UserRefusal::CodeRequired => Failure::SignInRefused(
            Some(Reason::SecondFactorRequired),
            "The code of the second factor is required",
        ),
        UserRefusal::CodeWrong => {
            Failure::SignInRefused(Some(Reason::SecondFactorWrong), WRONG_CODE)
        }
        UserRefusal::NotFound
        | UserRefusal::TooManyAttempts(_)
        | UserRefusal::WithoutPassword
        | UserRefusal::SecondFactorEnabled
        | UserRefusal::NoSecondFactor
        | UserRefusal::Fault(_) => change_refused(refusal, "password"),
    }
}

/// The failure of a change that a user makes. A wrong password is a mistake in the field `path`:
/// a 401 would say that the session has ended.
pub(crate) fn change_refused(refusal: UserRefusal, path: &'static str) -> Failure {
    let wrong = |reason, path, message: &str| Failure::Unprocessable {
        message: message.to_owned(),
        path: Some(path),
        reason,
    };
    match refusal {
        UserRefusal::NotFound => Failure::Unauthenticated,
        UserRefusal::WrongPassword => {
            wrong(Reason::WrongPassword, path, "is not the present password")
        }
        UserRefusal::CodeRequired => wrong(Reason::SecondFactorRequired, "code", "is required"),
        UserRefusal::CodeWrong => wrong(
            Reason::SecondFactorWrong,
            "code",
            "is wrong or was used before",
        ),
        UserRefusal::TooManyAttempts(wait) => Failure::RateLimited(wait),
        UserRefusal::WithoutPassword => Failure::Unprocessable {
            message: "The user has no password and signs in at the OpenID Connect provider"
                .to_owned(),
            path: None,
            reason: Reason::PasswordNotSet,
        },
        UserRefusal::SecondFactorEnabled => {
            Failure::Conflict(Reason::SecondFactorEnabled, "The user has a second factor")
        }
        UserRefusal::NoSecondFactor => Failure::Conflict(
            Reason::SecondFactorNotStarted,
            "The user has no second factor, or none to confirm",
        ),
        UserRefusal::Fault(fault) => Failure::Fault(fault),
    }
}

impl From<MemberRefusal> for Failure {
    fn from(refusal: MemberRefusal) -> Self {
        match refusal {
            MemberRefusal::NotFound => Self::NotFound("member"),
            MemberRefusal::Lacks(permission) => Self::Forbidden(permission),
            MemberRefusal::LastOwner => {
                Self::Conflict(Reason::LastOwner, "The organization has no other owner")
            }
            MemberRefusal::Exists => member_exists(),
            MemberRefusal::UserNotFound => Self::Unprocessable {
                message: "is the address of no user: invite them".to_owned(),
                path: Some("email"),
                reason: Reason::UserNotFound,
            },
            MemberRefusal::Fault(fault) => Self::Fault(fault),
        }
    }
}

impl From<InvitationRefusal> for Failure {
    fn from(refusal: InvitationRefusal) -> Self {
        match refusal {
            InvitationRefusal::NotFound => Self::NotFound("invitation"),
            InvitationRefusal::Lacks(permission) => Self::Forbidden(permission),
            InvitationRefusal::Exists => Self::Conflict(
                Reason::InvitationExists,
                "The address has an invitation; delete it to make a new one",
            ),
            InvitationRefusal::MemberExists => member_exists(),
            InvitationRefusal::Session(refusal) => refusal.into(),
            InvitationRefusal::Fault(fault) => Self::Fault(fault),
        }
    }
}

fn member_exists() -> Failure {
    Failure::Conflict(
        Reason::MemberExists,
        "The user is a member of the organization",
    )
}
