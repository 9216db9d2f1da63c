/**
 * No confirmation and no policy makes another host's machine this one's, and no certificate moves.
 */
import { create } from '@bufbuild/protobuf';
import {
  BmcEndpointSchema,
  BmcProtocol,
  FailureType,
  HostGoal,
  HostState,
  SystemIdentitySchema,
  userActor,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import {
  availableHost,
  type Bench,
  bench,
  done,
  driveToInspect,
  inspected,
  makeAvailable,
  statusOf,
  stepAt,
  uuid,
  verified,
} from '../testing/bench.ts';

const manual = { protocol: BmcProtocol.MANUAL };
const hex = Buffer.from(uuid).toString('hex');
const failureOf = (host: Bench) => statusOf(host).lastError?.failure;
const stranger = { uuid: uuid.map((byte) => byte ^ 0x55), serial: 'SN-9' };

function inspectByHand(prepare: (host: Bench) => void): Bench {
  const host = bench({ bmc: manual, cleaning: { allowUnprovenIdentity: true } });
  host.apply({ kind: 'tick' });
  host.report(done);
  const request = { kind: 'confirmPower', on: false } as const;
  host.apply({ kind: 'request', request, by: { actor: userActor('ann') } });
  driveToInspect(host);
  prepare(host);
  host.report(inspected());
  if (stepAt(host) === 'runner.inspect') host.report(inspected());
  return host;
}

function owned(host: Bench): void {
  host.snapshot = { ...host.snapshot, identityOwners: new Map([[hex, 'hosts/h2']]) };
}

test('a manual host whose machine the BMC of another host knows is refused', () => {
  const host = inspectByHand(owned);
  expect(failureOf(host)?.type).toBe(FailureType.IDENTITY_MISMATCH);
  expect(failureOf(host)?.message).toContain('hosts/h2');
});

test('a manual host that was accepted from discovery is that machine and no other', () => {
  const host = inspectByHand(({ record }) => {
    record.acceptedIdentity = create(SystemIdentitySchema, stranger);
  });
  expect(failureOf(host)?.type).toBe(FailureType.IDENTITY_MISMATCH);
  const same = inspectByHand(({ record }) => {
    record.acceptedIdentity = create(SystemIdentitySchema, { uuid, serial: 'SN-1' });
  });
  expect(stepAt(same)).toContain('erase');
});

test.each(['SN-1', ''])(
  'an accepted UUID that is another host’s is refused (serial %s)',
  (serial) => {
    const host = bench({
      bmc: { address: '10.0.0.1', credential: 'credentials/c1', acceptedUuid: hex },
      cleaning: { allowUnprovenIdentity: true },
    });
    host.apply({ kind: 'tick' });
    host.report(verified());
    driveToInspect(host);
    owned(host);
    host.report(inspected(undefined, { uuid, serial }));
    if (stepAt(host) === 'runner.inspect') host.report(inspected(undefined, { uuid, serial }));
    expect(failureOf(host)?.type).toBe(FailureType.IDENTITY_MISMATCH);
  },
);

function changeBmc({ record }: Bench, bmc: Parameters<typeof create<typeof BmcEndpointSchema>>[1]) {
  if (record.host?.spec !== undefined) record.host.spec.bmc = create(BmcEndpointSchema, bmc);
}

test('a host that loses its BMC, or gets its first one, may be another machine', () => {
  const host = availableHost();
  changeBmc(host, manual);
  host.request({ kind: 'verify' });
  host.report(done);
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });

  const byHand = bench({ bmc: manual, goal: HostGoal.MANAGEABLE });
  byHand.apply({ kind: 'tick' });
  byHand.report(done);
  makeAvailable(byHand);
  changeBmc(byHand, { address: '10.0.0.1', credential: 'credentials/c1' });
  byHand.request({ kind: 'verify' });
  byHand.report(verified());
  expect(statusOf(byHand)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
});
