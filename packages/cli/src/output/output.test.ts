import { clone, create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  asRunNumber,
  DeletionMode,
  FailureType,
  FaultSeverity,
  type Fleet,
  FleetSchema,
  HoldScope,
  type Host,
  HostPower,
  HostSchema,
  HostState,
  RackSchema,
  RunKind,
  RunPhase,
  StepState,
} from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { freezesOf } from '../commands/frame/freezes.ts';
import { parseEndpoint, specFrom } from '../commands/host/spec.ts';
import { enumName, enumValue } from './enum-name.ts';
import { changeText, hostColumns, hostFields, pastHostFields, problemText } from './host.ts';
import { formatFields, formatTable } from './table.ts';
import { clean, fit, pad, widthOf } from './text.ts';
import { ago, duration, parseDuration, parseInstant } from './time.ts';

const clock: Clock = { nowMs: () => 1_000_000, suspendAwareMs: () => 0, after: () => () => {} };

function cleaningHost(id: string): Host {
  return create(HostSchema, {
    name: `hosts/${id}`,
    updateTime: timestampFromMs(900_000),
    spec: { rack: 'racks/hall-1-row-2', bmc: { address: 'bmc-of-a-host.rack2.dc.example' } },
    status: {
      state: HostState.MANAGEABLE,
      display: 'cleaning, waiting for runner',
      dirty: true,
      poweredOn: true,
      progress: { percent: 42 },
      run: {
        kind: RunKind.CLEAN,
        number: asRunNumber(3),
        phase: RunPhase.RUNNING,
        currentStep: 1,
        steps: [
          { name: 'power.bootRunner', state: StepState.SUCCEEDED },
          { name: 'deploy.erase_devices', state: StepState.RUNNING },
        ],
      },
      lastError: {
        failure: { type: FailureType.UNVERIFIED, message: 'the disk lies about its zeroes' },
      },
    },
  });
}

test('a host that is to be deleted shows who asked for it, when, why and how', () => {
  const at = timestampFromMs(940_000);
  const deletion = { by: 'user:ann', reason: 'sold', at, mode: DeletionMode.FORCE };
  const status = { deletion } as const;
  const fields = new Map(hostFields(create(HostSchema, { name: 'hosts/h1', status }), clock));
  expect(fields.get('to be deleted')).toBe('by force, asked by user:ann 1m ago: sold');
});

test('a host of a time in the past says nothing of its agent, of which nothing is kept', () => {
  const host = create(HostSchema, { name: 'hosts/h1' });
  const namesOf = (fields: [string, string][]) => fields.map(([name]) => name);
  expect(namesOf(hostFields(host, clock))).toContain('agent');
  expect(namesOf(pastHostFields(host, clock))).not.toContain('agent');
});

