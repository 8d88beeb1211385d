// Sends the mails of a job (see clients.py) with nodemailer.
const fs = require('node:fs');
const nodemailer = require('nodemailer');

const job = JSON.parse(fs.readFileSync(process.argv[2]));
const people = (list) => list.map(([name, address]) => ({ name, address }));

async function main() {
  const transport = nodemailer.createTransport({
    host: job.host,
    port: job.port,
    secure: job.tls === 'tls',
    requireTLS: job.tls === 'starttls',
    auth: { user: 'waypost', pass: job.password },
    tls: { ca: fs.readFileSync(job.ca) },
  });
  for (const mail of job.mails) {
    let error = null;
    try {
      await transport.sendMail({
        from: people([mail.from])[0],
        to: people(mail.to),
        cc: people(mail.cc),
        bcc: people(mail.bcc),
        subject: mail.subject,
        text: mail.text,
        html: mail.html ?? undefined,
        headers: mail.headers,
        attachments: mail.files.map((file) => ({
          filename: file.name,
          contentType: file.type,
          content: Buffer.from(file.base64, 'base64'),
          contentDisposition: 'attachment',
        })),
      });
    } catch (problem) {
      error = problem.message;
    }
    console.log(JSON.stringify({ number: mail.number, error }));
  }
  transport.close();
}

main();
