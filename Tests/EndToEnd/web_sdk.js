// SPDX-License-Identifier: Apache-2.0
//
// A web page with the vendor's web SDK, as it is published, in jsdom: node web_sdk.js BUNDLE
// It reads calls, a line of JSON each, and answers each with a line: what the SDK's callback got, what went over the
// wire meanwhile, and whom the SDK takes for the user then. jsdom asks for cross-origin leave as browsers do.

const fs = require('fs');
const readline = require('readline');
const { JSDOM, ResourceLoader } = require('jsdom');

// The gateway under test has a certificate that it made itself.
const page = new JSDOM('<html></html>', {
    url: 'https://shop.example/', runScripts: 'outside-only', resources: new ResourceLoader({ strictSSL: false }),
});
const { window } = page;
const wire = [];
const send = window.XMLHttpRequest.prototype.send;
const open = window.XMLHttpRequest.prototype.open;
window.XMLHttpRequest.prototype.open = function (method, url, ...more) {
    this.asked = { path: new window.URL(url).pathname };
    return open.call(this, method, url, ...more);
};
window.XMLHttpRequest.prototype.send = function (body) {
    this.addEventListener('loadend', () =>
        wire.push({ ...this.asked, sent: body ? JSON.parse(body) : null, status: this.status, text: this.responseText }));
    return send.call(this, body);
};
window.eval(fs.readFileSync(process.argv[2], 'utf8'));
const sdk = window.mParticle;
let key = '';

/** The SDK's own configuration: it puts https:// before each place. */
function start({ host, key: id, deviceId, identities }, done) {
    key = id;
    sdk.config = {
        identityUrl: `${host}/v1/`, aliasUrl: `${host}/v1/identity/`, v1SecureServiceUrl: `${host}/v1/JS/`,
        v2SecureServiceUrl: `${host}/v2/JS/`, v3SecureServiceUrl: `${host}/v3/JS/`, configUrl: `${host}/config/`,
        requestConfig: false, isDevelopmentMode: true, logLevel: 'none', workspaceToken: 'tests',
        identityCallback: done, ...(deviceId && { deviceId }), ...(identities && { identifyRequest: { userIdentities: identities } }),
    };
    sdk.init(key, sdk.config);
}

const calls = {
    start,
    identify: ({ identities }, done) => sdk.Identity.identify({ userIdentities: identities }, done),
    login: ({ identities }, done) => sdk.Identity.login({ userIdentities: identities }, done),
    logout: ({ identities }, done) => sdk.Identity.logout({ userIdentities: identities }, done),
    modify: ({ identities }, done) => sdk.Identity.modify({ userIdentities: identities }, done),
    search: ({ identities }, done) => sdk.Identity.search(key, identities, done),
    alias: ({ source, destination }, done) => sdk.Identity.aliasUsers(
        { sourceMpid: source, destinationMpid: destination, startTime: Date.now() - 1000, endTime: Date.now() }, done),
};

function carryOut(call) {
    return new Promise((resolve) => {
        wire.length = 0;
        calls[call.call](call, (answer) => {
            // The SDK settles its user after the callback.
            setTimeout(() => {
                const user = sdk.Identity.getCurrentUser();
                resolve({
                    code: answer.httpCode, body: answer.body || null, wire: [...wire], device: sdk.getDeviceId(),
                    mpid: user && user.getMPID(), isLoggedIn: Boolean(user && user.isLoggedIn()),
                });
            }, 50);
        });
    });
}

(async () => {
    for await (const line of readline.createInterface({ input: process.stdin })) {
        process.stdout.write(JSON.stringify(await carryOut(JSON.parse(line))) + '\n');
    }
    process.exit();
})();
