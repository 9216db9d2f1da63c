import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { BmcEndpointSchema, BmcProtocol, Role } from '@rackwright/messages';
import { operatorClients } from '@rackwright/rpc';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { accessTable } from '../../access/index.ts';
import { OutOfBounds, openNamed } from '../../secrets/index.ts';
import { addSide, type Names, specOf, tokenFor } from '../../services/access.fixture.ts';
import {
  type Fixture,
  failureOf,
  startFixture,
  violatedFields,
} from '../../services/rpc.fixture.ts';

type Clients = ReturnType<typeof operatorClients>;

let fixture: Fixture;
let names: Names;
let operator: Clients;
let admin: Clients;
const own = '192.0.1.66';
const pin = 'ab'.repeat(32);

beforeAll(async () => {
  fixture = await startFixture();
  names = await addSide(fixture, 'aa');
  await addSide(fixture, 'zz');
  const as = async (id: string, role: Role) =>
    operatorClients(fixture.channel, await tokenFor(fixture, id, role, { racks: [names.rack] }));
  operator = await as('hand', Role.OPERATOR);
  admin = await as('chief', Role.ADMIN);
});

afterAll(() => fixture.stop());

const bound = (bmcNetworks: string[], racks: string[] = []) =>
  fixture.credentials.updateCredential({
    credential: { name: names.credential, bmcNetworks, racks },
    updateMask: { paths: ['bmc_networks', 'racks'] },
  });

const spec = (address: string) => {
  const { bmc, ...rest } = specOf('aa', 7);
  return { ...rest, bmc: { ...bmc, address } };
};
const line = (address = '', bmcAddress = '') => ({
  spec: { ...spec(address), bootMacs: [] },
  labels: { pool: names.pool },
  match: { serial: 'of-a-thief', bmcAddress },
});
const validateOnly = true;

/** Every call that sets where a password is sent. */
const ways: Record<string, (as: Clients) => Promise<unknown>> = {
  'HostService/CreateHost': ({ hosts }) =>
    hosts.createHost({ hostId: 'thief', host: { spec: spec(own) }, validateOnly }),
  'HostService/UpdateHost': ({ hosts }) =>
    hosts.updateHost({
      host: { name: names.host, spec: { bmc: { address: own } } },
      updateMask: { paths: ['spec.bmc.address'] },
      validateOnly,
    }),
  'DiscoveryService/AcceptDiscoveredMachine': ({ discovery }) =>
    discovery.acceptDiscoveredMachine({
      name: names.machine,
      hostId: 'thief',
      host: { spec: spec(own) },
      validateOnly,
    }),
  'DiscoveryService/CreateExpectedHost': ({ discovery }) =>
    discovery.createExpectedHost({
      expectedHostId: 'thief',
      expectedHost: line('', own),
      validateOnly,
    }),
  'DiscoveryService/UpdateExpectedHost': ({ discovery }) =>
    discovery.updateExpectedHost({
      expectedHost: { name: names.line, match: { bmcAddress: own } },
      updateMask: { paths: ['match.bmc_address'] },
      validateOnly,
    }),
};

test('every method that says where a password goes is known, and each is tried', () => {
  const pointing = Object.entries(accessTable).filter(([, row]) => row.pointsBmc === true);
  const paths = pointing.map(([path]) => path.replace('rackwright.v1.', ''));
  expect(Object.keys(ways).toSorted()).toEqual(paths.toSorted());
});

describe('the password of a credential that names no networks', () => {
  beforeAll(() => bound([]));

  test.each(Object.entries(ways))('is sent only if an administrator asks: %s', async (_, way) => {
    const refused = await failureOf(way(operator));
    expect(refused).toMatchObject({ kind: 'permissionDenied', reason: 'ROLE_TOO_SMALL' });
    expect(refused.message).toContain(`to which BMC ${names.credential} goes needs the role admin`);
    expect(refused.message).toContain('--bmc-network NETWORK');
    await way(admin);
  });

  test.each<[string, MessageInitShape<typeof BmcEndpointSchema>, string]>([
    [
      'its certificate',
      { certificateSha256: pin, protocol: BmcProtocol.REDFISH },
      'certificate_sha256',
    ],
    ['its port', { port: 6_230 }, 'port'],
    ['the credential itself', { credential: 'credentials/aa-second' }, 'credential'],
  ])('is not sent to another BMC behind the same address: %s', async (_, bmc, field) => {
    const given = { username: 'second', password: 'another' };
    const requestId = 'second';
    const credentialId = 'aa-second';
    await fixture.credentials.createCredential({ credentialId, credential: given, requestId });
    const change = ({ hosts }: Clients) =>
      hosts.updateHost({
        host: { name: names.host, spec: { bmc: create(BmcEndpointSchema, bmc) } },
        updateMask: { paths: [`spec.bmc.${field}`, 'spec.bmc.protocol'] },
        validateOnly,
      });
    // Out of scope for a caller limited to the rack: no host there uses it yet.
    const unscoped = operatorClients(
      fixture.channel,
      await tokenFor(fixture, `all-${field.replaceAll('_', '-')}`, Role.OPERATOR),
    );
    expect(await failureOf(change(unscoped))).toMatchObject({ reason: 'ROLE_TOO_SMALL' });
    await change(fixture);
  });

  test('does not keep an operator from other changes of its host', async () => {
    const host = { name: names.host, labels: { pool: names.pool, site: 'berlin' } };
    const updateMask = { paths: ['labels'] };
    expect((await operator.hosts.updateHost({ host, updateMask })).labels['site']).toBe('berlin');
  });
});

