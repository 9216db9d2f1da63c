/** A BMC whose GUID differs from its machine's: a person confirms that UUID. */
import { FailureType } from '@rackwright/messages';
import { expect, test } from 'vitest';
import {
  type Bench,
  bench,
  driveToInspect,
  inspected,
  statusOf,
  stepAt,
  uuid,
  verified,
  virtioDisk,
} from '../testing/bench.ts';

const other = Uint8Array.from({ length: 16 }, (_, index) => index * 7 + 3);
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

/** A clean's inspection has found `system`; its BMC reports `uuid`. */
function inspectedAs(
  system: { readonly uuid: Uint8Array; readonly serial: string },
  acceptedUuid: string,
  allowUnprovenIdentity = false,
): Bench {
  const host = bench({
    bmc: { address: '10.0.0.1', credential: 'credentials/c1', acceptedUuid },
    cleaning: { allowUnprovenIdentity },
  });
  host.apply({ kind: 'tick' });
  host.report(verified());
  driveToInspect(host);
  host.report(inspected([virtioDisk], system));
  host.report(inspected([virtioDisk], system));
  return host;
}

const failureOf = (host: Bench) => statusOf(host).lastError?.failure?.type;

test('another UUID is refused without a person’s word, and what would be right is named', () => {
  const host = inspectedAs({ uuid: other, serial: 'SN-1' }, '');
  expect(failureOf(host)).toBe(FailureType.IDENTITY_MISMATCH);
  expect(statusOf(host).lastError?.failure?.message).toContain('accepted_uuid');
});

test('a person’s word lets the serial prove the machine, and the runner hears of no GUID', () => {
  const host = inspectedAs({ uuid: other, serial: 'SN-1' }, hex(other));
  expect(stepAt(host)).toContain('erase');
  const { kind } = host.operation();
  const told = kind.case === 'runStep' ? kind.value.expectedIdentity : undefined;
  expect(told).toMatchObject({ serial: 'SN-1' });
  expect(told?.guid).toHaveLength(0);
  expect(statusOf(host).bmcIdentity?.guid).toEqual(uuid);
});

test.each([
  ['another UUID', { uuid: uuid.toReversed().map((byte) => byte ^ 0x55), serial: 'SN-1' }],
  ['none', { uuid: new Uint8Array(), serial: 'SN-1' }],
  ['another serial', { uuid: other, serial: 'SN-2' }],
])('a machine that says %s is still refused', (_text, system) => {
  const host = inspectedAs(system, hex(other), true);
  expect(failureOf(host)).toBe(FailureType.IDENTITY_MISMATCH);
});

test('a person’s word is no proof: the policy decides where nothing proves the machine', () => {
  const system = { uuid: other, serial: '' };
  expect(failureOf(inspectedAs(system, hex(other)))).toBe(FailureType.IDENTITY_UNPROVEN);
  expect(stepAt(inspectedAs(system, hex(other), true))).toContain('erase');
});
