//! Values that must not leak: credentials, keys, tokens. A [`Secret`] has no `Display` and no
//! `Serialize`, prints as a placeholder in `Debug`, is wiped when dropped, and can be read
//! only with an explicit `expose_secret()`.

pub use secrecy::{ExposeSecret, SecretString as Secret};
