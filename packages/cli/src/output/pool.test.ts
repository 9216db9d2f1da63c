import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { PlannedRolloutSchema, PoolSchema, RunKind } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { expect, test } from 'vitest';
import { plannedRolloutColumns, poolFields, poolLine } from './pool.ts';
import { formatTable } from './table.ts';
import { widthOf } from './text.ts';

const clock: Clock = { nowMs: () => 1_000_000, suspendAwareMs: () => 0, after: () => () => {} };

test.each([
  ['by tag', (digest: string) => `registry.hall-1.dc.example:5000/team/os@sha256:${digest}`],
  ['by URL', (digest: string) => `http://images.hall-1.dc.example/os.qcow2#sha256=${digest}`],
])('a plan shows at 80 columns from which image a host goes to which: %s', (_, imageOf) => {
  const [from, to] = ['01'.repeat(32), 'fe'.repeat(32)];
  const row = create(PlannedRolloutSchema, {
    ...{ host: 'hosts/rack-1-unit-17', kind: RunKind.REIMAGE, wave: 1 },
    ...{ fromImage: imageOf(from), toImage: imageOf(to) },
    ...{ lostDisks: ['SERIAL-1'], keptDisks: ['SERIAL-2', 'SERIAL-3'] },
  });
  const lines = formatTable(plannedRolloutColumns, [row], 80);
  for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(80);
  expect(lines[1]).toContain(`…`);
  expect(lines[1]).toContain(from.slice(0, 10));
  expect(lines[1]).toContain(to.slice(0, 10));
});

test('a pool shows all that it was given', () => {
  const pool = create(PoolSchema, {
    name: 'pools/web',
    spec: {
      pins: { 'hosts/h7': 'registry.example/os@sha256:ab' },
      pollInterval: durationFromMs(60_000),
      rollout: {
        gate: { approval: true, deadline: durationFromMs(8 * 3_600_000) },
        healthTimeout: durationFromMs(3_600_000),
        waves: [{ name: 'canary', hosts: { labels: { wave: 'first' }, rack: 'racks/r1' } }],
      },
    },
  });
  const fields = new Map(poolFields(pool, clock));
  expect(fields.get('pin of hosts/h7')).toBe('registry.example/os@sha256:ab');
  expect(fields.get('resolved every')).toBe('1m');
  expect(fields.get('gate')).toBe('approval, waited for 8h');
  expect(fields.get('healthy within')).toBe('1h');
  expect(fields.get('wave 0 (canary)')).toBe('racks/r1 wave=first');
});

test('a watch tells of an image that cannot be resolved, however well the hosts are', () => {
  const conditions = [
    { type: 'UpToDate', status: true, reason: 'AllUpdated' },
    { type: 'Degraded', status: true, reason: 'ResolutionFailed' },
  ];
  const line = poolLine(create(PoolSchema, { name: 'pools/web', status: { conditions } }));
  expect(line).toContain('AllUpdated, ResolutionFailed');
});
