/** Updates of firmware, with the simulated BMC over real sockets. */
import { afterEach, expect, test } from 'vitest';
import type { BmcResult } from '../driver.ts';
import { Governor } from '../governor.ts';
import { defaultGovernorLimits } from '../governor-state.ts';
import { mayFetch } from './firmware-update.ts';
import { clock, driverFor, readBack, startHost } from './rig.fixture.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

const firmwareUrls = ['https://images.example.org/firmware/'];
const order = {
  component: 'BIOS',
  version: '2.2',
  uri: 'https://images.example.org/firmware/BIOS-2.2.bin',
  checkOnly: false,
};
const firmware = [{ id: 'BIOS', version: '2.1' }];
const update = { windowMs: 4_000, pollMs: 50, shownWithinMs: 3_000 };

async function start(
  { habits, fault }: Parameters<typeof startHost>[0] = {},
  changes: { readonly firmwareUrls?: readonly string[] } = {},
) {
  const { bmc } = await startHost({
    firmware,
    habits: { updateMs: 1_000, restartMs: 300, ...habits },
    ...(fault === undefined ? {} : { fault }),
  });
  closers.push(() => bmc.close());
  const options = { firmwareUrls, ...changes };
  // A BMC that restarts is silent: it is asked again soon.
  const breaker = { breakerOpenMs: 50, breakerOpenMsMax: 50, spacingMs: 0 };
  const governor = new Governor(clock, { ...defaultGovernorLimits, ...breaker }, () => {});
  const driver = driverFor(bmc, { options, parts: { readBack, update, governor } });
  const told: number[] = [];
  const updates = (more: Partial<typeof order> = {}) =>
    driver.updateFirmware({ ...order, ...more }, (percent) => void told.push(percent));
  const versions = async () => {
    const read = value(await driver.readFirmware());
    return read.components.map(({ id, version }) => `${id} ${version}`);
  };
  return { bmc, updates, versions, told };
}

function value<T>(result: BmcResult<T>): T {
  if (result.kind !== 'ok') throw new Error(JSON.stringify(result));
  return result.value;
}

test.each(['task', 'location', 'nothing'] as const)(
  'an update that is answered by %s is over when the version reads so, and not ordered twice',
  async (updateAnswers) => {
    const { bmc, updates, versions, told } = await start({ habits: { updateAnswers } });
    expect(value(await updates())).toEqual({ changed: true, notes: [] });
    expect(await versions()).toEqual(['BMC 1.0.0', 'BIOS 2.2']);
    expect(told.length > 0).toBe(updateAnswers !== 'nothing');
    expect(told).toEqual(told.toSorted((a, b) => a - b));
    expect(value(await updates()).changed).toBe(false);
    expect(bmc.updates()).toBe(1);
  },
);

test.each(['updateRestarts', 'tasksReordered', 'dropsHalfway'] as const)(
  'an update survives %s, by what is read back',
  async (kind) => {
    const { bmc, updates, versions } = await start({ fault: { kind } });
    expect(value(await updates()).changed).toBe(true);
    expect(await versions()).toContain('BIOS 2.2');
    expect(bmc.updates()).toBe(1);
  },
);

test.each(['redirect', 'tooManyBytes', 'gatewayTimeout'] as const)(
  'an update whose order is answered by %s may be under way, so it is waited for',
  async (by) => {
    const { bmc, updates, versions } = await start({ fault: { kind: 'answersOddly', by } });
    expect(value(await updates()).changed).toBe(true);
    expect(await versions()).toContain('BIOS 2.2');
    expect(bmc.updates()).toBe(1);
  },
);

test('an update that is said to be done and is not is reported as such', async () => {
  const { updates } = await start({ fault: { kind: 'updateLies' } });
  expect(await updates()).toMatchObject({ type: 'notApplied', backendText: 'it reads 2.1' });
});

test('an update whose task fails says why', async () => {
  const { updates } = await start({ fault: { kind: 'updateFails' } });
  expect(await updates()).toMatchObject({
    type: 'updateFailed',
    backendText: 'the image is damaged',
  });
});

test('an update that does not end in time is still pending', async () => {
  const { updates, bmc } = await start({ habits: { updateMs: 600_000 } });
  expect(await updates()).toMatchObject({ type: 'stillPending' });
  expect(bmc.updates()).toBe(1);
});

test('a BMC that does not come back leaves it pending, and nothing to be tried again', async () => {
  const { updates } = await start({
    habits: { restartMs: 60_000 },
    fault: { kind: 'updateRestarts' },
  });
  expect(await updates()).toMatchObject({ kind: 'failed', type: 'stillPending' });
});

test('an update that was ordered before is only observed', async () => {
  const { updates, bmc } = await start();
  expect(await updates({ checkOnly: true })).toMatchObject({ type: 'notApplied' });
  expect(bmc.updates()).toBe(0);
});

test('an update that BMC or configuration does not offer is refused before the order', async () => {
  const { updates, bmc } = await start();
  expect(await updates({ component: 'NIC' })).toMatchObject({ type: 'updateFailed' });
  const elsewhere = { uri: 'https://images.example.org/other/BIOS-2.2.bin' };
  expect(await updates(elsewhere)).toMatchObject({ type: 'notAllowed' });
  const none = await start({}, { firmwareUrls: [] });
  expect(await none.updates()).toMatchObject({ type: 'notAllowed' });
  expect(bmc.updates() + none.bmc.updates()).toBe(0);
});

test('a URL is allowed by its origin and whole parts of its path', () => {
  const cases: readonly (readonly [string, boolean])[] = [
    ['https://images.example.org/firmware/a/b.bin', true],
    ['https://images.example.org:443/firmware/b.bin', true],
    ['https://images.example.org/firmware-b.bin', false],
    ['https://images.example.org/firmware/../b.bin', false],
    ['https://images.example.org/firmware/%2e%2e/b.bin', false],
    ['https://images.example.org/firmware//b.bin', false],
    ['https://images.example.org/firmware/b.bin?x', false],
    ['https://user@images.example.org/firmware/b.bin', false],
    ['http://images.example.org/firmware/b.bin', false],
    ['https://images.example.org.evil/firmware/b.bin', false],
    ['file:///firmware/b.bin', false],
  ];
  for (const [uri, may] of cases) {
    expect(mayFetch(uri, ['https://images.example.org/firmware']), uri).toBe(may);
  }
});