describe('a table of hosts', () => {
  const rows = [cleaningHost('h1'), cleaningHost('a-host-with-a-rather-long-name-of-its-own')];

  test.each([80, 100, 120, 200])('fits %i columns and shows names, states and runs', (columns) => {
    const lines = formatTable(hostColumns(clock), rows, columns);
    for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(columns);
    expect(lines[0]).toMatch(/^NAME +STATE +RUN/);
    expect(lines[1]).toMatch(/^hosts\/h1 /);
  });

  test.each([60, 80, 100])('keeps what is wrong with a host within %i columns', (columns) => {
    const [heading, row] = formatTable(hostColumns(clock), rows.slice(0, 1), columns);
    expect(heading).toContain('PROBLEM');
    expect(row).toContain('unverified: the disk');
  });

  test('loses its problems last of all', () => {
    const headings = Array.from({ length: 170 }, (_, at) =>
      formatTable(hostColumns(clock), rows.slice(0, 1), 200 - at)[0]?.split(/ +/),
    );
    const dropped = headings.find((titles) => titles?.includes('PROBLEM') === false);
    expect(dropped).toEqual(['NAME', 'STATE']);
  });

  test('shows of each host that its rack, or the fleet, is frozen', () => {
    const freeze = { by: 'user:ann', reason: 'a drill' };
    const rack = create(RackSchema, { name: 'racks/r1', status: { freeze } });
    const other = create(RackSchema, { name: 'racks/r2' });
    const hosts = ['r1', 'r2'].map((id) =>
      create(HostSchema, { name: `hosts/of-${id}`, spec: { rack: `racks/${id}` } }),
    );
    const shown = (fleet: Fleet) => {
      const { ofHost } = freezesOf(fleet, [rack, other]);
      return formatTable(hostColumns(clock, ofHost), hosts, undefined).slice(1);
    };
    const [first, second] = shown(create(FleetSchema));
    expect(first).toContain('rack frozen by user:ann: a drill');
    expect(second).not.toContain('frozen');
    const all = shown(create(FleetSchema, { status: { freeze: { by: 'user:bob', reason: 'x' } } }));
    expect(all[0]).toContain('rack frozen by user:ann: a drill; fleet frozen by user:bob: x');
    expect(all[1]).toContain('fleet frozen by user:bob: x');
  });

  test('uses 200 columns for everything', () => {
    const [heading, row] = formatTable(hostColumns(clock), rows.slice(0, 1), 200);
    for (const title of ['RACK', 'BMC', 'POWER', 'CHANGED', 'PROBLEM']) {
      expect(heading).toContain(title);
    }
    expect(row).toContain('clean 3: 2/2 deploy.erase_devices 42%');
  });

  test('is whole when nobody’s terminal limits it', () => {
    const text = formatTable(hostColumns(clock), rows, undefined).join('\n');
    expect(text).not.toContain('…');
    expect(text).toContain('bmc-of-a-host.rack2.dc.example');
    expect(text).toContain('unverified: the disk lies about its zeroes');
  });

  test('never exceeds the terminal, whatever the hosts are called', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 60 });
    fc.assert(
      fc.property(
        fc.array(text, { maxLength: 5 }),
        fc.integer({ min: 80, max: 200 }),
        (names, columns) => {
          const hosts = names.map((name) =>
            create(HostSchema, { name, status: { display: name } }),
          );
          for (const line of formatTable(hostColumns(clock), hosts, columns)) {
            expect(widthOf(line)).toBeLessThanOrEqual(columns);
          }
        },
      ),
    );
  });
});

describe('text from elsewhere', () => {
  test('cannot act on the terminal', () => {
    expect(clean('a\u001b[31mb\nc\u009bd\u202ee\u2028f')).toBe('a�[31mb�c�d�e�f');
    const [, line] = formatTable([{ title: 'T', value: (row: string) => row }], ['a\nb'], 80);
    expect(line).toBe('a�b');
    expect(formatFields([['name', '\u001b]0;x\u0007']])[0]).toBe('name  �]0;x�');
  });

  test('is cut and filled by its width on the screen', () => {
    expect(fit('abcdef', 4)).toBe('abc…');
    expect(fit('abcd', 4)).toBe('abcd');
    expect(fit('日本語', 5)).toBe('日本…');
    expect(widthOf(pad('日本', 6))).toBe(6);
  });
});

describe('words', () => {
  test('words for times are short', () => {
    expect(duration(0)).toBe('0s');
    expect(duration(59_999)).toBe('59s');
    expect(duration(3_661_000)).toBe('1h 1m');
    expect(duration(90_000_000)).toBe('1d 1h');
    expect(ago(clock, timestampFromMs(940_000))).toBe('1m ago');
    expect(ago(clock, timestampFromMs(1_005_000))).toBe('in 5s');
    expect(ago(clock, undefined)).toBe('');
  });

  test('words for enum values come from the API, and unknown values stay numbers', () => {
    expect(enumName('RunKind', RunKind.CLEAN)).toBe('clean');
    expect(enumName('RunOutcome', 4)).toBe('cancelled');
    expect(enumName('ErasureLevel', 2)).toBe('metadata-only');
    expect(enumName('RunKind', 0)).toBe('');
    expect(enumName('RunKind', 99)).toBe('99');
    expect(enumValue('ErasureLevel', 'metadata-only')).toBe(2);
    expect(enumValue('ErasureLevel', 'unspecified')).toBeUndefined();
  });

  test('words for a change say host, state, run and problem', () => {
    expect(changeText(cleaningHost('h1'))).toBe(
      'hosts/h1  cleaning, waiting for runner, dirty  clean 3: 2/2 deploy.erase_devices 42%  ' +
        'unverified: the disk lies about its zeroes',
    );
  });
});

