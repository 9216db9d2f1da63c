import { create } from '@bufbuild/protobuf';
import {
  agent,
  BmcEndpointSchema,
  HostSchema,
  HostStatusSchema,
  store as wire,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { HostIndex } from './host-index.ts';

function recordOf(labels: Record<string, string>, bootMacs = ['52:54:00:00:00:01']) {
  const spec = { rack: 'racks/r1', bootMacs };
  const host = create(HostSchema, { name: 'hosts/h1', uid: 'u1', labels, spec });
  return create(wire.HostRecordSchema, { host });
}

test('a rack is told when what its hosts boot by changes, and of no other label', () => {
  const index = new HostIndex();
  const told: string[] = [];
  index.onBootChange((rackId) => told.push(rackId));
  const changes: [string, Record<string, string>, number][] = [
    ['a new host', {}, 1],
    ['some label', { site: 'x' }, 1],
    ['a boot profile', { site: 'x', boot: 'secure' }, 2],
    ['the same one', { boot: 'secure' }, 2],
    ['another one', { boot: 'serial' }, 3],
    ['none any more', {}, 4],
  ];
  for (const [at, [what, labels, times]] of changes.entries()) {
    index.note('h1', recordOf(labels), at + 1);
    expect(told.length, what).toBe(times);
  }
  expect(new Set(told)).toEqual(new Set(['r1']));
});

test('a host that is made again is told of, also where the index knew the one before', () => {
  const index = new HostIndex();
  const told: string[] = [];
  index.onBootChange((rackId) => told.push(rackId));
  index.note('h1', recordOf({}), 1);
  index.note('h1', recordOf({}), 1);
  expect(told).toEqual(['r1']);
  index.drop('h1');
  expect(index.hostIdsOfRack('r1')).toEqual([]);
  index.note('h1', recordOf({}), 1);
  expect(told).toEqual(['r1', 'r1', 'r1']);
  expect(index.hostIdOfUid('u1', 'r1')).toBe('h1');
});

type OrderKind = agent.Operation['kind'];

const boot = { bootOperationId: 'u1/3/1/1' };
/** Each with whether a runner has to execute it. */
const orders: readonly [string, OrderKind, boolean][] = [
  ['none', { case: undefined }, false],
  ['of the power', { case: 'setPower', value: create(agent.SetPowerSchema) }, false],
  ['a step of the runner', { case: 'runStep', value: create(agent.RunStepSchema, boot) }, true],
  ['a step of the agent', { case: 'runStep', value: create(agent.RunStepSchema) }, false],
  ['an inspection', { case: 'inspect', value: create(agent.InspectSchema, boot) }, true],
];

function changedBmc(kind: OrderKind) {
  const record = recordOf({});
  const { host } = record;
  if (host?.spec === undefined) throw new Error('a host without a spec');
  host.spec.bmc = create(BmcEndpointSchema, { address: '10.0.0.2', credential: 'c1' });
  host.status = create(HostStatusSchema, { bmcIdentity: { guid: Uint8Array.of(1) } });
  record.verifiedBmc = create(BmcEndpointSchema, { address: '10.0.0.1', credential: 'c1' });
  const operation = create(agent.OperationSchema, { kind });
  record.operation = create(wire.OperationRecordSchema, { operation });
  return record;
}

test('a BMC that was changed is polled during an order for the runner, else after a verify', () => {
  for (const [what, kind, isPolled] of orders) {
    const index = new HostIndex();
    index.note('h1', changedBmc(kind), 1);
    const polled = index.powerTargetsOfRack('r1').map(({ bmc }) => bmc?.address);
    expect(polled, what).toEqual([isPolled ? '10.0.0.2' : undefined]);
  }
});

test('a rack is told when a host becomes polled, and when it no longer is', () => {
  const index = new HostIndex();
  const told: string[] = [];
  for (const [at, [, kind]] of orders.entries()) {
    if (at === 1) index.onPowerTargetsChange((rackId) => told.push(rackId));
    index.note('h1', changedBmc(kind), at + 1);
  }
  expect(told).toEqual(['r1', 'r1', 'r1']);
});
