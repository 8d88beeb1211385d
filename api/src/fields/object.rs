//! Objects of the caller's own making, as they are read from requests.

use std::io::{self, Write};

use poem_openapi::registry::MetaSchemaRef;
use serde_json::{Value, json};
use waypost_core::issue::Issue;
use waypost_core::text;

use crate::fields::{kind_of, schema};
use crate::validate::{Field, problem};

/// Any JSON object of so many bytes at the most, written without white space.
#[derive(Debug)]
pub(crate) struct JsonObject<const BYTES_MAX: usize>(pub(crate) Value);

impl<const BYTES_MAX: usize> Default for JsonObject<BYTES_MAX> {
    fn default() -> Self {
        Self(json!({}))
    }
}

impl<const BYTES_MAX: usize> Field for JsonObject<BYTES_MAX> {
    fn schema() -> MetaSchemaRef {
        schema("object", |object| {
            object.additional_properties = Some(Box::new(schema("", |_| {})));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        if !value.is_object() {
            return problem(format!("must be an object, not {}", kind_of(&value)));
        }
        if text::json_has_nul(&value) {
            return problem("must not contain NUL characters");
        }
        if serde_json::to_writer(Room(BYTES_MAX), &value).is_err() {
            return problem(format!("must not be larger than {BYTES_MAX} bytes"));
        }
        Ok(Self(value))
    }
}

/// Counts bytes down, and refuses what there is no room for.
struct Room(usize);

impl Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.0.checked_sub(bytes.len());
        self.0 = left.ok_or_else(|| io::Error::other("too large"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