describe('flags of a host', () => {
  test.each([
    ['10.0.0.1', { address: '10.0.0.1' }],
    ['10.0.0.1:6230', { address: '10.0.0.1', port: 6230 }],
    ['bmc.example:623', { address: 'bmc.example', port: 623 }],
    ['fe80::1', { address: 'fe80::1' }],
    ['[fe80::1]', { address: 'fe80::1' }],
    ['[fe80::1]:623', { address: 'fe80::1', port: 623 }],
    ['https://x', { address: 'https://x' }],
  ])('the BMC %s is %j', (given, expected) => {
    expect(parseEndpoint(given)).toEqual(expected);
  });

  test('become a spec, and the paths of exactly what was given', () => {
    expect(specFrom({})).toEqual({ spec: {}, labels: {}, paths: [] });
    const { spec, labels, paths } = specFrom({
      bmc: '10.0.0.1',
      mac: ['52-54-00-AB-00-01'],
      retired: false,
      power: 'off',
      allowDiskless: false,
      label: ['a=b', 'old-'],
      priority: ['bios.reset=0', 'raid.apply-'],
    });
    expect(labels).toEqual({ a: 'b' });
    expect(spec).toEqual({
      power: HostPower.OFF,
      bmc: { address: '10.0.0.1' },
      bootMacs: ['52:54:00:ab:00:01'],
      retired: false,
      cleaning: { allowDiskless: false, priorityOverrides: { 'bios.reset': 0 } },
    });
    expect([...paths].sort()).toEqual([
      'labels.`a`',
      'labels.`old`',
      'spec.bmc.address',
      'spec.bmc.port',
      'spec.boot_macs',
      'spec.cleaning.allow_diskless',
      'spec.cleaning.priority_overrides.`bios.reset`',
      'spec.cleaning.priority_overrides.`raid.apply`',
      'spec.power',
      'spec.retired',
    ]);
  });
});

test.each([
  [undefined, undefined, ''],
  [undefined, true, 'on'],
  [HostPower.ON, true, 'on'],
  [HostPower.OFF, true, 'on, wanted: off'],
  [HostPower.ON, undefined, 'unknown, wanted: on'],
])('power that is wanted %s and seen %s is shown as "%s"', (power, poweredOn, text) => {
  const host = create(HostSchema, {
    name: 'hosts/h1',
    ...(power === undefined ? {} : { spec: { power } }),
    status: { state: HostState.MANAGEABLE, ...(poweredOn === undefined ? {} : { poweredOn }) },
  });
  expect(hostFields(host, clock)).toContainEqual(['power', text]);
});

describe('what people have said of a host', () => {
  const host = create(HostSchema, {
    name: 'hosts/h1',
    status: {
      state: HostState.PROVISIONED,
      display: 'provisioned',
      image: 'registry.example/os:1',
      claim: { by: 'user:ann', reason: 'database', at: timestampFromMs(940_000) },
      holds: [
        {
          scope: HoldScope.RELEASE,
          by: 'user:bob',
          reason: 'audit',
          since: timestampFromMs(940_000),
          until: timestampFromMs(1_060_000),
        },
      ],
      faults: [
        { type: 'bmcBusy', message: 'slow', severity: FaultSeverity.WARNING },
        { type: 'releaseFailed', message: 'power stayed on', severity: FaultSeverity.ERROR },
      ],
    },
  });

  test('stands among its fields: claim, holds with their ends, faults and warnings', () => {
    const fields = hostFields(host, clock);
    expect(fields).toContainEqual(['claimed by', 'user:ann 1m ago: database']);
    expect(fields).toContainEqual(['release held', 'by user:bob 1m ago, ends in 1m: audit']);
    expect(fields).toContainEqual(['image', 'registry.example/os:1']);
    expect(fields.map(([title]) => title)).toEqual(expect.arrayContaining(['warning', 'fault']));
  });

  test('is its problem, and an error comes before a warning', () => {
    expect(problemText(host)).toBe('releaseFailed: power stayed on; release held: audit');
    const free = clone(HostSchema, host);
    if (free.status !== undefined) free.status.holds = [];
    expect(problemText(free)).toBe('releaseFailed: power stayed on');
  });
});

test('durations and times that people write are read exactly, and nothing else is', () => {
  expect(['90s', '30m', '2h', '3d'].map(parseDuration)).toEqual([
    90_000, 1_800_000, 7_200_000, 259_200_000,
  ]);
  expect(['', '2', '2x', '-1s', '1.5h', '1000000000s'].map(parseDuration)).toEqual(
    Array.from({ length: 6 }, () => undefined),
  );
  expect(parseInstant('2026-01-31T12:00:00Z')).toEqual(timestampFromMs(Date.UTC(2026, 0, 31, 12)));
  expect(['noon', '2026-01-31', ''].map(parseInstant)).toEqual([undefined, undefined, undefined]);
});
