/** Sign-ins at an identity provider that really listens. */
import { AccessService, bind, type CallContext } from '@rackwright/messages';
import { nodeClock, nodeWebClient } from '@rackwright/platform/node';
import { localChannel } from '@rackwright/rpc';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type GivenWorld, runOver } from '../command-io.fixture.ts';
import { exitCodes } from '../failure.ts';
import { type IdentityProvider, startIdentityProvider } from './identity-provider.fixture.ts';

const config = '/home/me/.config/rackwright/config.yaml';
const session = '/home/me/.config/rackwright/sessions/berlin.json';

let provider: IdentityProvider;
let files: Record<string, string | Uint8Array>;
let modes: Record<string, number>;
let presented: string[];
let shiftMs: number;

beforeEach(async () => {
  provider = await startIdentityProvider();
  files = {
    '/ca': 'ca',
    '/idp.pem': provider.caPem,
    [config]:
      '# ours\ncurrent: berlin\ncontexts:\n  berlin: {server: "box:7440", caFile: /ca} # hall 1\n',
  };
  modes = {};
  presented = [];
  shiftMs = 0;
});
afterEach(() => provider.close());

/** Seconds between two questions pass in hundredths. */
const fast = () => {
  const clock = nodeClock();
  return {
    ...clock,
    nowMs: () => clock.nowMs() + shiftMs,
    after: (delayMs: number, callback: () => void) => clock.after(delayMs / 100, callback),
  };
};

function run(line: string, given: GivenWorld = {}) {
  const whoAmI = async (_request: unknown, { header }: CallContext) => {
    presented.push(header('authorization')?.replace('Bearer ', '') ?? '');
    return { actor: 'oidc:ann' };
  };
  const connect: GivenWorld['connect'] = () =>
    localChannel([bind(AccessService, { whoAmI } as never)]);
  return runOver(line.split(' '), {
    ...{ files, modes, connect, clock: fast(), web: nodeWebClient() },
    ...given,
  });
}

const login = (given: GivenWorld = {}) =>
  run(`login --issuer ${provider.issuer} --client-id rackwright --issuer-ca-file /idp.pem`, given);
const saved = () => JSON.parse(new TextDecoder().decode(files[session] as Uint8Array));

