// Counts checks, prints those that fail, and reads what the simulator took.
const { writeFileSync } = require("fs");
const { join } = require("path");
const { isDeepStrictEqual, inspect } = require("util");

const SENT_SECONDS_MAX = 60;

class Tally {
  passed = 0;
  failed = 0;

  constructor(name) {
    this.name = name;
  }

  check(what, isRight, detail = "") {
    if (isRight) this.passed++;
    else {
      this.failed++;
      const shown = typeof detail === "string" ? detail : inspect(detail, { depth: 6 });
      console.log(`FAILED ${this.name}, ${what}: ${shown}`.slice(0, 900));
    }
  }

  equal(what, got, wanted) {
    this.check(what, isDeepStrictEqual(got, wanted), `${inspect(got)} is not ${inspect(wanted)}`);
  }

  // The mail to an address, once the simulator has it.
  async mail(to) {
    const found = await this.waitFor(`mail to ${to}`, async () => {
      const answer = await fetch(`${process.env.SIMULATOR_URL}/captured?to=${encodeURIComponent(to)}`);
      return (await answer.json()).messages[0];
    });
    return found ?? {};
  }

  async waitFor(what, find) {
    const deadline = Date.now() + SENT_SECONDS_MAX * 1000;
    while (Date.now() < deadline) {
      const found = await find();
      if (found) return found;
      await new Promise((done) => setTimeout(done, 100));
    }
    this.check(what, false, "not in time");
    return undefined;
  }

  close() {
    writeFileSync(join(process.env.JUDGE_SCRATCH, `tally-${this.name}`), `${this.passed} ${this.failed}\n`);
    console.log(`${this.name}: ${this.passed} passed, ${this.failed} failed`);
  }
}

// Calls Waypost's own API.
async function waypost(method, path, body) {
  const headers = { authorization: `Bearer ${process.env.WAYPOST_API_KEY}`, "content-type": "application/json" };
  const answer = await fetch(process.env.WAYPOST_URL + path, { method, headers, body: body && JSON.stringify(body) });
  const json = await answer.json();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(json)}`);
  return json.data;
}

// Adds a template with this version; returns its id.
async function template(version) {
  const { id } = await waypost("POST", "/v1/templates", { name: "Judge" });
  await waypost("POST", `/v1/templates/${id}/versions`, version);
  return id;
}

module.exports = { Tally, template, waypost };
