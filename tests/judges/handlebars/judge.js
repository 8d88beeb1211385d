// Compares Waypost's previews with handlebars.js, case by case. See run.sh.
'use strict';
const fs = require('fs');
const path = require('path');

const modules = path.join(process.env.JUDGE_HOME, 'node_modules');
const Handlebars = require(path.join(modules, 'handlebars'));
const groups = JSON.parse(fs.readFileSync(path.join(__dirname, 'refused.json')));

/** Every case of the specification, and the group that it is in, if it is in one. */
function cases() {
    const folder = path.join(modules, 'handlebars-spec', 'spec');
    return fs.readdirSync(folder).sort().flatMap((file) =>
        JSON.parse(fs.readFileSync(path.join(folder, file))).map((given, place) => {
            const id = `${file}#${place}`;
            return { ...given, id, data: given.data ?? {}, group: groups.find((group) => group.cases.includes(id)) };
        }));
}

/** What handlebars.js makes of a case, without what only code can give it. */
function expected({ template, data, compileOptions }) {
    const handlebars = Handlebars.create();
    handlebars.logger.log = () => {};
    try {
        const render = handlebars.compile(template, { noEscape: Boolean(compileOptions?.noEscape) });
        return render(JSON.parse(JSON.stringify(data)));
    } catch {
        return undefined;
    }
}

/** Whether what the case expects follows from template and data alone. */
function isPlain({ id, helpers, partials, decorators, compileOptions, runtimeOptions, data, expected: output }) {
    const options = Object.keys(compileOptions ?? {}).filter((name) => name !== 'noEscape');
    const isJson = !/"!(code|sparsearray|undefined)"/.test(JSON.stringify(data));
    // The expectation of a parser's case is its tree.
    return typeof output === 'string' && !id.startsWith('parser.json') && !helpers && !partials && !decorators && !runtimeOptions && !options.length && isJson;
}

async function call(target, body) {
    const response = await fetch(process.env.WAYPOST_URL + target, {
        method: 'POST',
        headers: { authorization: `Bearer ${process.env.WAYPOST_API_KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
}

/** Why a case is not as it should be; nothing where it is. */
async function problem(id, given) {
    const { template, data, group, compileOptions } = given;
    const isText = Boolean(compileOptions?.noEscape);
    const content = { htmlContent: isText ? 'x' : template, ...(isText && { textContent: template }) };
    const version = await call(`/v1/templates/${id}/versions`, content);
    const message = JSON.stringify(version.body.error ?? '');
    if (group?.says) {
        return version.status === 400 && message.includes(group.says) ? undefined : `is to be refused: ${version.status} ${message}`;
    }
    const wanted = group ? group.renders : expected(given);
    if (wanted === undefined || template === '') {
        return version.status === 400 ? undefined : `handlebars.js refuses it: ${version.status}`;
    }
    // The cases come from handlebars.js' own tests; they and the library must agree.
    if (!group && isPlain(given) && wanted !== given.expected) return `handlebars.js renders ${JSON.stringify(wanted)}`;
    if (version.status !== 201) return `is refused: ${version.status} ${message}`;
    const shown = await call(`/v1/templates/${id}/preview`, { variables: data });
    if (data === null || typeof data !== 'object' || Array.isArray(data)) {
        return shown.status === 400 || data === null ? undefined : `variables are an object: ${shown.status}`;
    }
    const rendered = isText ? shown.body.text : shown.body.html;
    return rendered === wanted ? undefined : `${shown.status} ${JSON.stringify(rendered)}, not ${JSON.stringify(wanted)}`;
}

/** Templates with partials, and their data. White space is not compared: docs/templates.md says where it differs. */
const WITH_PARTIALS = [
    { template: 'a {{> leaf}} b {{>leaf}}', data: { name: 'x' } },
    { template: '{{#each items}}{{> item}}, {{/each}}', data: { items: [{ name: 'x' }, { name: 'y' }], name: 'outer' } },
    { template: '{{#with deep}}{{> item}}{{/with}}{{> item}}', data: { deep: { name: 'd' }, name: 'o' } },
    { template: '<ul>\n  {{> list}}\n</ul>\n', data: { items: ['<a>', 'b'] } },
    { template: '{{#if name}}\n  {{> leaf}}\n{{else}}\n  {{> nested}}\n{{/if}}\nend', data: {} },
    { template: '{{#if name}}\n  {{> leaf}}\n{{/if}}\nend', data: { name: 'x' } },
    { template: 'a {{~> leaf ~}} b {{~>leaf}} c', data: { name: 'x' } },
    { template: '{{> nested}}{{! {{> leaf}} }}\\{{> leaf}}', data: { name: 'x', items: [1] } },
    { template: '{{#items}}{{> nested}}{{/items}}', data: { name: 'o', items: [{ name: 'i', items: ['1'] }] } },
    { template: '{{{{raw}}}}{{> leaf}}{{{{/raw}}}}{{> empty}}{{> root}}', data: { name: 'o' } },
];
const PARTIALS = {
    leaf: '<b>{{name}}</b>',
    item: '{{@index}}:{{name}}',
    list: '{{#each items}}\n<li>{{this}}</li>\n{{/each}}\n',
    nested: '[{{> leaf}}|{{> list}}]',
    empty: '',
    root: '{{@root.name}}',
};

async function checkPartials() {
    const handlebars = Handlebars.create();
    handlebars.registerHelper('raw', (options) => options.fn());
    for (const [name, source] of Object.entries(PARTIALS)) {
        handlebars.registerPartial(name, source);
        const { body } = await call('/v1/templates', { name, type: 'PARTIAL' });
        // An empty source is no version: a comment stands for it.
        await call(`/v1/templates/${body.data.id}/versions`, { htmlContent: source || '{{!}}' });
    }
    const { body } = await call('/v1/templates', { name: 'partials' });
    const asSeen = (html) => html?.replace(/\s+/g, '');
    let failed = 0;
    for (const { template, data } of WITH_PARTIALS) {
        const wanted = asSeen(handlebars.compile(template, { preventIndent: true })(data));
        const version = await call(`/v1/templates/${body.data.id}/versions`, { htmlContent: template });
        const shown = await call(`/v1/templates/${body.data.id}/preview`, { variables: data });
        const rendered = asSeen(shown.body.html);
        if (version.status !== 201 || rendered !== wanted) {
            failed += 1;
            console.log(`${JSON.stringify(template)}: ${version.status} ${JSON.stringify(version.body.error ?? rendered)}, not ${JSON.stringify(wanted)}`);
        }
    }
    return failed;
}

async function main() {
    const { body } = await call('/v1/templates', { name: 'handlebars-spec' });
    let passed = 0;
    let failed = 0;
    for (const given of cases()) {
        const found = await problem(body.data.id, given);
        if (found === undefined) {
            passed += 1;
        } else {
            failed += 1;
            console.log(`${given.id} ${JSON.stringify(given.template)}: ${found}`);
        }
    }
    // Last: the cases of the specification have no partials.
    const wrong = await checkPartials();
    failed += wrong;
    passed += WITH_PARTIALS.length - wrong;
    console.log(`${passed} passed, ${failed} failed`);
    process.exitCode = failed ? 1 : 0;
}

main();
