//! The users of a test, and their sessions.

use tokio::sync::OnceCell;
use waypost_core::auth::Role;
use waypost_core::clock::Clock;
use waypost_core::ids::{Ids, OrganizationId, UserId};
use waypost_core::member::{self, Member};
use waypost_core::secret::Secret;
use waypost_core::user::password::{NewPassword, Passwords};
use waypost_core::user::{self, AccountEmail, User};

use crate::app::TestApp;
use crate::client::{Caller, Reply};

/// The password of every user of a test.
pub const PASSWORD: &str = "correct horse battery staple";

/// Its hash, which takes a while.
static HASH: OnceCell<Secret> = OnceCell::const_new();

impl TestApp {
    /// Adds a user with [`PASSWORD`] who is a member of these organizations.
    ///
    /// # Panics
    /// If there is one with the address.
    pub async fn user(&self, email: &str, memberships: &[(OrganizationId, Role)]) -> UserId {
        let hash = HASH.get_or_init(async || {
            let passwords = Passwords::new(Ids::new(Clock::system()));
            let password = NewPassword::parse(PASSWORD.to_owned()).expect("a constant password");
            passwords.hash(password).await.expect("it can be hashed")
        });
        let hash = hash.await;
        let user = User {
            id: self.ids.next(),
            email: AccountEmail::parse(email).expect("an address"),
            name: "Ada Lovelace".to_owned(),
            has_second_factor: false,
            has_password: true,
            is_operator: false,
            created_at: self.clock.now(),
        };
        let mut connection = self.pool.acquire().await.expect("the database answers");
        let is_new = user::store::insert(&mut connection, &user, Some(hash)).await;
        assert!(is_new.expect("a user can be added"), "{email} is taken");
        for (organization_id, role) in memberships {
            let member = Member {
                id: self.ids.next(),
                user_id: user.id,
                email: user.email.clone(),
                name: user.name.clone(),
                role: *role,
                last_signed_in_at: None,
                created_at: self.clock.now(),
            };
            member::store::insert(&mut connection, *organization_id, &member)
                .await
                .expect("a member can be added");
        }
        user.id
    }

    /// Signs a user in with [`PASSWORD`].
    pub async fn sign_in(&self, email: &str) -> Caller {
        let stranger = self.caller().anonymous();
        let body = serde_json::json!({ "email": email, "password": PASSWORD });
        let reply = stranger.from_page().post("/v1/session", &body).await;
        reply.expect(201);
        stranger.with_session_of(&reply)
    }

    /// A session of a new member of an organization.
    pub async fn member(&self, organization_id: OrganizationId, role: Role) -> Caller {
        let email = format!("{}-{organization_id}@example.com", role.as_str());
        self.user(&email, &[(organization_id, role)]).await;
        self.sign_in(&email).await
    }
}

impl Caller {
    /// The same caller with the session whose cookie a response sets.
    ///
    /// # Panics
    /// If the response sets none.
    #[must_use]
    pub fn with_session_of(&self, reply: &Reply) -> Self {
        let cookie = reply.session_cookie();
        self.with_session(&cookie.expect("a cookie of a session"))
    }
}

impl Reply {
    /// The cookie of the session that a response sets: its name and its value.
    #[must_use]
    pub fn session_cookie(&self) -> Option<String> {
        let cookies = self.headers.get_all("set-cookie").iter();
        let mut cookies = cookies.filter_map(|cookie| cookie.to_str().ok());
        let cookie = cookies.find(|cookie| cookie.starts_with("__Host-waypost_session="))?;
        Some(cookie.split(';').next()?.to_owned())
    }
}
