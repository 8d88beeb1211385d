// Compares what cases.json expects of SendGrid, Mailgun and SES with handlebars.js. See run.sh.
'use strict';
const fs = require('fs');
const path = require('path');

const Handlebars = require(path.join(process.env.JUDGE_HOME, 'node_modules', 'handlebars'));
const cases = JSON.parse(fs.readFileSync(path.join(__dirname, 'cases.json')));

/** A helper that is a block or a value. */
function condition(decide) {
    return function helper(...values) {
        const options = values.pop();
        const result = decide(...values);
        if (!options.fn) return result;
        return result ? options.fn(this) : options.inverse(this);
    };
}

/** What each vendor has besides Handlebars' own helpers. */
const HELPERS = {
    sendgrid: {
        equals: condition((one, other) => one == other),
        notEquals: condition((one, other) => one != other),
        greaterThan: condition((one, other) => one > other),
        lessThan: condition((one, other) => one < other),
        and: condition((...values) => values.every(Boolean)),
        or: condition((...values) => values.some(Boolean)),
        length: (value) => value.length,
        insert: (value, fallback) => value || fallback.replace(/^default=/, ''),
    },
    mailgun: { equal: condition((one, other) => String(one) === String(other)) },
    ses: {},
};

let failed = 0;
const compared = cases.filter(({ source }) => HELPERS[source]);
for (const { source, template, variables, rendered } of compared) {
    const handlebars = Handlebars.create();
    handlebars.registerHelper(HELPERS[source]);
    const result = handlebars.compile(template, { noEscape: source === 'ses' })(variables);
    if (result !== rendered) {
        failed += 1;
        console.log(`${source} ${JSON.stringify(template)}: ${JSON.stringify(rendered)}, not ${JSON.stringify(result)}`);
    }
}
console.log(`${compared.length - failed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
