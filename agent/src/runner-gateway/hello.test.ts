import { generateKeyPairSync, sign } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { runner } from '@rackwright/messages';
import { expect, test } from 'vitest';
import type { BootGrantState } from '../session/index.ts';
import { judgeHello, wallClockToleranceMs } from './hello.ts';

const hourMs = 3_600_000;
const openedAtMs = 1_800_000_000_000;
const bootToken = 'token';
const nonce = new Uint8Array(32).fill(1);
const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const grant: BootGrantState = {
  operationId: 'boot-1',
  hostUid: 'uid-1',
  hostName: 'h1',
  macs: [],
  bootToken,
  openedAtMs,
  expiresAtMs: openedAtMs + 10 * hourMs,
};

function helloOf(uptimeMs: number): runner.Hello {
  const label = Buffer.from('rackwright-runner-hello\0');
  const signed = Buffer.concat([label, nonce, Buffer.from(bootToken)]);
  return create(runner.HelloSchema, {
    bootToken,
    publicKey: keys.publicKey.export({ type: 'spki', format: 'der' }),
    signature: sign('sha256', signed, keys.privateKey),
    uptimeMs: BigInt(uptimeMs),
  });
}

/** A Hello that comes `afterMs` after the grant was opened, by a wall clock that has stepped. */
function judge(
  uptimeMs: number,
  afterMs: number,
  steppedMs: number,
  known: Partial<BootGrantState>,
) {
  return judgeHello(helloOf(uptimeMs), {
    nonce,
    grant: { ...grant, ...known },
    receivedAtMs: openedAtMs + afterMs + steppedMs,
    receivedSuspendAwareMs: 5000 + afterMs,
  });
}

test.each([-hourMs, 0, hourMs])('a step of the clock by %i ms changes nothing', (steppedMs) => {
  const known = { openedSuspendAwareMs: 5000 };
  expect(judge(80_000, 90_000, steppedMs, known).kind).toBe('bind');
  expect(judge(91_000, 90_000, steppedMs, known)).toEqual({
    kind: 'refuse',
    message: 'the kernel started 1000 ms before the host was powered on',
    isProved: true,
  });
});

test('across a restart of ours the wall clock decides, with a tolerance', () => {
  expect(judge(80_000, 90_000, -wallClockToleranceMs, {}).kind).toBe('bind');
  expect(judge(hourMs, 90_000, 0, {})).toMatchObject({
    kind: 'refuse',
    message: expect.stringMatching(/^the kernel started \d+ ms before/),
  });
});
