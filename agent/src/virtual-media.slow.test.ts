/** Boots from virtual media: from the operation's own words to a machine and its virtual drive. */
import { create } from '@bufbuild/protobuf';
import { agent, BootMethod } from '@rackwright/messages';
import type { FinalResult } from '@rackwright/results';
import type { RedfishHabits } from '@rackwright/sim/redfish';
import { expect, test } from 'vitest';
import { access, startBmc, startExecutor } from './redfish.fixture.ts';

const url = 'http://127.0.0.1:8080/files/boot-medium-0123456789abcdef.iso';

/** A host, and the changes of its grants, its power and its drive, in order. */
async function setUp({
  firmware = 'uefi',
  mediumUrl = url,
  habits = {},
}: {
  readonly firmware?: 'uefi' | 'bios';
  /** Empty: this agent serves none. */
  readonly mediumUrl?: string;
  readonly habits?: Partial<RedfishHabits>;
} = {}) {
  const events: string[] = [];
  let served = mediumUrl;
  const bmc = await startBmc(
    { habits: { powerDelayMs: [0, 0], ...habits } },
    {
      on: ({ device }) => events.push(`on from ${device}`),
      off: () => events.push('off'),
      medium: (now) => events.push(now === undefined ? 'ejected' : `inserted ${now}`),
    },
  );
  const execute = startExecutor(
    { readBackWindowMs: 1_000, firmware },
    {
      bootMediumUrl: () => (served === '' ? undefined : served),
      onGrant: (event) => events.push(event),
    },
  );
  const setPower = (
    value: Partial<Pick<agent.SetPower, 'on' | 'bootFrom' | 'bootMethod'>>,
  ): Promise<FinalResult> => {
    const order = create(agent.SetPowerSchema, {
      ...{ bmc: access(bmc, bmc.certificateSha256), bootMethod: BootMethod.VIRTUAL_MEDIA },
      ...value,
    });
    return execute({ case: 'setPower', value: order });
  };
  const serve = (medium: string): void => {
    served = medium;
  };
  return { bmc, events, setPower, serve };
}

const { DISK, IMAGE, RESCUE, RUNNER } = agent.BootTarget;
const toRunner = { on: true, bootFrom: RUNNER };
const asBooted = ['grant', `inserted ${url}`, 'on from cd'];

test('the medium is there for the boot of the runner, and ejected when it goes off', async () => {
  const { events, setPower } = await setUp();
  expect(await setPower(toRunner)).toMatchObject({ kind: 'complete' });
  expect(events).toEqual(asBooted);
  expect(await setPower({ on: false })).toMatchObject({ kind: 'complete' });
  expect(events).toEqual([...asBooted, 'no grant', 'off', 'ejected']);
});

test('a rescue boots from it too, and an image over the network', async () => {
  const { events, setPower } = await setUp();
  await setPower({ on: true, bootFrom: RESCUE });
  await setPower({ on: false });
  await setPower({ on: true, bootFrom: IMAGE });
  const rest = ['no grant', 'off', 'ejected', 'no grant', 'on from pxe'];
  expect(events).toEqual([...asBooted, ...rest]);
});

test('a medium that was left behind is ejected before the host boots its disk', async () => {
  const { bmc, events, setPower, serve } = await setUp();
  await setPower(toRunner);
  serve('');
  await setPower({ on: false });
  expect(bmc.medium()).toBe(url);
  serve(url);
  await setPower({ on: true, bootFrom: DISK });
  expect(events).toEqual([...asBooted, 'no grant', 'off', 'no grant', 'ejected', 'on from disk']);
});

test('a medium is ejected too from a host whose boot method is the network again', async () => {
  const { events, setPower } = await setUp();
  await setPower(toRunner);
  await setPower({ on: false, bootMethod: BootMethod.NETWORK });
  await setPower({ ...toRunner, bootMethod: BootMethod.NETWORK });
  const rest = ['no grant', 'off', 'ejected', 'grant', 'on from pxe'];
  expect(events).toEqual([...asBooted, ...rest]);
});

test.each([
  ['stays when somebody else has put it in', 'http://192.0.2.9/debian-12.iso', []],
  ['goes when this agent made it before', url.replace('0123', 'ffff'), ['ejected']],
])('a medium %s', async (_, medium, ejected) => {
  const { events, setPower, serve } = await setUp();
  serve(medium);
  await setPower(toRunner);
  serve(url);
  await setPower({ on: false });
  await setPower({ on: true, bootFrom: DISK });
  const switched = ['no grant', 'off', ...ejected, 'no grant', 'on from disk'];
  expect(events).toEqual(['grant', `inserted ${medium}`, 'on from cd', ...switched]);
});

test('a medium that is lost before the boot switches nothing on and closes the grant', async () => {
  const { bmc, events, setPower } = await setUp();
  bmc.setFault({ kind: 'mediaLost', afterReadings: 1 });
  const result = await setPower(toRunner);
  expect(result).toMatchObject({ kind: 'failed', type: 'mediaMissing' });
  expect(events).toEqual(['grant', `inserted ${url}`, 'ejected', 'no grant']);
});

test('a BMC that refuses, or only says that it has inserted, switches nothing on', async () => {
  const { bmc, events, setPower } = await setUp();
  bmc.setFault({ kind: 'mediaRefused' });
  expect(await setPower(toRunner)).toMatchObject({ kind: 'failed', type: 'mediaRefused' });
  bmc.setFault({ kind: 'yesButNothing' });
  expect(await setPower(toRunner)).toMatchObject({ kind: 'failed', type: 'notApplied' });
  expect(events).toEqual(['grant', 'no grant', 'grant', 'no grant']);
});

test.each([
  ['no drive', { habits: { virtualMedia: undefined } }, 'mediaMissing', /no virtual drive/],
  ['no medium', { mediumUrl: '' }, 'mediaMissing', /virtualMedia/],
  ['BIOS', { firmware: 'bios' as const }, 'invalidBootSettings', /by UEFI, not BIOS/],
])('with %s nothing is switched on, and words say what to do', async (_, parts, type, text) => {
  const { events, setPower } = await setUp(parts);
  const result = await setPower(toRunner);
  expect(result).toMatchObject({ kind: 'failed', type, message: expect.stringMatching(text) });
  expect(events.filter((event) => event.startsWith('on'))).toEqual([]);
});
