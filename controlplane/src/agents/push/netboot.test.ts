/** What the agent learns of hosts without a disk, and when, from the host's step to its list. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  agent,
  awaitImageStep,
  DeploySpecSchema,
  FleetSchema,
  fetchImageStep,
  HostState,
  store as wire,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import {
  complete,
  connectAgent,
  type PlainAgent,
  toAvailable,
} from '../../host/testing/plain-agent.ts';
import { type Rig, rigWith } from '../../host/testing/rig.ts';
import { listOf } from './boot-lists.ts';

const image = `registry.example/os@sha256:${'ab'.repeat(32)}`;

/** A host that is to run its image without a disk, during the power off before that. */
async function switchingOff() {
  const rig = rigWith({});
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  change(rig, [fetchImageStep, awaitImageStep]);
  await rig.advance(10);
  await toAvailable(rig, plain);
  expect(rig.status()).toMatchObject({ state: HostState.AVAILABLE });
  const deploy = create(DeploySpecSchema, { netboot: true });
  await replica.request({ kind: 'provision', image, deploy });
  expect(stepOf(plain)).toBe(fetchImageStep);
  await plain.report(complete());
  expect(plain.last().kind).toMatchObject({ case: 'setPower', value: { on: false } });
  return { rig, replica, plain };
}

function change(rig: Rig, steps: readonly string[]): void {
  const record = rig.rack();
  if (record === undefined) throw new Error('the rig has a rack');
  record.agentSteps = steps.map((name) => create(agent.StepDescriptionSchema, { name }));
  rig.put('racks.r1', wire.RackRecordSchema, record);
}

function setFleet(rig: Rig, spec: MessageInitShape<typeof FleetSchema>['spec']): void {
  const fleet = create(FleetSchema, { spec: spec ?? {} });
  rig.put('fleet.fleet', wire.FleetRecordSchema, { fleet });
}

function stepOf(plain: PlainAgent): string {
  const { kind } = plain.last();
  return kind.case === 'runStep' ? kind.value.step : String(kind.case);
}

const netboots = (plain: PlainAgent) => {
  return plain.of('bootSnapshot').map(({ hosts }) => hosts[0]?.netboot?.image);
};

/** The position of the order to boot the image among the agent's messages. */
const ordered = (plain: PlainAgent) => {
  return plain.received.findIndex(({ case: kind, value }) => {
    if (kind !== 'operation' || value.kind.case !== 'setPower') return false;
    return value.kind.value.bootFrom === agent.BootTarget.IMAGE;
  });
};

const named = (plain: PlainAgent) => {
  return plain.received.findIndex(({ case: kind, value }) => {
    return kind === 'bootSnapshot' && value.hosts[0]?.netboot !== undefined;
  });
};

test('a list names an image before the order to boot it, until the host is freed', async () => {
  const { rig, replica, plain } = await switchingOff();
  expect(netboots(plain).filter((each) => each !== undefined)).toEqual([]);
  await plain.report(complete());
  expect(netboots(plain).at(-1)).toMatchObject({ reference: image });
  expect(named(plain)).toBeGreaterThan(0);
  expect(ordered(plain)).toBeGreaterThan(named(plain));
  await plain.report(complete());
  await plain.report(complete());
  expect(rig.status()).toMatchObject({ state: HostState.PROVISIONED, image });
  await rig.advance(1_000);
  expect(netboots(plain).at(-1)).toMatchObject({ reference: image });
  await replica.request({ kind: 'release', reason: 'over' });
  await plain.report(complete());
  await rig.advance(1_000);
  expect(netboots(plain).at(-1)).toBeUndefined();
});

test('a change of a registry in the fleet is sent with the next heartbeat', async () => {
  const { rig, plain } = await switchingOff();
  await plain.report(complete());
  setFleet(rig, { registries: [{ registry: 'registry.example', plainHttp: true }] });
  await plain.heartbeat();
  expect(netboots(plain).at(-1)).toMatchObject({ reference: image, plainHttp: true });
  const lists = netboots(plain).length;
  await plain.beat(60_000);
  expect(netboots(plain)).toHaveLength(lists);
});

