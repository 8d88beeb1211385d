// Sends the mails of a job (see clients.py) with Go's net/smtp and mime/multipart.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"os"
	"strings"
)

type person [2]string

type letter struct {
	Number      int
	From        person
	To, Cc, Bcc []person
	Subject     string
	Text        string
	HTML        *string
	Headers     map[string]string
	Files       []struct{ Name, Type, Base64 string }
}

type job struct {
	Host, TLS, Password, CA string
	Port                    int
	Mails                   []letter
}

func main() {
	var given job
	text, err := os.ReadFile(os.Args[1])
	check(err)
	check(json.Unmarshal(text, &given))
	for _, mail := range given.Mails {
		var message *string
		if err := given.send(mail); err != nil {
			text := err.Error()
			message = &text
		}
		line, _ := json.Marshal(map[string]any{"number": mail.Number, "error": message})
		fmt.Println(string(line))
	}
}

func (j job) send(mail letter) error {
	var recipients []string
	for _, list := range [][]person{mail.To, mail.Cc, mail.Bcc} {
		for _, one := range list {
			recipients = append(recipients, one[1])
		}
	}
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(j.CA)
	check(err)
	pool.AppendCertsFromPEM(pem)
	config := &tls.Config{RootCAs: pool, ServerName: j.Host}
	address := fmt.Sprintf("%s:%d", j.Host, j.Port)
	var connection net.Conn
	if j.TLS == "tls" {
		connection, err = tls.Dial("tcp", address, config)
	} else {
		connection, err = net.Dial("tcp", address)
	}
	if err != nil {
		return err
	}
	client, err := smtp.NewClient(connection, j.Host)
	if err != nil {
		return err
	}
	defer client.Close()
	if j.TLS == "starttls" {
		if err := client.StartTLS(config); err != nil {
			return err
		}
	}
	if err := client.Auth(smtp.PlainAuth("", "waypost", j.Password, j.Host)); err != nil {
		return err
	}
	if err := client.Mail(mail.From[1]); err != nil {
		return err
	}
	for _, recipient := range recipients {
		if err := client.Rcpt(recipient); err != nil {
			return err
		}
	}
	writer, err := client.Data()
	if err != nil {
		return err
	}
	if _, err := writer.Write(mail.bytes()); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	return client.Quit()
}

func (l letter) bytes() []byte {
	var out bytes.Buffer
	field := func(name, value string) { fmt.Fprintf(&out, "%s: %s\r\n", name, value) }
	field("From", mailboxes([]person{l.From}))
	field("To", mailboxes(l.To))
	if len(l.Cc) > 0 {
		field("Cc", mailboxes(l.Cc))
	}
	field("Subject", mime.QEncoding.Encode("utf-8", l.Subject))
	for name, value := range l.Headers {
		field(name, value)
	}
	field("MIME-Version", "1.0")
	mixed := multipart.NewWriter(&out)
	fmt.Fprintf(&out, "Content-Type: multipart/mixed; boundary=%s\r\n\r\n", mixed.Boundary())
	var bodies bytes.Buffer
	alternative := multipart.NewWriter(&bodies)
	body(alternative, "text/plain", l.Text)
	if l.HTML != nil {
		body(alternative, "text/html", *l.HTML)
	}
	check(alternative.Close())
	part, err := mixed.CreatePart(textproto.MIMEHeader{
		"Content-Type": {"multipart/alternative; boundary=" + alternative.Boundary()}})
	check(err)
	part.Write(bodies.Bytes())
	for _, file := range l.Files {
		part, err := mixed.CreatePart(textproto.MIMEHeader{
			"Content-Type":              {file.Type},
			"Content-Disposition":       {mime.FormatMediaType("attachment", map[string]string{"filename": file.Name})},
			"Content-Transfer-Encoding": {"base64"}})
		check(err)
		for text := file.Base64; text != ""; {
			length := min(76, len(text))
			fmt.Fprintf(part, "%s\r\n", text[:length])
			text = text[length:]
		}
	}
	check(mixed.Close())
	return out.Bytes()
}

func body(writer *multipart.Writer, kind, text string) {
	part, err := writer.CreatePart(textproto.MIMEHeader{
		"Content-Type": {kind + "; charset=utf-8"}, "Content-Transfer-Encoding": {"quoted-printable"}})
	check(err)
	encoder := quotedprintable.NewWriter(part)
	encoder.Write([]byte(text))
	check(encoder.Close())
}

func mailboxes(people []person) string {
	var texts []string
	for _, one := range people {
		texts = append(texts, (&mail.Address{Name: one[0], Address: one[1]}).String())
	}
	return strings.Join(texts, ", ")
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