describe('a sign-in by device code', () => {
  test('waits for the person, slows down when it is told, and is kept for its owner', async () => {
    provider.errors.push('authorization_pending', 'slow_down', 'authorization_pending');
    const { code, err } = await login();
    expect([code, err]).toEqual([0, expect.stringContaining('Signed in at')]);
    expect(err).toContain(`Open ${provider.issuer}/activate?user_code=WDJB-MJHT\n`);
    expect(err).toContain('compare the code WDJB-MJHT');
    expect(provider.forms).toHaveLength(4);
    expect(provider.forms[0]?.get('grant_type')).toBe(
      'urn:ietf:params:oauth:grant-type:device_code',
    );
    expect([modes[session], modes[config]]).toEqual([0o600, 0o600]);
    const text = new TextDecoder().decode(files[config] as Uint8Array);
    expect(text).toContain('# ours');
    expect(text).toContain('# hall 1');
    expect(text).not.toContain(saved().token);
  });

  test('shows the control plane the token, and renews it when it is about to end', async () => {
    await login();
    const first = saved().token;
    expect((await run('whoami')).out).toContain('oidc:ann');
    expect(presented).toEqual([first]);
    shiftMs = 3_590_000;
    expect((await run('whoami')).code).toBe(0);
    const second = saved().token;
    expect(second).not.toBe(first);
    expect(presented).toEqual([first, second]);
    expect(provider.forms.at(-1)?.get('grant_type')).toBe('refresh_token');
  });

  test('a sign-in that has ended there has to be made again', async () => {
    await login();
    shiftMs = 3_590_000;
    provider.errors.push('invalid_grant');
    const { code, err } = await run('whoami');
    expect([code, presented]).toEqual([exitCodes.notAllowed, []]);
    expect(err).toContain('sign in by `rackwright login --context berlin`');
  });

  test('a sign-in that another command has renewed takes what that one has got', async () => {
    await login();
    const before = files[session];
    shiftMs = 3_590_000;
    provider.lifeSeconds = 100_000;
    await run('whoami');
    const renewed = files[session];
    const reads: (string | Uint8Array | undefined)[] = [before, renewed];
    const given = { readFirst: { [session]: reads } };
    expect((await run('whoami', given)).code).toBe(0);
    expect(presented.at(-1)).toBe(saved().token);
  });

  test.each([
    ['access_denied', 'the sign-in was refused'],
    ['expired_token', 'the code has expired'],
    ['invalid_client', 'gives no token: invalid_client'],
  ])('a sign-in that ends with %s says so, and keeps nothing', async (error, text) => {
    provider.errors.push(error);
    const { code, err } = await login();
    expect([code, err]).toEqual([exitCodes.notAllowed, expect.stringContaining(text)]);
    expect(files[session]).toBeUndefined();
  });

  test('goes to no provider that is another, has no device codes, or speaks no HTTPS', async () => {
    const refused = async (metadata: Record<string, unknown>) => {
      provider.metadata = metadata;
      const { code, err } = await login();
      expect(code).toBe(exitCodes.usage);
      return err;
    };
    expect(await refused({ issuer: 'https://other' })).toContain('is of the issuer');
    expect(await refused({ device_authorization_endpoint: '' })).toContain('RFC 8628');
    expect(await refused({ token_endpoint: 'http://x/token' })).toContain('no https URL');
    const plain = await run('login --issuer http://idp --client-id a');
    expect(plain.err).toContain('it must be an https URL');
    const unknown = await run(`login --issuer ${provider.issuer} --client-id rackwright`);
    expect([unknown.code, unknown.err]).toEqual([
      exitCodes.unreachable,
      expect.stringContaining('does not answer'),
    ]);
  });

  test('ends with Ctrl-C, and with logout nothing of it is left', async () => {
    provider.errors.push(...Array<string>(50).fill('authorization_pending'));
    const signal = AbortSignal.timeout(500);
    expect((await login({ signal })).code).toBe(exitCodes.interrupted);
    provider.errors.length = 0;
    await login();
    expect((await run('logout')).code).toBe(0);
    expect(files[session]).toBeUndefined();
    expect((await run('whoami')).err).toContain('nobody is signed in');
  });
});

describe('contexts', () => {
  test('are made, listed, used and removed', async () => {
    delete files[config];
    const made = await run('context set paris --server p:1 --token-file /t --ca-file /ca');
    expect(made).toMatchObject({ code: 0, err: 'paris is set, and in use\n' });
    await run('context set rome --server r:1 --token-file /t --ca-file /ca');
    expect(modes[config]).toBe(0o600);
    const listed = (await run('context list')).out.split('\n');
    expect(listed[1]).toMatch(/^\* +paris +p:1 +\/t/);
    expect(listed[2]).toMatch(/^- +rome +r:1/);
    expect((await run('context use rome')).code).toBe(0);
    expect((await run('context list -o name')).out).toBe('paris\nrome\n');
    expect(JSON.parse((await run('context list -o json')).out)).toContainEqual(
      expect.objectContaining({ name: 'rome', isCurrent: true }),
    );
    expect((await run('context delete rome')).err).toContain('none is in use');
    expect((await run('context use rome')).err).toContain(
      'there is no context "rome"; known: paris',
    );
  });

  test('say where the control plane is, after flags and environment', async () => {
    files['/t'] = 'secret';
    await run('context set paris --server p:1 --token-file /t --ca-file /ca');
    const targets: string[] = [];
    const connect: GivenWorld['connect'] = ({ target }) => {
      targets.push(target);
      return localChannel([]);
    };
    await run('whoami --context paris', { connect });
    await run('whoami', { connect, environment: { RACKWRIGHT_CONTEXT: 'paris' } });
    await run('whoami --context paris --server other:2', { connect });
    expect(targets).toEqual(['p:1', 'p:1', 'other:2']);
    expect((await run('whoami --context nowhere')).err).toContain('has berlin, paris');
  });

  test('refuse a name that is no file name, and a key that is none', async () => {
    expect((await run('context set ../x --server a:1')).code).toBe(exitCodes.usage);
    files[config] = 'contexts:\n  a: {servr: x}\n';
    expect((await run('whoami')).err).toContain('contexts.a.servr is no key');
    files[config] = 'contexts:\n  ../../x: {server: "a:1"}\n';
    expect((await run('whoami')).err).toContain('its name must have');
  });
});
