// Runs the provider and walks through sign-ins as a browser does. Prints "N passed, M failed" last.

import Provider from 'oidc-provider';

const { WAYPOST_URL, WAYPOST_API_KEY, WAYPOST_OIDC_ISSUER, WAYPOST_OIDC_CLIENT_ID, WAYPOST_OIDC_CLIENT_SECRET } = process.env;
const PASSWORD = 'correct horse battery staple';
// The claims of each account; what is asked of the provider is decided by its own code.
const ACCOUNTS = {
  grace: { email: 'grace@example.com', email_verified: true, name: 'Grace Hopper' },
  eve: { email: 'ada@example.com', email_verified: false, name: 'Eve' },
};

const provider = new Provider(WAYPOST_OIDC_ISSUER, {
  clients: [
    {
      client_id: WAYPOST_OIDC_CLIENT_ID,
      client_secret: WAYPOST_OIDC_CLIENT_SECRET,
      redirect_uris: [`${WAYPOST_URL}/v1/session/oidc/callback`],
      response_types: ['code'],
      grant_types: ['authorization_code'],
    },
  ],
  pkce: { required: () => true },
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
  cookies: { keys: ['a key of the judge only'] },
  features: { devInteractions: { enabled: true } },
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id, ...ACCOUNTS[id] }) }),
});
const server = provider.listen(new URL(WAYPOST_OIDC_ISSUER).port, '127.0.0.1');

// A browser: its cookies by host and port, and no redirect that it does not follow itself.
class Browser {
  cookies = new Map();

  async request(url, options = {}) {
    const { host } = new URL(url);
    const cookies = this.cookies.get(host) ?? new Map();
    this.cookies.set(host, cookies);
    const header = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { ...options.headers, ...(header ? { cookie: header } : {}) };
    const response = await fetch(url, { ...options, headers, redirect: 'manual' });
    for (const line of response.headers.getSetCookie()) {
      const [pair] = line.split(';');
      const at = pair.indexOf('=');
      const gone = /max-age=0|expires=Thu, 01 Jan 1970/i.test(line);
      if (gone) cookies.delete(pair.slice(0, at));
      else cookies.set(pair.slice(0, at), pair.slice(at + 1));
    }
    return response;
  }

  // Follows redirects and answers the provider's forms as this account, until Waypost sends the browser to a page.
  async signIn(account) {
    let url = `${WAYPOST_URL}/v1/session/oidc`;
    let options = {};
    for (let step = 0; step < 20; step += 1) {
      const response = await this.request(url, options);
      const location = response.headers.get('location');
      if (location !== null) {
        const next = new URL(location, url);
        options = {};
        const isPage = next.origin === new URL(WAYPOST_URL).origin && !next.pathname.startsWith('/v1/');
        if (isPage) return next;
        url = next.href;
        continue;
      }
      const page = await response.text();
      const action = /<form[^>]*action="([^"]+)"/.exec(page)?.[1];
      if (action === undefined) throw new Error(`${response.status} at ${url}: ${page.slice(0, 500)}`);
      const prompt = /name="prompt" value="([^"]+)"/.exec(page)?.[1];
      const form = new URLSearchParams({ prompt });
      if (prompt === 'login') {
        form.set('login', account);
        form.set('password', 'anything');
      }
      url = new URL(action, url).href;
      options = { method: 'POST', body: form };
    }
    throw new Error('too many steps');
  }

  async session() {
    const response = await this.request(`${WAYPOST_URL}/v1/session`);
    return { status: response.status, body: await response.json() };
  }
}

async function api(method, path, body, headers) {
  const response = await fetch(`${WAYPOST_URL}${path}`, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()).data;
}

async function addUser(email) {
  const key = { authorization: `Bearer ${WAYPOST_API_KEY}` };
  const { url } = await api('POST', '/v1/invitations', { email, role: 'DEVELOPER' }, key);
  const [, token] = url.split('#');
  await api('POST', '/v1/invitations/accept', { token, password: PASSWORD }, { 'x-waypost-csrf': '1' });
}

let passed = 0;
let failed = 0;
async function check(name, run) {
  try {
    await run();
    passed += 1;
  } catch (error) {
    failed += 1;
    console.error(`${name}: ${error.stack}`);
  }
}

function equal(found, wanted) {
  if (found !== wanted) throw new Error(`${found} instead of ${wanted}`);
}

const browser = new Browser();
await check('a user signs in at the provider', async () => {
  await addUser('grace@example.com');
  equal((await browser.signIn('grace')).pathname, '/');
  const { status, body } = await browser.session();
  equal(status, 200);
  equal(body.data.user.email, 'grace@example.com');
  equal(body.data.user.hasPassword, false);
  equal(body.data.role, 'DEVELOPER');
});
await check('the user signs in again, by the identity', async () => {
  equal((await browser.signIn('grace')).pathname, '/');
  equal((await new Browser().signIn('grace')).pathname, '/');
});
await check('an address that is not verified signs nobody in', async () => {
  await addUser('ada@example.com');
  const eve = new Browser();
  equal((await eve.signIn('eve')).searchParams.get('error'), 'OIDC_EMAIL_NOT_VERIFIED');
  equal((await eve.session()).status, 401);
});
await check('a callback without the cookie of the sign-in is refused', async () => {
  const response = await new Browser().request(`${WAYPOST_URL}/v1/session/oidc/callback?code=x&state=y`);
  equal(new URL(response.headers.get('location')).searchParams.get('error'), 'OIDC_INVALID');
});

server.close();
server.closeAllConnections();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