const fleetWithCredential = {
  registries: [{ registry: 'registry.example', credential: 'credentials/c2' }],
};

function setCredential(rig: Rig, version: bigint): void {
  const credential = { name: 'credentials/c2', version };
  rig.put('credentials.c2', wire.CredentialRecordSchema, { credential });
}

const versionsGiven = (plain: PlainAgent) => {
  return plain
    .of('credentialValue')
    .filter(({ name }) => name === 'credentials/c2')
    .map(({ version }) => version);
};

test('an agent gets the secret before the list that names it, in each session', async () => {
  const { rig, replica, plain } = await switchingOff();
  setCredential(rig, 1n);
  setFleet(rig, fleetWithCredential);
  await plain.report(complete());
  await plain.cut();
  const again = await connectAgent(rig, replica, { journal: { id: 'j1', generation: 2n } });
  expect(netboots(again)).toMatchObject([{ credential: 'credentials/c2', credentialVersion: 1n }]);
  const given = again.received.findIndex((message) => {
    return message.case === 'credentialValue' && message.value.name === 'credentials/c2';
  });
  expect(given).toBeGreaterThan(0);
  expect(given).toBeLessThan(named(again));
  setCredential(rig, 2n);
  await again.beat(33_000);
  expect(netboots(again).at(-1)).toMatchObject({ credentialVersion: 2n });
  expect(new Set(versionsGiven(again))).toEqual(new Set([1n, 2n]));
});

test('a host that may no longer fetch its image keeps it, with a fault until it may', async () => {
  const { rig, plain } = await switchingOff();
  await plain.report(complete());
  await plain.report(complete());
  await plain.report(complete());
  setFleet(rig, fleetWithCredential);
  await plain.heartbeat();
  expect(rig.status()).toMatchObject({ state: HostState.PROVISIONED, image });
  expect(netboots(plain).at(-1)).toMatchObject({ reference: image, credential: '' });
  await rig.advance(1_000);
  expect(rig.status().faults).toMatchObject([
    { type: 'netbootImageAccess', message: expect.stringContaining('credentials/c2, which the') },
  ]);
  setCredential(rig, 1n);
  await plain.beat(33_000);
  expect(netboots(plain).at(-1)).toMatchObject({ credential: 'credentials/c2' });
  expect(rig.status().faults).toEqual([]);
});

test('a host whose image the list has no room for is not ordered to boot it', async () => {
  const { rig, plain } = await switchingOff();
  // More than is accepted now: written before the bound existed.
  const caPem = 'x'.repeat(4 * 1024 * 1024);
  setFleet(rig, { registries: [{ registry: 'registry.example', caPem }] });
  await plain.report(complete());
  expect(ordered(plain)).toBe(-1);
  expect(named(plain)).toBe(-1);
  await rig.advance(1_000);
  const { run } = rig.status();
  expect(run?.error).toMatchObject({ message: expect.stringContaining('smaller ca_pem') });
  expect(plain.ended).toBe(false);
});

test('a rack whose images do not fit names those in service first', () => {
  const host = (name: string, inService: boolean) => ({
    host: create(agent.BootHostSchema, {
      hostUid: name,
      hostName: `hosts/${name}`,
      macs: ['52:54:00:00:00:01'],
      bootProfile: 'secure',
      netboot: { image: { reference: image } },
    }),
    ...{ bytes: 400, inService, problem: undefined },
  });
  const bare = { host: create(agent.BootHostSchema, { hostUid: 'b' }), bytes: 100 };
  const without = { ...bare, inService: false, problem: undefined };
  const all = [host('new', false), host('old', true), host('older', true), without];
  const { hosts, leftOut, problems } = listOf(all, 1_000);
  expect(hosts.map(({ hostUid, netboot }) => [hostUid, netboot !== undefined])).toEqual([
    ['new', false],
    ['old', true],
    ['older', true],
    ['b', false],
  ]);
  expect(hosts[0]).toMatchObject({ macs: ['52:54:00:00:00:01'], bootProfile: 'secure' });
  expect([...leftOut.keys()]).toEqual(['new']);
  expect(problems).toEqual([expect.stringContaining('hosts/new')]);
});
