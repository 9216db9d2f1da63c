/** People of an identity provider at the operators' port of a whole control plane. */
import { generateKeyPairSync } from 'node:crypto';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { HoldScope, Role } from '@rackwright/messages';
import { nodeWebClient } from '@rackwright/platform/node';
import { operatorClients } from '@rackwright/rpc';
import { selfSigned } from '@rackwright/sim/loopback';
import { exportJWK, SignJWT } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addSide } from './access.fixture.ts';
import { type Fixture, failureOf, startFixture } from './rpc.fixture.ts';

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
let server: Server;
let issuer: string;
let fixture: Fixture;

beforeAll(async () => {
  const { keyPem, certificatePem } = await selfSigned('idp', '127.0.0.1');
  server = createServer({ key: keyPem, cert: certificatePem }, (request, response) => {
    void exportJWK(publicKey).then((jwk) => {
      const isKeys = request.url === '/keys';
      const keys = { keys: [{ ...jwk, kid: 'k1', alg: 'ES256' }] };
      response.end(JSON.stringify(isKeys ? keys : { issuer, jwks_uri: `${issuer}/keys` }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  issuer = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const roles = [
    { value: 'chiefs', role: 'admin' },
    { value: 'team-a', role: 'operator', racks: ['aa-rack'] },
  ];
  fixture = await startFixture({
    config: { oidc: { issuer, audience: 'rackwright', roles } },
    platform: { oidcWebClient: nodeWebClient([certificatePem]) },
  });
  await addSide(fixture, 'aa');
  await addSide(fixture, 'zz');
});

afterAll(async () => {
  await fixture.stop();
  server.closeAllConnections();
  await new Promise<void>((resolve) => server.close(() => resolve()));
});

async function as(subject: string, roles: readonly string[], lifeSeconds = 600) {
  const token = await new SignJWT({ roles })
    .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
    .setIssuer(issuer)
    .setSubject(subject)
    .setAudience('rackwright')
    .setExpirationTime(`${lifeSeconds} s`)
    .sign(privateKey);
  return operatorClients(fixture.channel, token);
}

test('callers of the provider have their role and scope, and the audit names them', async () => {
  const ann = await as('ann', ['team-a']);
  expect(await ann.access.whoAmI({})).toMatchObject({
    actor: 'oidc:ann',
    role: Role.OPERATOR,
    scope: { racks: ['racks/aa-rack'] },
    token: '',
    issuer,
  });
  expect((await ann.hosts.listHosts({})).hosts.map(({ name }) => name)).toEqual(['hosts/aa-host']);
  const hold = { scope: HoldScope.POWER, reason: 'a look' };
  const held = await ann.hosts.holdHost({ name: 'hosts/aa-host', ...hold });
  expect(held.status?.holds.map(({ by }) => by)).toContain('oidc:ann');
  expect(await failureOf(ann.hosts.holdHost({ name: 'hosts/zz-host', ...hold }))).toMatchObject({
    reason: 'NOT_FOUND_IN_SCOPE',
  });
  const nobody = await as('eve', ['visitors']);
  expect(await failureOf(nobody.hosts.listHosts({}))).toMatchObject({
    kind: 'permissionDenied',
    reason: 'NO_ROLE',
  });
});

test('a sign-in by the provider may replace the first token', async () => {
  const chief = await as('chief', ['chiefs']);
  await chief.access.deleteToken({ name: 'tokens/admin', reason: 'everybody signs in now' });
  expect(await failureOf(fixture.hosts.listHosts({}))).toMatchObject({ reason: 'TOKEN_REVOKED' });
  expect((await chief.racks.listRacks({})).racks).toHaveLength(2);
});
