//! Parses the setting of the encryption keys.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub(super) const KEY_BYTES: usize = 32;

pub(super) struct Key {
    pub(super) id: u16,
    pub(super) bytes: [u8; KEY_BYTES],
}

/// Parses keys of the form `id:base64`, separated by commas. The id is a number from 0 to
/// 65,535, the key has 32 bytes. The result is not empty.
///
/// # Errors
/// A message that names the wrong key by its position, without its value.
pub(super) fn parse(text: &str) -> Result<Vec<Key>, String> {
    let mut keys: Vec<Key> = Vec::new();
    for (index, entry) in text.split(',').map(str::trim).enumerate() {
        let position = index + 1;
        let (id, key) = entry
            .split_once(':')
            .ok_or(format!("key {position} must have the form id:base64"))?;
        let id = id
            .parse::<u16>()
            .map_err(|_| format!("the id of key {position} must be a number from 0 to 65535"))?;
        let bytes = STANDARD
            .decode(key)
            .map_err(|_| format!("key {position} must be base64"))?;
        let bytes = bytes
            .try_into()
            .map_err(|_| format!("key {position} must be 32 bytes long"))?;
        if keys.iter().any(|other| other.id == id) {
            return Err(format!("two keys have the id {id}"));
        }
        keys.push(Key { id, bytes });
    }
    Ok(keys)
}
