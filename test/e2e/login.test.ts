/**
 * `rackwright login` by device code (RFC 8628) at an identity provider that really listens, and the
 * control plane that accepts what it has signed: each a program or a server of its own.
 */
import { generateKeyPairSync, sign as signed } from 'node:crypto';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type IdentityProvider, startIdentityProvider } from '@rackwright/cli/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type ControlPlaneProcess,
  startControlPlaneProcess,
} from '../peers-tests/python-client/control-plane-process.ts';
import { started } from './command.ts';
import { programOf } from './programs.ts';

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
/** A JSON Web Signature by ES256 (RFC 7518 §3.4). */
function sign(claims: Readonly<Record<string, unknown>>): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${part({ alg: 'ES256', kid: 'k1' })}.${part(claims)}`;
  const key = { key: privateKey, dsaEncoding: 'ieee-p1363' } as const;
  return `${text}.${signed('sha256', Buffer.from(text), key).toString('base64url')}`;
}

let provider: IdentityProvider;
let controlPlane: ControlPlaneProcess;

beforeAll(async () => {
  const key = { ...publicKey.export({ format: 'jwk' }), kid: 'k1', alg: 'ES256' };
  provider = await startIdentityProvider(sign, { keys: [key] });
  const { issuer } = provider;
  controlPlane = await startControlPlaneProcess(programOf('controlplane'), async (folder) => {
    const caFile = join(folder, 'idp.pem');
    await writeFile(caFile, provider.caPem);
    const roles = [{ value: 'chiefs', role: 'operator' }];
    return { oidc: { issuer, caFile, audience: 'rackwright', roles } };
  });
});

afterAll(async () => {
  await controlPlane?.stop();
  await provider?.close();
});

/** The command as a program, with a home of its own. */
function rackwright(line: string) {
  const { folder, operators, caFile } = controlPlane;
  const environment = {
    XDG_CONFIG_HOME: join(folder, 'home'),
    RACKWRIGHT_SERVER: operators,
    RACKWRIGHT_CA_FILE: caFile,
  };
  return started('rackwright', environment, line.split(' '));
}

const login = () => {
  const ca = join(controlPlane.folder, 'idp.pem');
  return rackwright(
    `login --issuer ${provider.issuer} --client-id rackwright --issuer-ca-file ${ca}`,
  );
};

test('a person who signs in by device code is let in with the role of their group', async () => {
  provider.errors.push('authorization_pending');
  const said = await login();
  expect(said).toMatchObject({ code: 0, err: expect.stringContaining('Signed in at') });
  expect(said.err).toContain('WDJB-MJHT');
  const who = await rackwright('whoami');
  expect(who.out).toMatch(/name +oidc:ann\nrole +operator\nscope +everything\n/);
  expect(who.out).toContain(provider.issuer);
  expect((await rackwright('host list')).code).toBe(0);
  const denied = await rackwright('rack create r1');
  expect([denied.code, denied.err]).toEqual([5, expect.stringContaining('needs the role admin')]);
});

test('a token that is about to end is renewed, and the new one is let in', async () => {
  provider.lifeSeconds = 5;
  await login();
  provider.lifeSeconds = 3_600;
  const before = provider.forms.length;
  expect((await rackwright('whoami')).out).toContain('oidc:ann');
  const asked = provider.forms.slice(before).map((form) => form.get('grant_type'));
  expect(asked).toEqual(['refresh_token']);
});

test('the kept sign-in is readable by its owner alone, and deleted by a logout', async () => {
  await login();
  const file = join(controlPlane.folder, 'home/rackwright/sessions/default.json');
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ token: expect.any(String) });
  expect((await rackwright('logout')).code).toBe(0);
  await expect(stat(file)).rejects.toThrow('ENOENT');
  const out = await rackwright('whoami');
  expect([out.code, out.err]).toEqual([5, expect.stringContaining('nobody is signed in')]);
});
