//! Values that must not leak: credentials, keys, tokens. A [`Secret`] has no
//! `Display` and no `Serialize`, prints as a placeholder in `Debug`, is wiped
//! when dropped, and is taken out only by an explicit `expose_secret()`.

pub use secrecy::{ExposeSecret, SecretString as Secret};
