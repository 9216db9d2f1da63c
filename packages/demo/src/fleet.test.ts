import { expect, test } from 'vitest';
import { imageDiskModel, planFleet, smbiosBytes, soundMachines } from './fleet.ts';
import { type DemoOptions, parseOptions } from './options.ts';

function optionsOf(...args: string[]): DemoOptions {
  const parsed = parseOptions(args);
  if (parsed.kind !== 'run') throw new Error('these arguments are right');
  return parsed.options;
}

test('the demo makes the same fleet from the same seed, and another from another', () => {
  expect(planFleet(optionsOf('--seed', '5'))).toEqual(planFleet(optionsOf('--seed', '5')));
  expect(planFleet(optionsOf('--seed', '6'))).not.toEqual(planFleet(optionsOf('--seed', '5')));
});

test('the demo gives every machine an identity of its own, whatever the seed', () => {
  for (let seed = 0; seed < 50; seed += 1) {
    const { machines } = planFleet(optionsOf('--hosts', '64', '--seed', String(seed)));
    for (const key of ['name', 'mac', 'uuid', 'serial'] as const) {
      expect(new Set(machines.map((machine) => machine[key])).size).toBe(machines.length);
    }
  }
});

test('the demo spreads the machines over the racks and the forms of booting', () => {
  const { machines, racks } = planFleet(optionsOf());
  expect(racks).toEqual(['r1', 'r2']);
  expect(machines.filter(({ rack }) => rack === 'r1')).toHaveLength(6);
  expect(new Set(machines.map(({ form }) => form)).size).toBe(3);
});

test('the demo adds the four broken examples for the story, and none for a script', () => {
  const examples = planFleet(optionsOf()).machines.filter(({ isExample }) => isExample);
  expect(examples.map(({ name, fault }) => [name, fault])).toEqual(
    ['wrong-password', 'silent', 'rubbish', 'yes-but-nothing'].map((name) => [name, name]),
  );
  expect(planFleet(optionsOf('--script', 'x')).machines).toHaveLength(8);
});

test('the demo counts on no host that has a fault it cannot bear', () => {
  const fleet = planFleet(optionsOf('--fault', 'silent:h1', '--fault', 'slow:h2'));
  const sound = soundMachines(fleet).map(({ name }) => name);
  expect(sound).toEqual(['h2', 'h3', 'h4', 'h5', 'h6', 'h7', 'h8']);
});

test('the demo gives the last three sound machines, or all, a disk with room for an image', () => {
  const takers = (...args: string[]) =>
    planFleet(optionsOf(...args)).machines.filter(({ takesImages }) => takesImages);
  expect(takers().map(({ name }) => name)).toEqual(['h6', 'h7', 'h8']);
  expect(takers('--hosts', '1').map(({ name }) => name)).toEqual(['h1']);
  expect(takers('--fault', 'silent:h8', '--fault', 'slow:h7').map(({ name }) => name)).toEqual([
    'h5',
    'h6',
    'h7',
  ]);
  for (const { disks } of takers()) {
    const fitting = disks.filter(({ model }) => model === imageDiskModel);
    expect(fitting.map(({ sizeBytes }) => sizeBytes)).toEqual([16 * 1024 * 1024]);
  }
});

test('a UUID is written as SMBIOS holds it: three fields with their low byte first', () => {
  expect(smbiosBytes('00112233-4455-6677-8899-aabbccddeeff')).toBe(
    '33221100554477668899aabbccddeeff',
  );
});
