//! Mails of all shapes, and what the messages contain.

use serde_json::{Value, json};
use waypost_tests::TestApp;

use super::{accepting, client, id_of};

/// The bodies and the files of an accepted mail: `[text, html, [[name, type, size, content id]]]`.
async fn content(app: &TestApp, id: &str) -> Value {
    let content = app.get(&format!("/v1/messages/{id}/content")).await;
    let content = content.data(200);
    let files = content["attachments"].as_array().unwrap().iter();
    let files = files.map(|file| {
        json!([
            file["filename"],
            file["contentType"],
            file["size"],
            file["contentId"]
        ])
    });
    json!([content["text"], content["html"], files.collect::<Value>()])
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a list of cases")]
async fn bodies_and_files_are_found_in_mails_of_all_shapes() {
    let (app, server) = accepting().await;
    let mut client = client(&app, &server).await;
    let none = Value::Null;
    for (what, mail, expected) in [
        (
            "plain",
            "\nHello  \nyou\n",
            json!(["Hello  \nyou\n", none, []]),
        ),
        ("no body", "\n", json!(["\n", none, []])),
        ("no empty line", "", json!(["\n", none, []])),
        (
            "HTML",
            "Content-Type: text/html\n\n<p>é</p>\n",
            json!([none, "<p>é</p>\n", []]),
        ),
        (
            "flowed text keeps its spaces",
            "Content-Type: text/plain; format=flowed\n\none \ntwo\n",
            json!(["one \ntwo\n", none, []]),
        ),
        (
            "quoted-printable in a charset",
            "Content-Type: text/plain; charset=\"windows-1252\"\nContent-Transfer-Encoding: Quoted-Printable\n\n=80 5=\n0\n",
            json!(["€ 50\n", none, []]),
        ),
        (
            "base64 text",
            "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\nR3LDvMOf\nZQ==\n",
            json!(["Grüße", none, []]),
        ),
        (
            "alternative within related within mixed",
            "Content-Type: multipart/mixed; boundary=\"a\"\n\nprologue\n--a\n\
             Content-Type: multipart/related; boundary=b\n\n--b\n\
             Content-Type: multipart/alternative; boundary=\"c d\"\n\n--c d\n\
             Content-Type: text/plain\n\ntext\n--c d\nContent-Type: text/html\n\n<img src=\"cid:logo@x\">\n--c d--\n\
             --b\nContent-Type: image/png; name=logo.png\nContent-ID: <logo@x>\nContent-Transfer-Encoding: base64\n\niVBORw==\n--b--\n\
             --a\nContent-Type: text/plain; name=\"notes.txt\"\nContent-Disposition: attachment\n\nnotes\n--a--\nepilogue\n",
            json!([
                "text",
                "<img src=\"cid:logo@x\">",
                [
                    ["logo.png", "image/png", 4, "logo@x"],
                    ["notes.txt", "text/plain", 5, none]
                ]
            ]),
        ),
        (
            "an id that nothing shows is dropped",
            "Content-Type: multipart/mixed; boundary=a\n\n--a\n\nx\n--a\nContent-Type: application/pdf; name=a.pdf\n\
             Content-ID: <odd id/here>\n\npdf\n--a--\n",
            json!(["x", none, [["a.pdf", "application/pdf", 3, none]]]),
        ),
        (
            "a second text is a file",
            "Content-Type: multipart/mixed; boundary=a\n\n--a\nContent-Type: text/plain\n\nfirst\n--a\n\
             Content-Type: text/plain; charset=iso-8859-1\n\nfooter\n--a\nContent-Type: text/html\n\n<p>\n--a--\n",
            json!([
                "first",
                none,
                [
                    [
                        "attachment-1.txt",
                        "text/plain; charset=iso-8859-1",
                        6,
                        none
                    ],
                    ["attachment-2.html", "text/html", 3, none]
                ]
            ]),
        ),
        (
            "empty parts, and no last boundary",
            "Content-Type: multipart/alternative; boundary=a\n\n--a\n--a\n\n--a\nContent-Type: text/html\n\n<p>only</p>\n",
            json!([none, "<p>only</p>\n", []]),
        ),
        (
            "a boundary that begins like another",
            "Content-Type: multipart/mixed; boundary=a\n\n--a\n\none\n--ab\ntwo --a\n--a  \n\
             Content-Type: text/csv\nContent-Disposition: attachment; filename=\"x.csv\"\n\n1\n--a--\n",
            json!(["one\n--ab\ntwo --a", none, [["x.csv", "text/csv", 1, none]]]),
        ),
        (
            "names by RFC 2231 and RFC 2047",
            "Content-Type: multipart/mixed; boundary=a\n\n--a\n\nx\n--a\nContent-Type: application/pdf\n\
             Content-Disposition: attachment; filename*0*=utf-8''Gr%C3%BC; filename*1*=%C3%9Fe.pdf\n\n1\n--a\n\
             Content-Type: application/pdf; name=\"=?utf-8?b?R3LDvMOfZS5wZGY=?=\"\n\n2\n--a--\n",
            json!([
                "x",
                none,
                [
                    ["Grüße.pdf", "application/pdf", 1, none],
                    ["Grüße.pdf", "application/pdf", 1, none]
                ]
            ]),
        ),
        (
            "a mail in a mail, and an invitation",
            "Content-Type: multipart/mixed; boundary=a\n\n--a\nContent-Type: multipart/alternative; boundary=b\n\n--b\n\nx\n\
             --b\nContent-Type: text/calendar; method=REQUEST; charset=utf-8\n\nBEGIN\n--b--\n--a\n\
             Content-Type: message/rfc822\n\nSubject: inner\n\nContent\n--a--\n",
            json!([
                "x",
                none,
                [
                    [
                        "attachment-1.ics",
                        "text/calendar; charset=utf-8; method=REQUEST",
                        5,
                        none
                    ],
                    ["attachment-2.eml", "message/rfc822", 25, none]
                ]
            ]),
        ),
        (
            "a file alone",
            "Content-Type: application/zip\nContent-Disposition: attachment; filename=a.zip\nContent-Transfer-Encoding: base64\n\nUEsFBg==\n",
            json!(["\n", none, [["a.zip", "application/zip", 4, none]]]),
        ),
    ] {
        let mail = format!("From: news@example.com\nTo: a@example.org\nSubject: {what}\n{mail}");
        let reply = client.mail(&["a@example.org"], &mail).await;
        assert!(reply.starts_with("250 "), "{what}: {reply}");
        assert_eq!(content(&app, &id_of(&reply)).await, expected, "{what}");
    }
}

#[tokio::test]
async fn eight_bit_text_without_a_charset_is_what_it_most_likely_is() {
    let (app, server) = accepting().await;
    let mut client = client(&app, &server).await;
    for body in [&b"Gr\xc3\xbc\xc3\x9fe"[..], b"Gr\xfc\xdfe"] {
        client.command("MAIL FROM:<a@b.c> BODY=8BITMIME").await;
        client.command("RCPT TO:<a@example.org>").await;
        client.command("DATA").await;
        let header = b"From: news@example.com\r\nSubject: \xc3\xbc\r\n\r\n";
        client.send(&[header, body, b"\r\n.\r\n"].concat()).await;
        let id = id_of(&client.reply().await);
        assert_eq!(content(&app, &id).await[0], "Grüße\n");
        assert_eq!(app.message(&id).await["subject"], "ü");
    }
}

#[tokio::test]
async fn mails_that_cannot_be_read_are_refused() {
    let (app, server) = accepting().await;
    let mut client = client(&app, &server).await;
    let nested: String = (0..30)
        .map(|nth| format!("Content-Type: multipart/mixed; boundary=b{nth}\n\n--b{nth}\n"))
        .collect();
    let many = format!(
        "Content-Type: multipart/mixed; boundary=a\n\n{}",
        "--a\n\n".repeat(600)
    );
    let files = format!(
        "Content-Type: multipart/mixed; boundary=a\n\n{}",
        "--a\nContent-Type: a/b\n\nx\n".repeat(51)
    );
    for (mail, words) in [
        (
            "Content-Type: multipart/mixed\n\nx",
            "A multipart must have a boundary",
        ),
        (
            "Content-Type: multipart/mixed; boundary=a\n\nx",
            "A multipart must have a boundary",
        ),
        (
            "Content-Type: a/b\nContent-Transfer-Encoding: base64\n\n!",
            "is not valid base64",
        ),
        (
            "Content-Transfer-Encoding: quoted-printable\n\n=zz",
            "is not valid quoted-printable",
        ),
        (
            "Content-Transfer-Encoding: x-uuencode\n\nx",
            "unknown Content-Transfer-Encoding",
        ),
        (
            "Content-Type: a/b; name=\"../x\"\n\nx",
            "attachments.0.filename must be a name without a path",
        ),
        (&nested, "must not be nested more than 20 deep"),
        (&many, "must not have more than 500 parts"),
        (&files, "attachments must not have more than 50"),
    ] {
        let mail = format!("From: news@example.com\nTo: a@example.org\nSubject: x\n{mail}\n");
        let reply = client.mail(&["a@example.org"], &mail).await;
        assert!(
            reply.starts_with("554 5.6.0 ") && reply.contains(words),
            "{words}: {reply}"
        );
    }
    assert_eq!(super::count(&app).await, 0);
}
