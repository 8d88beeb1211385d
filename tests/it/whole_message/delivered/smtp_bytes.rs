//! The bytes of a mail with files, read by Python's parser of mails; the simulator reads
//! them by another.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use waypost_core::provider::kind::ProviderType;

use super::{PEOPLE, add_parts, idle, shared};

/// Prints the headers and the leaf parts of the mail at its input.
const SCRIPT: &str = r#"
import email, email.policy, hashlib, json, sys
mail = email.message_from_bytes(sys.stdin.buffer.read(), policy=email.policy.SMTP)
parts = []
for part in mail.walk():
    leaf = not part.is_multipart()
    content = part.get_payload(decode=True) if leaf else b""
    parts.append({
        "type": part.get_content_type(),
        "disposition": part.get_content_disposition(),
        "filename": part.get_filename(),
        "id": part["Content-ID"],
        "sha256": hashlib.sha256(content).hexdigest(),
        "defects": [str(defect) for defect in part.defects],
    })
headers = [[name, str(value)] for name, value in mail.items()]
print(json.dumps({"headers": headers, "parts": parts}))
"#;

fn parsed(raw: &str) -> Value {
    let mut python = Command::new("python3")
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    python
        .stdin
        .take()
        .unwrap()
        .write_all(raw.as_bytes())
        .unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn files_with_hostile_names_decode_to_the_same_bytes() {
    let app = idle(ProviderType::Smtp).await;
    let id = shared(&app).await;
    let all: Vec<u8> = (0..=255).cycle().take(70_001).collect();
    let long = "📎é".repeat(100) + ".pdf";
    let files: Vec<(&str, Option<&str>, Vec<u8>)> = vec![
        ("plain name.pdf", None, all.clone()),
        ("a\"b\\c;d='e'%41.pdf", None, vec![b'.'; 57]),
        ("Ünïcode 📎.pdf", None, b"\r\n.\r\nQUIT\r\n".to_vec()),
        (&long, None, all[..58].to_vec()),
        ("=?utf-8?q?a?=.pdf", None, b"=".to_vec()),
        ("empty.pdf", None, Vec::new()),
        ("logo.png", Some("logo@x"), all[..3].to_vec()),
        ("second.png", Some("b"), all[..2].to_vec()),
    ];
    add_parts(&app, &id, &files).await;
    app.start_worker();
    app.drain().await;
    assert_eq!(app.status(&id).await, "SENT");
    for (address, _) in PEOPLE {
        let copy = app.captured_once(address);
        let raw = copy.raw.unwrap();
        assert!(!raw.replace("\r\n", "").contains(['\r', '\n']));
        assert!(raw.lines().all(|line| line.len() <= 998));
        assert!(!raw.contains("dee@example.org"), "Bcc is in no header");
        let mail = parsed(&raw);
        let parts = mail["parts"].as_array().unwrap();
        for part in parts {
            assert_eq!(part["defects"].as_array().unwrap().len(), 0, "{part}");
        }
        let types = parts.iter().map(|part| part["type"].as_str().unwrap());
        let types: Vec<&str> = types.collect();
        assert_eq!(
            types[..6],
            [
                "multipart/mixed",
                "multipart/related",
                "multipart/alternative",
                "text/plain",
                "text/html",
                "application/pdf",
            ]
        );
        for (filename, content_id, content) in &files {
            let part = parts.iter().find(|part| part["filename"] == *filename);
            let part = part.unwrap_or_else(|| panic!("{filename}: {parts:#?}"));
            assert_eq!(
                part["sha256"],
                hex::encode(Sha256::digest(content)),
                "{filename}"
            );
            let disposition = if content_id.is_some() {
                "inline"
            } else {
                "attachment"
            };
            assert_eq!(part["disposition"], disposition);
            let id = content_id.map(|id| format!("<{id}>"));
            assert_eq!(part["id"].as_str(), id.as_deref());
            // The other parser.
            let other = copy
                .attachments
                .iter()
                .find(|file| file.filename == *filename);
            let other = other.unwrap_or_else(|| panic!("{filename}"));
            assert_eq!(other.content, *content, "{filename}");
        }
        assert_headers(&mail);
    }
}

fn assert_headers(mail: &Value) {
    let headers = mail["headers"].as_array().unwrap();
    let header = |name: &str| {
        let mut found = headers.iter().filter(|header| header[0] == name);
        let value = found
            .next()
            .map(|header| header[1].as_str().unwrap().to_owned());
        assert!(found.next().is_none(), "{name} is there once");
        value
    };
    assert_eq!(header("To").unwrap(), "ada@example.org, bob@example.org");
    assert_eq!(header("Cc").unwrap(), "cy@example.org");
    assert_eq!(header("Bcc"), None);
    assert_eq!(header("X-Wort").unwrap(), "größe");
    assert_eq!(
        header("Reply-To").unwrap(),
        "\"a, b\" <a@example.com>, c@example.com"
    );
}
