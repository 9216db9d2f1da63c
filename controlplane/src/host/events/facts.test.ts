/** Facts without an order, one by one: which host they belong to, and what is stored. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  agent,
  asRunNumber,
  BmcProtocol,
  HostState,
  InventorySchema,
  type OperationId,
  PersonWordSchema,
  RunPhase,
  RunSchema,
  store,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { beginPass, type Pass } from '../pass/pass.ts';
import { type Bench, bench, bootOfRunner, done, statusOf, verified } from '../testing/bench.ts';
import { foldFacts } from './observe.ts';

type FactsInit = Exclude<MessageInitShape<typeof agent.ObservationsSchema>, agent.Observations>;

const { AVAILABLE, MANAGEABLE } = HostState;
const mac = '52:54:00:00:00:01';
const own = { hostUid: 'u1', mac };

/** The result of one pass. */
function told(host: Bench, observations: FactsInit): Pass {
  const pass = beginPass(host.record, { ...host.snapshot, nowMs: host.nowMs });
  foldFacts(pass, create(agent.ObservationsSchema, observations));
  return pass;
}

const factsOf = ({ effects }: Pass) =>
  effects.flatMap((effect) => (effect.kind === 'facts' ? [effect.facts] : []));

/** A host without a run. */
function idle(poweredOn?: boolean, protocol: BmcProtocol = BmcProtocol.UNSPECIFIED): Bench {
  const host = bench({ bmc: { address: '10.0.0.1', credential: 'credentials/c1', protocol } });
  const status = { state: AVAILABLE, dirty: false };
  Object.assign(statusOf(host), status, poweredOn === undefined ? {} : { poweredOn });
  return host;
}

/** A host that waits for its runner. */
function waiting(): Bench {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.report(done);
  host.report(done);
  return host;
}

const boot = (host: Bench) => bootOfRunner(statusOf(host).run);

test.each<[string, () => Bench, FactsInit['unexpectedNetboot'], boolean]>([
  ['that is off', () => idle(false), own, false],
  ['of which nobody knows', () => idle(), own, false],
  ['that is on', () => idle(true), own, true],
  ['that was seen in its runner', () => idle(false), { ...own, seenInBand: true }, true],
  ['whose power a person switches', () => idle(false, BmcProtocol.MANUAL), own, true],
  ['that is on, of another host', () => idle(true), { ...own, hostUid: 'u2' }, false],
])('a netboot that nobody ordered of a host %s makes it used: %j', (_, of, netboot, isUsed) => {
  if (netboot === undefined) throw new Error('a netboot is told');
  const { status, record } = told(of(), { unexpectedNetboot: netboot });
  expect(status).toMatchObject(isUsed ? { state: MANAGEABLE, dirty: true } : { state: AVAILABLE });
  expect(record.change?.cause).toBe(isUsed ? `netbooted from ${mac} without an order` : undefined);
  expect(record.netbootInstead).toBeUndefined();
});

test('another host that netboots instead is noted while that boot’s runner is waited for', () => {
  const host = waiting();
  const instead = (insteadOfOperationId: OperationId, more = {}, of = host) => {
    const unexpectedNetboot = {
      ...{ hostUid: 'u2', mac, hostName: 'hosts/h2', insteadOfOperationId },
      ...more,
    };
    return told(of, { unexpectedNetboot }).record.netbootInstead;
  };
  const [, run = ''] = boot(host).split('/');
  expect(instead(boot(host))).toMatchObject({ mac, hostName: 'hosts/h2' });
  expect(instead(`u1/${BigInt(run) - 1n}/0/1`)).toBeUndefined();
  expect(instead(boot(host).replace('u1/', 'u2/'))).toBeUndefined();
  expect(instead('')).toBeUndefined();
  // Anyone on that network can send these.
  const kept = instead(boot(host), { mac: 'm'.repeat(500), hostName: 'h'.repeat(500) });
  for (const [name = '', letter] of [
    [kept?.mac, 'm'],
    [kept?.hostName, 'h'],
  ]) {
    expect(name).toMatch(new RegExp(`^${letter}{128}(?!${letter})`));
    expect(name.length).toBeLessThan(160);
  }
  const id = boot(host);
  host.runnerReady();
  expect(instead(id)).toBeUndefined();
  expect(instead(id, {}, idle(true))).toBeUndefined();
  const stepless = idle(true);
  statusOf(stepless).run = create(RunSchema, { number: asRunNumber(1), phase: RunPhase.RUNNING });
  expect(instead('u1/1/0/1', {}, stepless)).toBeUndefined();
});