describe('a credential that names networks and racks', () => {
  beforeAll(() => bound(['192.0.1.0/24'], [names.rack]));

  test.each(Object.entries(ways))('an operator may send it there: %s', async (_, way) => {
    await way(operator);
  });

  test('goes to no other address, even if an administrator asks', async () => {
    for (const address of ['192.0.3.66', 'bmc.example']) {
      const made = fixture.hosts.createHost({ hostId: 'far', host: { spec: spec(address) } });
      expect(await violatedFields(made)).toEqual(['host.spec.bmc.address']);
      const changed = fixture.hosts.updateHost({
        host: { name: names.host, spec: { bmc: { address } } },
        updateMask: { paths: ['spec.bmc.address'] },
      });
      expect(await violatedFields(changed)).toEqual(['host.spec.bmc.address']);
      const accepted = fixture.discovery.acceptDiscoveredMachine({
        name: names.machine,
        hostId: 'far',
        host: { spec: spec(address) },
      });
      expect(await violatedFields(accepted)).toEqual(['host.spec.bmc.address']);
    }
    const elsewhere = { ...spec(own), rack: 'racks/zz-rack' };
    const made = fixture.hosts.createHost({ hostId: 'far', host: { spec: elsewhere } });
    expect(await violatedFields(made)).toEqual(['host.spec.rack']);
  });

  test('cannot be restricted to fewer networks or racks than its hosts are in', async () => {
    expect(await failureOf(bound(['192.0.3.0/24']))).toMatchObject({
      reason: 'CREDENTIAL_IN_USE',
      message: expect.stringContaining(names.host),
    });
    expect(await failureOf(bound([], ['racks/zz-rack']))).toMatchObject({
      reason: 'CREDENTIAL_IN_USE',
    });
  });

  test('keeps its version when only its networks or racks change', async () => {
    const { version } = await fixture.credentials.getCredential({ name: names.credential });
    expect((await bound(['192.0.1.0/25'], [names.rack])).version).toBe(version);
    expect(await violatedFields(bound(['0.0.0.0/0'], ['zz']))).toEqual([
      'credential.bmc_networks[0]',
      'credential.racks[0]',
    ]);
  });

  test('names no rack that the caller may not see', async () => {
    const racks = [names.rack, 'racks/zz-rack'];
    await bound(['192.0.1.0/24'], racks);
    const { name } = await fixture.credentials.getCredential({ name: names.credential });
    expect((await operator.credentials.getCredential({ name })).racks).toEqual([names.rack]);
    const { credentials } = await operator.credentials.listCredentials({});
    expect(credentials.map((each) => each.racks)).toEqual([[names.rack]]);
    expect((await fixture.credentials.getCredential({ name })).racks).toEqual(racks);
  });
});

test('changes of credential and host at once do not send the secret outside', async () => {
  await bound(['192.0.1.0/24'], [names.rack]);
  const { store } = fixture;
  const put = store.put.bind(store);
  const spied = vi.spyOn(store, 'put').mockImplementation(async (key, ...rest) => {
    if (key === 'hosts.aa-host') {
      spied.mockImplementation(put);
      // After the check of the host's change, and before its write.
      await bound(['192.0.1.0/26'], [names.rack]);
    }
    return put(key, ...rest);
  });
  await operator.hosts.updateHost({
    host: { name: names.host, spec: { bmc: { address: own } } },
    updateMask: { paths: ['spec.bmc.address'] },
  });
  spied.mockRestore();
  const { spec: written } = await fixture.hosts.getHost({ name: names.host });
  expect(written?.bmc?.address).toBe(own);
  const opener = { store, openCredential: () => ({ username: 'root', password: 'told' }) };
  const givenFor = { rack: names.rack, bmcAddress: own };
  await expect(openNamed(opener, names.credential, givenFor)).rejects.toThrow(OutOfBounds);
  const inside = { rack: names.rack, bmcAddress: '192.0.1.1' };
  expect(await openNamed(opener, names.credential, inside)).toMatchObject({ password: 'told' });
});
