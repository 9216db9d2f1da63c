/** A person's report counts only for the present request, and less than the machine's own. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  BmcEndpointSchema,
  BmcProtocol,
  GivenUpCause,
  GoalBackoffSchema,
  HostGoal,
  HostSpecSchema,
  HostState,
  userActor,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { type Bench, bench, done, statusOf } from '../testing/bench.ts';

/** Waits for a person to switch it off. */
function atOff(): Bench {
  const host = bench({ bmc: { protocol: BmcProtocol.MANUAL }, goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(done);
  host.request({ kind: 'inspect' });
  return host;
}

test('a person’s word is refused while a restored store keeps the run from asking', () => {
  const host = atOff();
  host.snapshot = { ...host.snapshot, restored: 'a restored store is not accepted' };
  host.apply({ kind: 'tick' });
  expect(statusOf(host).run?.waiting?.reason).toBe('restored');
  const request = { kind: 'confirmPower', on: false } as const;
  const said = host.try({ kind: 'request', request, by: { actor: userActor('ann') } });
  expect(said).toMatchObject({ kind: 'refused', refusal: { reason: 'nothingToDo' } });
});

const webhook = {
  ...{ address: '10.0.0.1', credential: 'credentials/c1', protocol: BmcProtocol.WEBHOOK },
  webhook: { onPath: '/relay/4/on', offPath: '/relay/4/off', statePath: '/relay/4' },
};
const otherSocket = { ...webhook, webhook: { ...webhook.webhook, onPath: '/relay/5/on' } };
const ipmi = { address: '10.0.0.1', credential: 'credentials/c1' };
const manual = { protocol: BmcProtocol.MANUAL };

test.each([
  ['manual to IPMI', manual, ipmi],
  ['webhook to IPMI', webhook, ipmi],
  ['IPMI to manual', ipmi, manual],
  ['one socket to another', webhook, otherSocket],
] as const)('a host with a run keeps the way in which it is switched: %s', (_text, from, to) => {
  const host = bench({ bmc: from, goal: HostGoal.MANAGEABLE });
  const { spec } = host.record.host ?? {};
  if (spec === undefined) throw new Error('no spec');
  const change = (bmc: MessageInitShape<typeof BmcEndpointSchema>) => {
    const next = create(HostSpecSchema, { ...spec, bmc: create(BmcEndpointSchema, bmc) });
    const request = { kind: 'update', spec: next, labels: {} } as const;
    return host.try({ kind: 'request', request, by: { actor: userActor('ann') } });
  };
  expect(change(to).kind).toBe('kept');
  host.apply({ kind: 'tick' });
  expect(change(from).kind).toBe('kept');
  expect(change(to)).toMatchObject({ kind: 'refused', refusal: { reason: 'busy' } });
});

test('a BMC that replaces another power switch gets no command before it is verified', () => {
  const host = bench({ bmc: webhook, goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(done);
  if (host.record.host?.spec !== undefined) {
    host.record.host.spec.bmc = create(BmcEndpointSchema, ipmi);
    host.record.verifiedBmc = create(BmcEndpointSchema, webhook);
    host.record.host.status = Object.assign(statusOf(host), { state: HostState.MANAGEABLE });
    delete statusOf(host).run;
    statusOf(host).backoff = create(GoalBackoffSchema, { givenUp: GivenUpCause.HOPELESS });
  }
  const by = { actor: userActor('ann') };
  const ask = (kind: 'powerOff' | 'verify') => host.try({ kind: 'request', request: { kind }, by });
  expect(ask('powerOff')).toMatchObject({ kind: 'refused', refusal: { reason: 'notReady' } });
  expect(ask('verify').kind).toBe('kept');
});
