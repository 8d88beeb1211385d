//! The settings of people: the sender of invitations, and the OpenID Connect provider.

use url::Url;

use super::Environment;
use super::reader::Reader;
use crate::address::Mailbox;
use crate::ids::OrganizationId;
use crate::permission::Role;
use crate::secret::Secret;

/// The settings of people.
#[derive(Debug, Clone)]
pub struct PeopleSettings {
    /// The sender of invitations. `None`: they are not mailed.
    pub invitation_from: Option<Mailbox>,
    pub oidc: Option<OidcSettings>,
}

/// The settings of the OpenID Connect provider.
#[derive(Debug, Clone)]
pub struct OidcSettings {
    /// The issuer, exactly as the provider names itself.
    pub issuer: String,
    pub client_id: String,
    /// `None`: a public client, which PKCE alone protects.
    pub client_secret: Option<Secret>,
    /// The name of the provider, for people.
    pub name: String,
    /// The organization whose member a new user becomes. `None`: new users are refused.
    pub organization: Option<OrganizationId>,
    pub groups_claim: String,
    /// Groups, each with the role that it gives.
    pub roles: Vec<(String, Role)>,
    /// The role of users whom no group gives one. `None`: they are refused.
    pub default_role: Option<Role>,
    /// Whether the issuer is plain http, which only development accepts.
    pub is_plain: bool,
}

impl OidcSettings {
    /// Whether an endpoint of the provider may be called.
    #[must_use]
    pub fn allows(&self, url: &Url) -> bool {
        url.scheme() == "https" || (self.is_plain && url.scheme() == "http")
    }
}

/// Reads the settings.
pub(super) fn read(reader: &mut Reader<'_>, environment: Option<Environment>) -> PeopleSettings {
    let invitation_from = reader.optional(
        "WAYPOST_INVITATION_FROM",
        "Sender of invitations to organizations, such as `Waypost <invitations@example.com>`. An invitation is mailed through the organization's own provider accounts, if they can send from this address. Unset: invitations are not mailed; their links are passed on by hand.",
        |text| Mailbox::parse(text).ok(),
    );
    PeopleSettings {
        invitation_from,
        oidc: read_oidc(reader, environment),
    }
}

fn read_oidc(reader: &mut Reader<'_>, environment: Option<Environment>) -> Option<OidcSettings> {
    const CLIENT_ID: &str = "WAYPOST_OIDC_CLIENT_ID";
    let is_development = environment == Some(Environment::Development);
    let issuer = read_issuer(reader, is_development);
    let client_id = reader.given(CLIENT_ID, "", "Id of the client that Waypost is at the OpenID Connect provider. Its redirect URI is `/v1/session/oidc/callback` below `WAYPOST_PUBLIC_URL`. Required with `WAYPOST_OIDC_ISSUER`.");
    let client_secret = reader.given(
        "WAYPOST_OIDC_CLIENT_SECRET",
        "",
        "Secret of that client. Unset: a public client.",
    );
    let name = reader.text(
        "WAYPOST_OIDC_NAME",
        "single sign-on",
        "Name of the OpenID Connect provider on the sign-in page.",
    );
    let organization = reader.optional(
        "WAYPOST_OIDC_ORGANIZATION",
        "Id of the organization whose members users of the OpenID Connect provider become at their first sign-in. Unset: only users who are invited or added can sign in.",
        |text| text.parse().ok(),
    );
    let groups_claim = reader.text(
        "WAYPOST_OIDC_GROUPS_CLAIM",
        "groups",
        "Claim of the OpenID Connect provider that lists the groups of a user.",
    );
    let roles = reader.optional(
        "WAYPOST_OIDC_ROLES",
        "Groups and the roles that they give in `WAYPOST_OIDC_ORGANIZATION`: `group=ROLE`, separated by commas; of several the first of OWNER, ADMIN, DEVELOPER, VIEWER. Each sign-in sets the role. Unset: groups give no role.",
        parse_roles,
    );
    let default_role = reader.optional(
        "WAYPOST_OIDC_DEFAULT_ROLE",
        "Role in `WAYPOST_OIDC_ORGANIZATION` of users of the OpenID Connect provider whom no group gives one. Unset: they are refused.",
        |text| text.parse().ok(),
    );
    let issuer = issuer?;
    if client_id.is_none() {
        reader.reject(CLIENT_ID, "is required with WAYPOST_OIDC_ISSUER");
    }
    Some(OidcSettings {
        is_plain: issuer.starts_with("http:"),
        issuer,
        client_id: client_id?,
        client_secret: client_secret.map(Secret::from),
        name,
        organization,
        groups_claim,
        roles: roles.unwrap_or_default(),
        default_role,
    })
}

fn read_issuer(reader: &mut Reader<'_>, is_development: bool) -> Option<String> {
    const NAME: &str = "WAYPOST_OIDC_ISSUER";
    let issuer = reader.given(NAME, "", "Issuer of the OpenID Connect provider at which users can sign in, such as `https://accounts.example.com`, exactly as the provider writes it. Unset: users sign in with passwords only.")?;
    let url = Url::parse(&issuer).ok().filter(Url::has_host);
    let is_safe = url
        .is_some_and(|url| url.scheme() == "https" || (is_development && url.scheme() == "http"));
    if !is_safe {
        reader.reject(NAME, "must be an https URL");
        return None;
    }
    Some(issuer)
}

/// Parses `group=ROLE,…`. A group may contain `=`.
fn parse_roles(text: &str) -> Option<Vec<(String, Role)>> {
    let pairs = text.split(',').map(|pair| {
        let (group, role) = pair.trim().rsplit_once('=')?;
        let group = group.trim();
        (!group.is_empty()).then_some(())?;
        Some((group.to_owned(), role.trim().parse().ok()?))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::super::{ConfigError, Settings};
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Settings, ConfigError> {
        let common = [
            ("WAYPOST_ENV", "development"),
            ("DATABASE_URL", "postgres://localhost/waypost"),
        ];
        let variables = common.iter().chain(pairs);
        let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Settings::from_map(&variables.collect())
    }

    #[test]
    fn groups_give_roles() {
        let roles = |text| parse_roles(text).map(|roles| roles.len());
        assert_eq!(roles("admins=ADMIN, cn=dev=DEVELOPER"), Some(2));
        let parsed = parse_roles("cn=dev=DEVELOPER");
        assert_eq!(parsed, Some(vec![("cn=dev".to_owned(), Role::Developer)]));
        for wrong in ["", "admins", "=ADMIN", "admins=BOSS", "a=ADMIN,,"] {
            assert_eq!(roles(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_provider_needs_a_safe_issuer_and_a_client() {
        assert!(read(&[]).unwrap().people.oidc.is_none());
        let issuer = ("WAYPOST_OIDC_ISSUER", "https://id.example.com");
        let client = ("WAYPOST_OIDC_CLIENT_ID", "waypost");
        assert!(read(&[issuer, client]).unwrap().people.oidc.is_some());
        let error = read(&[issuer]).unwrap_err();
        assert_eq!(error.issues[0].path, "WAYPOST_OIDC_CLIENT_ID");
        let plain = ("WAYPOST_OIDC_ISSUER", "http://id.example.com");
        assert!(read(&[plain, client]).is_ok(), "development accepts it");
        let error = read(&[("WAYPOST_OIDC_ISSUER", "id.example.com"), client]).unwrap_err();
        assert_eq!(error.issues[0].path, "WAYPOST_OIDC_ISSUER");
    }
}
