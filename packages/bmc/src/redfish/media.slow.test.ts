/** Virtual media, with the simulated BMC over real sockets. */
import { afterEach, expect, test } from 'vitest';
import type { BmcResult } from '../driver.ts';
import { driverFor, startHost } from './rig.fixture.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

const url = 'http://192.0.2.1:8080/files/one.iso';
const other = 'http://192.0.2.1:8080/files/two.iso';

async function start(changes: Parameters<typeof startHost>[0] = {}) {
  const host = await startHost(changes);
  closers.push(() => host.bmc.close());
  return { ...host, driver: driverFor(host.bmc) };
}

function value<T>(result: BmcResult<T>): T {
  if (result.kind !== 'ok') throw new Error(JSON.stringify(result));
  return result.value;
}

function failureOf(result: BmcResult<unknown>): string {
  return result.kind === 'failed' ? result.type : result.kind;
}

const places = (['system', 'manager'] as const).flatMap((virtualMedia) =>
  (['action', 'imageAlone', 'patch'] as const).map((mediaBy) => ({ virtualMedia, mediaBy })),
);

test.each(places)('a medium is inserted, replaced, read and ejected: %o', async (habits) => {
  const { bmc, driver } = await start({ habits });
  expect(value(await driver.ejectMedia())).toMatchObject({ changed: false });
  expect(value(await driver.insertMedia(other))).toMatchObject({ changed: true });
  expect(bmc.medium()).toBe(other);
  expect(value(await driver.insertMedia(url))).toMatchObject({ changed: true });
  expect(bmc.medium()).toBe(url);
  expect(value(await driver.insertMedia(url))).toMatchObject({ changed: false });
  expect(value(await driver.readMedia())).toBe(url);
  expect(value(await driver.ejectMedia())).toMatchObject({ changed: true });
  expect(bmc.medium()).toBe(undefined);
  expect(value(await driver.readMedia())).toBe(undefined);
});

test('a machine is switched on into its medium once', async () => {
  const { bmc, driver, bootedFrom } = await start();
  value(await driver.insertMedia(url));
  value(await driver.setBootOverride({ device: 'cd', firmware: 'uefi' }));
  value(await driver.setPower('on'));
  expect(bootedFrom()?.device).toBe('cd');
  expect(bmc.medium()).toBe(url);
  value(await driver.setPower('off'));
  value(await driver.setPower('on'));
  expect(bootedFrom()?.device).toBe('none');
});

test('a BMC that says yes and does nothing has not inserted, and has not ejected', async () => {
  const { bmc, driver } = await start({ fault: { kind: 'yesButNothing' } });
  expect(failureOf(await driver.insertMedia(url))).toBe('notApplied');
  bmc.setFault({ kind: 'none' });
  value(await driver.insertMedia(url));
  bmc.setFault({ kind: 'yesButNothing' });
  expect(failureOf(await driver.ejectMedia())).toBe('notApplied');
});

test('a medium that falls out again is missed when it is read', async () => {
  const { driver } = await start({ fault: { kind: 'mediaLost', afterReadings: 2 } });
  value(await driver.insertMedia(url));
  expect(value(await driver.readMedia())).toBe(url);
  expect(value(await driver.readMedia())).toBe(undefined);
});

test('a refusal says so in the words of the BMC', async () => {
  const { driver } = await start({ fault: { kind: 'mediaRefused' } });
  const result = await driver.insertMedia(url);
  expect(result).toMatchObject({ kind: 'failed', type: 'mediaRefused' });
  expect(result.kind === 'failed' && result.backendText).toContain('cannot be fetched');
});

test('a BMC without virtual drives has none to insert into, and nothing to eject', async () => {
  const { driver } = await start({ habits: { virtualMedia: undefined } });
  expect(failureOf(await driver.insertMedia(url))).toBe('mediaMissing');
  expect(value(await driver.ejectMedia())).toMatchObject({ changed: false });
});
