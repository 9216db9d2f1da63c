import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { HostSchema, HostState, RunKind, RunOutcome, RunPhase } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { expect, test } from 'vitest';
import { type Destruction, disksText, lossLines } from './loss.ts';

const clock: Clock = { nowMs: () => 7_200_000, suspendAwareMs: () => 0, after: () => () => {} };

function hostWith(status: MessageInitShape<typeof HostSchema>['status'], spec = {}) {
  return create(HostSchema, { name: 'hosts/h1', spec, ...(status ? { status } : {}) });
}

const inventory = {
  devices: [
    { serial: 'S1', sizeBytes: 960_000_000_000n },
    { serial: 'S2', sizeBytes: 960_000_000_000n },
    { serial: 'DVD', sizeBytes: 4_000_000_000n, removable: true },
  ],
};
const provisioned = hostWith({
  state: HostState.PROVISIONED,
  display: 'provisioned',
  poweredOn: true,
  image: 'registry.example/os@sha256:ab',
  claim: { by: 'user:ann', reason: 'my database', at: timestampFromMs(3_600_000) },
  inventory,
  run: {
    kind: RunKind.PROVISION,
    phase: RunPhase.ENDED,
    outcome: RunOutcome.SUCCEEDED,
    endTime: timestampFromMs(0),
  },
});

test('the question first says in numbers what is lost, and who uses the host', () => {
  expect(lossLines({ kind: 'release' }, provisioned, clock)).toEqual([
    'It is switched off, and its clean loses all data on 2 disks (1.9 TB).',
    'It is provisioned, power on.',
    'It runs registry.example/os@sha256:ab, deployed 2h ago.',
    'Claimed by user:ann 1h ago: my database',
    'Release hosts/h1? [y/N] ',
  ]);
});

const image = 'registry.example/os:2';

test.each<[Destruction, string, string]>([
  [{ kind: 'clean', steps: [] }, 'All data on 2 disks (1.9 TB) is lost.', 'Clean hosts/h1?'],
  [
    { kind: 'clean', steps: ['hold', 'deploy.erase_devices'] },
    'It runs hold, deploy.erase_devices. A step that erases loses all data on 2 disks (1.9 TB).',
    'Clean hosts/h1?',
  ],
  [
    { kind: 'provision', image, netboot: false },
    'All data on its root disk, of 2 disks (1.9 TB), is lost.',
    `Write ${image} onto hosts/h1?`,
  ],
  [
    { kind: 'reimage', image, netboot: true },
    'It is booted anew; no disk is written.',
    `Write ${image} onto hosts/h1?`,
  ],
  [
    { kind: 'delete', force: false },
    'All data on 2 disks (1.9 TB) is lost, and its record goes.',
    'Delete hosts/h1?',
  ],
  [
    { kind: 'delete', force: true },
    'Its record goes at once; power, and data on 2 disks (1.9 TB), may stay as they are.',
    'Remove hosts/h1 by force?',
  ],
])('the request %j says what is lost', (what, effect, question) => {
  const lines = lossLines(what, provisioned, clock);
  expect(lines[0]).toBe(effect);
  expect(lines.at(-1)).toBe(`${question} [y/N] `);
});

test('a deletion that leaves the data says nothing of disks', () => {
  const keeps = hostWith({ state: HostState.PROVISIONED }, { deletion: { keepData: true } });
  expect(lossLines({ kind: 'delete', force: false }, keeps, clock)[0]).toBe('Its record goes.');
  const idle = hostWith({ state: HostState.AVAILABLE, inventory });
  expect(lossLines({ kind: 'delete', force: false }, idle, clock)[0]).toBe('Its record goes.');
});

test('disks that nobody has listed are said to be unknown, not none', () => {
  const unknown = hostWith({ state: HostState.MANAGEABLE });
  expect(disksText([unknown])).toBe('disks that no inventory has named yet');
  expect(disksText([provisioned, unknown, unknown])).toBe(
    '2 disks (1.9 TB) and, of 2 hosts, disks that no inventory has named yet',
  );
});
