/** When a retry is due because the settings have changed. */
import { create } from '@bufbuild/protobuf';
import {
  HostSpecSchema,
  ImageRegistrySchema,
  PoolAmountSchema,
  store as wire,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { image, Rollout, seen } from '../decide/rollout.fixture.ts';
import { failureBasis, haltBasis, isOfOther } from './basis.ts';
import type { SeenHost } from './seen.ts';

const registry = create(ImageRegistrySchema, { registry: 'registry.example' });
const amount = (value: number) => create(PoolAmountSchema, { amount: { case: 'count', value } });

function rollout(change: ConstructorParameters<typeof Rollout>[1] = {}): wire.PoolRecord {
  return new Rollout(2, change).push('A').record;
}

const basisOf = (record: wire.PoolRecord, host: SeenHost, registries = [registry]) =>
  failureBasis(record, registries)(host);

test('a halt is lifted by other amounts or another deployment, and by nothing else', () => {
  const before = haltBasis(rollout());
  expect(haltBasis(rollout({ rollout: { paused: true } }))).toBe(before);
  for (const spec of [
    { rollout: { maxUnavailable: amount(2) } },
    { rollout: { failureThreshold: amount(2) } },
    { deploy: { firstBoot: { userData: '#cloud-config\n' } } },
  ]) {
    expect(haltBasis(rollout(spec))).not.toBe(before);
  }
  expect(before).toMatch(/^[0-9a-f]{8}$/);
});

test('a host is written again for another disk, boot address, deployment or retry', () => {
  const record = rollout();
  const host = seen(1);
  const before = basisOf(record, host);
  expect(basisOf(record, seen(1, { labels: { other: 'label' } }))).toBe(before);
  const changed = [
    basisOf(record, seen(1, { retries: 1n })),
    basisOf(record, seen(1, { spec: create(HostSpecSchema, { bootMacs: ['02:00:00:00:00:01'] }) })),
    basisOf(record, seen(1, { spec: create(HostSpecSchema, { rootDisk: { serial: 'S' } }) })),
    basisOf(rollout({ deploy: { firstBoot: { userData: 'x' } } }), host),
  ];
  expect(new Set([before, ...changed]).size).toBe(changed.length + 1);
  for (const basis of changed) {
    expect(basis.split('.')[0]).not.toBe(before.split('.')[0]);
    expect(basis.split('.')[1]).toBe(before.split('.')[1]);
  }
});

test('the source of the image counts while nothing was written, and not any more after', () => {
  const record = rollout();
  const before = basisOf(record, seen(1));
  const pinned = rollout({ pins: { 'hosts/h1': image('B') } });
  const others = [basisOf(record, seen(1), []), basisOf(pinned, seen(1))];
  for (const now of others) {
    expect(now.split('.')[0]).toBe(before.split('.')[0]);
    const failure = (counted: boolean) =>
      create(wire.PoolFailureSchema, { basis: before, counted });
    expect(isOfOther(failure(false), now)).toBe(true);
    expect(isOfOther(failure(true), now)).toBe(false);
    expect(isOfOther(failure(false), before)).toBe(false);
  }
  const written = basisOf(record, seen(1, { retries: 2n }));
  const counted = create(wire.PoolFailureSchema, { basis: before, counted: true });
  expect(isOfOther(counted, written)).toBe(true);
  // None was recorded.
  expect(isOfOther(create(wire.PoolFailureSchema, { counted: true }), written)).toBe(false);
});
