/** Which step of a boot is missing, and its text. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import { bootLines, bootText, missingBootStep } from './boot-trace.ts';
import {
  BootAsker,
  BootStepSchema,
  type BootTrace,
  BootTraceSchema,
  BootTransport,
  BootStepKind as Kind,
} from './gen/rackwright/v1/boot_pb.ts';

const at = timestampFromMs;
const order = Object.values(Kind).filter((kind) => kind !== Kind.UNSPECIFIED);

function step(kind: Kind, isWhole = true, asker: BootAsker = BootAsker.FIRMWARE) {
  const end = kind >= Kind.LOADER && isWhole ? { endTime: at(2_500) } : {};
  const times = { firstTime: at(2_000), lastTime: at(2_000), ...end };
  return create(BootStepSchema, { kind, asker, count: 1, ...times });
}

function traceOf(steps: BootTrace['steps'], givesAddresses = true): BootTrace {
  const missing = missingBootStep({ steps, givesAddresses });
  return create(BootTraceSchema, { startTime: at(0), steps, givesAddresses, missing });
}

test('the step behind the furthest that came is missing, and none once the runner came', () => {
  const missing = order.map((_, upTo) => {
    return traceOf(order.slice(0, upTo).map((kind) => step(kind))).missing;
  });
  expect(missing).toEqual(order);
  expect(traceOf([step(Kind.RUNNER)]).missing).toBe(Kind.UNSPECIFIED);
});

test('beside another server no request is missed, and a card with a loader needs none', () => {
  const offered = [step(Kind.DISCOVER), step(Kind.OFFER)];
  expect(traceOf(offered, false).missing).toBe(Kind.LOADER);
  const byLoader = offered.map((one) => ({ ...one, asker: BootAsker.LOADER }));
  expect(traceOf(byLoader, false).missing).toBe(Kind.SCRIPT);
  expect(traceOf([...byLoader, step(Kind.REQUEST), step(Kind.ACK)]).missing).toBe(Kind.SCRIPT);
});

test('a file that was not sent whole is missing, with why', () => {
  const cut = { ...step(Kind.KERNEL, false), problem: 'the connection was cut' };
  const trace = traceOf([step(Kind.SCRIPT), cut]);
  expect(bootText(trace)).toBe(
    'the boot got as far as the boot script; the kernel did not come whole: the connection was cut',
  );
  expect(bootText(traceOf([step(Kind.SCRIPT)]))).toMatch(/the kernel never came$/);
  expect(bootText(traceOf([]))).toBe('its question for an address never came');
  expect(bootText(traceOf([step(Kind.RUNNER)]))).toBe('the runner came');
});

test('the waterfall has a line for each step, and one for that which never came', () => {
  const asked = { ...step(Kind.DISCOVER), count: 3, lastTime: at(10_000) };
  const loader = { ...step(Kind.LOADER), bytes: 170_000n, transport: BootTransport.TFTP };
  expect(bootLines(traceOf([asked, loader]))).toEqual([
    '   +2.0 s  its question for an address (the firmware, 3 times, last at +10.0 s)',
    '   +2.0 s  the boot loader (TFTP, 170000 bytes, done at +2.5 s)',
    '           the boot script: never came',
  ]);
});

test('a boot that failed shows the last of its console', () => {
  const trace = { ...traceOf([]), lastScreen: ['Kernel panic', ''] };
  expect(bootLines(trace).slice(-3)).toEqual([
    'its serial console showed last:',
    '| Kernel panic',
    '| ',
  ]);
  const came = { ...trace, missing: Kind.UNSPECIFIED };
  expect(bootLines(came)).toEqual([]);
});
