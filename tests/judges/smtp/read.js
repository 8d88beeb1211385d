// Parses messages with mailparser. Stdin: {"name": "file", …}; stdout: {"name": {from, to, reply_to, subject, text,
// html}, …}.
const { readFileSync } = require("fs");
const { simpleParser } = require("mailparser");

const options = { skipHtmlToText: true, skipTextToHtml: true, skipTextLinks: true, skipImageLinks: true };
const person = (header) => header && [header.value[0].name, header.value[0].address];

async function main() {
  const read = {};
  for (const [name, file] of Object.entries(JSON.parse(readFileSync(0, "utf8")))) {
    const mail = await simpleParser(readFileSync(file), options);
    const people = { from: person(mail.from), to: person(mail.to), reply_to: person(mail.replyTo) };
    read[name] = { ...people, subject: mail.subject, text: mail.text || null, html: mail.html || null };
  }
  console.log(JSON.stringify(read));
}

main();