test('a runner counts only if it is that of the last boot of the host’s run', () => {
  const host = waiting();
  const ready = (bootOperationId: OperationId, of = host) => {
    const runnerReady = { hostUid: 'u1', bootOperationId, runnerSession: 's1', bootId: 'b1' };
    const { record } = told(of, { runnerReady });
    return [record.runner?.bootOperationId, record.inRunner];
  };
  const id = boot(host);
  expect(ready(id)).toEqual([id, true]);
  const [uid, run = '', index, attempt] = id.split('/');
  for (const other of [
    [uid, run, index, Number(attempt) + 1],
    [uid, run, Number(index) + 1, attempt],
    [uid, BigInt(run) + 1n, index, attempt],
    ['u2', run, index, attempt],
    [uid],
  ]) {
    expect(ready(other.join('/'))).toEqual([undefined, false]);
  }
  expect(ready(id, idle())).toEqual([undefined, false]);
});

test('a runner’s list of steps is recorded only when it has changed', () => {
  const host = waiting();
  const steps = [{ name: 'bios.flash' }, { name: 'bios.reset' }];
  const ready = (names: MessageInitShape<typeof agent.StepDescriptionSchema>[], version = '1') =>
    factsOf(
      told(host, {
        runnerReady: {
          ...{ hostUid: 'u1', bootOperationId: boot(host), runnerSession: 's1', bootId: 'b1' },
          ...{ steps: names, runnerVersion: version },
        },
      }),
    );
  const [first] = ready(steps);
  expect(first?.runnerSteps?.map(({ name }) => name)).toEqual(['bios.flash', 'bios.reset']);
  expect(first?.runnerVersion).toBe('1');
  const facts = create(store.HostFactsSchema, { ...host.snapshot.facts, ...first });
  host.snapshot = { ...host.snapshot, facts };
  expect(ready(steps)).toEqual([]);
  expect(ready([])).toEqual([]);
  expect(ready(steps, '2')).toHaveLength(1);
  expect(ready(steps.slice(0, 1))).toHaveLength(1);
  expect(ready([...steps, { name: 'bios.clear' }])).toHaveLength(1);
  expect(ready([{ name: 'bios.flash' }, { name: 'bios.reset', destructive: true }])).toHaveLength(
    1,
  );
});

test('a runner that reports shows that a host is on whose power a person switches', () => {
  for (const [protocol, word, isOn] of [
    [BmcProtocol.UNSPECIFIED, 'user:ann', false],
    [BmcProtocol.MANUAL, undefined, true],
  ] as const) {
    const host = waiting();
    const bmc = host.record.host?.spec?.bmc;
    if (bmc !== undefined) bmc.protocol = protocol;
    const powerWord = create(PersonWordSchema, { by: 'user:ann' });
    Object.assign(statusOf(host), { poweredOn: false, powerWord });
    const runnerReady = { bootOperationId: boot(host), runnerSession: 's1', bootId: 'b1' };
    const { status } = told(host, { runnerReady });
    expect([status.poweredOn, status.powerWord?.by]).toEqual([isOn, word]);
  }
});

test('power is told in the timeline when it has changed', () => {
  const cause = (before: boolean | undefined, on: boolean) =>
    told(idle(before), { poweredOn: on }).record.change?.cause;
  expect(cause(true, false)).toBe('seen off');
  expect(cause(undefined, false)).toBe('seen off');
  expect(cause(false, false)).toBeUndefined();
  expect(cause(true, true)).toBe('seen switched on without an order');
  expect(cause(false, true)).toBe('seen switched on without an order');
});

test('a host seen on drops the power-on that the system was to give, and no person’s', () => {
  const left = (by: string, host: Bench, poweredOn = true) => {
    host.record.pendingPower = create(store.PendingPowerSchema, { steps: ['power.on'], by });
    return told(host, { poweredOn }).record.pendingPower !== undefined;
  };
  expect(left('system', idle(false))).toBe(false);
  expect(left('user:ann', idle(false))).toBe(true);
  expect(left('system', idle(true))).toBe(true);
  expect(left('system', idle(false), false)).toBe(true);
  const busy = waiting();
  statusOf(busy).poweredOn = false;
  expect(left('system', busy)).toBe(true);
});

test('an inventory counts as a fact; values that were not observed do not', () => {
  const inventory = create(InventorySchema, { bootId: 'b1' });
  expect(factsOf(told(idle(), { inventory }))).toEqual([{ inventory }]);
  expect(told(idle(), {}).effects).toEqual([]);
  const pass = beginPass(idle().record, { ...idle().snapshot, nowMs: 0 });
  foldFacts(pass, undefined);
  expect(pass.effects).toEqual([]);
});
