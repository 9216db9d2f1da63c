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

function changedBmc(order: 'runStep' | 'setPower' | undefined) {
  const record = recordOf({});
  const { host } = record;
  if (host?.spec === undefined) throw new Error('a host without a spec');
  host.spec.bmc = create(BmcEndpointSchema, { address: '10.0.0.2', credential: 'c1' });
  host.status = create(HostStatusSchema, { bmcIdentity: { guid: Uint8Array.of(1) } });
  record.verifiedBmc = create(BmcEndpointSchema, { address: '10.0.0.1', credential: 'c1' });
  if (order === undefined) return record;
  const operation = create(agent.OperationSchema, { kind: { case: order, value: {} } });
  record.operation = create(wire.OperationRecordSchema, { operation });
  return record;
}

test('a BMC that was changed is polled during an order for the runner, else after a verify', () => {
  const index = new HostIndex();
  const told: string[] = [];
  index.onPowerTargetsChange((rackId) => told.push(rackId));
  const polled = () => index.powerTargetsOfRack('r1').map(({ bmc }) => bmc?.address);
  index.note('h1', changedBmc('setPower'), 1);
  expect(polled()).toEqual([undefined]);
  told.length = 0;
  index.note('h1', changedBmc('runStep'), 2);
  expect(polled()).toEqual(['10.0.0.2']);
  index.note('h1', changedBmc(undefined), 3);
  expect(polled()).toEqual([undefined]);
  expect(told).toEqual(['r1', 'r1']);
});
