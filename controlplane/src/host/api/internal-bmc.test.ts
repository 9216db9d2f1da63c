/** BMCs at addresses of this machine or its link: agents connect there only if they are listed. */
import { Role } from '@rackwright/messages';
import { operatorClients } from '@rackwright/rpc';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addSide, type Names, specOf, tokenFor } from '../../services/access.fixture.ts';
import { type Fixture, startFixture, violatedFields } from '../../services/rpc.fixture.ts';

type Clients = ReturnType<typeof operatorClients>;

let fixture: Fixture;
let names: Names;
let operator: Clients;

beforeAll(async () => {
  fixture = await startFixture();
  names = await addSide(fixture, 'aa');
  const token = await tokenFor(fixture, 'hand', Role.OPERATOR, { racks: [names.rack] });
  operator = operatorClients(fixture.channel, token);
  // Operators may say where its password goes.
  await fixture.credentials.updateCredential({
    credential: { name: names.credential, bmcNetworks: ['0.0.0.0/1', '128.0.0.0/1', '::/1'] },
    updateMask: { paths: ['bmc_networks'] },
  });
});

afterAll(() => fixture.stop());

const list = (internalAddresses: string[]) =>
  fixture.fleet.updateFleet({
    fleet: { spec: { internalAddresses } },
    updateMask: { paths: ['spec.internal_addresses'] },
  });

const specAt = (address: string, port?: number) => {
  const { bmc, ...rest } = specOf('aa', 7);
  return { ...rest, bmc: { ...bmc, address, ...(port === undefined ? {} : { port }) } };
};

/** Every call that sets a BMC's address, and the field of its refusal. */
const ways = (address: string) => {
  const spec = specAt(address);
  const validateOnly = true;
  return [
    operator.hosts.createHost({ hostId: 'near', host: { spec }, validateOnly }),
    operator.hosts.updateHost({
      host: { name: names.host, spec: { bmc: { address } } },
      updateMask: { paths: ['spec.bmc.address'] },
      validateOnly,
    }),
    operator.discovery.acceptDiscoveredMachine({
      ...{ name: names.machine, hostId: 'near', host: { spec }, validateOnly },
    }),
    operator.discovery.createExpectedHost({
      expectedHostId: 'near',
      expectedHost: { spec: { ...spec, bootMacs: [] }, match: { serial: 'near' } },
      validateOnly,
    }),
  ];
};

test.each([
  '127.0.0.1',
  '169.254.169.254',
  '0.0.0.0',
  '::1',
  'fe80::1',
  'localhost',
  'a.localhost',
])('no BMC is at %s', async (address) => {
  for (const way of ways(address)) {
    expect(await violatedFields(way)).toContainEqual(expect.stringMatching(/spec\.bmc\.address$/));
  }
});

test('an IPv4 address in an IPv6 one is judged as itself', async () => {
  const host = { spec: specAt('::ffff:127.0.0.1') };
  const made = fixture.hosts.createHost({ hostId: 'near', host, validateOnly: true });
  expect(await violatedFields(made)).toContain('host.spec.bmc.address');
});

test('a BMC may be where it is listed, and stays when it is listed no more', async () => {
  await list(['127.0.0.1:6230']);
  const at = (port: number) => ({ spec: specAt('127.0.0.1', port) });
  const other = operator.hosts.createHost({ hostId: 'near', host: at(6231) });
  expect(await violatedFields(other)).toEqual(['host.spec.bmc.address']);
  await operator.hosts.createHost({ hostId: 'near', host: at(6230) });
  await list([]);
  const labels = { site: 'berlin' };
  const changed = await fixture.hosts.updateHost({
    host: { name: 'hosts/near', labels },
    updateMask: { paths: ['labels'] },
  });
  expect(changed.labels).toEqual(labels);
  const moved = fixture.hosts.updateHost({
    host: { name: 'hosts/near', spec: { bmc: { port: 6231 } } },
    updateMask: { paths: ['spec.bmc.port'] },
  });
  expect(await violatedFields(moved)).toEqual(['host.spec.bmc.address']);
});
