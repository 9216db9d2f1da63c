import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  ArgumentType,
  agent,
  BmcEndpointSchema,
  CleaningPolicySchema,
  DeletionSchema,
  FailureType,
  FaultSchema,
  FaultSeverity,
  FleetSpecSchema,
  HostErrorSchema,
  HostGoal,
  store,
  TransientCause,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { type Bench, bench, driveToErase, failed, verified } from '../testing/bench.ts';
import { adviceFor } from './advice.ts';
import { explainHost } from './explain.ts';
import { explainRack } from './rack.ts';

const explain = (host: Bench) => explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });

test('a wrong password is named with the command that corrects it, and correcting it helps', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.report(failed('authentication', 'the BMC refused user admin'));
  const told = explain(host);
  expect(told.headline).toContain('stopped trying to make it available');
  expect(told.causes.map((cause) => cause.text)).toContain('the BMC refused user admin');
  expect(told.unblock[0]).toContain('rackwright credential update c1');
  host.snapshot = { ...host.snapshot, credentialVersion: 2n };
  host.apply({ kind: 'tick' });
  expect(host.operation().id).toBe('u1/2/0/1');
});

test('a silent BMC is waited for, with the next attempt and since when', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  const silent = create(agent.TransientErrorSchema, {
    cause: TransientCause.UNREACHABLE,
    message: 'no answer',
  });
  host.report({ case: 'transientError', value: silent });
  const told = explain(host);
  expect(told.blocker).toBe('the BMC');
  expect(told.nextAttemptTime).toBeDefined();
  expect(told.since).toBeDefined();
  expect(told.unblock.join(' ')).toContain('10.0.0.1:623');
});

test('after a restore of the store explain names no time of a next attempt', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  const silent = create(agent.TransientErrorSchema, {
    cause: TransientCause.UNREACHABLE,
    message: 'no answer',
  });
  host.report({ case: 'transientError', value: silent });
  host.snapshot = { ...host.snapshot, restored: 'the store was restored' };
  host.nowMs += 600_000;
  host.apply({ kind: 'tick' });
  const told = explain(host);
  expect(told.headline).toContain('waiting for restored');
  expect(told.blocker).toBe('the restored store');
  expect(told.nextAttemptTime).toBeUndefined();
});

test('a host of a restored store is held for a person, then for its agent', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.snapshot = { ...host.snapshot, restored: 'the store was restored' };
  host.apply({ kind: 'tick' });
  expect(explain(host)).toMatchObject({
    headline: 'held: the store was restored; nothing new starts until a person accepts that',
    blocker: 'the restored store',
  });
  const away = {
    headline: 'held: the loss is accepted; nothing new starts until the agent has heard of it',
    blocker: 'the agent of racks/r1',
    unblock: ['start the agent of racks/r1 again: rackwright-agent run --config FILE'],
  };
  const restored = 'the restored store was accepted; the agent has not heard of it yet';
  host.snapshot = { ...host.snapshot, session: undefined, restored, restoredAccepted: true };
  expect(explain(host)).toMatchObject(away);
  host.snapshot = { ...host.snapshot, restored: undefined, restoredAccepted: false };
  expect(explain(host)).toMatchObject(away);
});

test.each([
  { agentRegistered: false, agentRevoked: false },
  { agentRegistered: true, agentRevoked: true },
])('a host of an accepted store waits for a new agent, or for the next pass: %o', (agents) => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.snapshot = { ...host.snapshot, restored: 'the store was restored' };
  host.apply({ kind: 'tick' });
  const restored = 'the restored store was accepted; the agent has not heard of it yet';
  host.snapshot = { ...host.snapshot, ...agents, session: undefined };
  host.snapshot = { ...host.snapshot, restored, restoredAccepted: true };
  host.apply({ kind: 'tick' });
  expect(explain(host)).toMatchObject({
    headline: 'held: the loss is accepted; nothing new starts until an agent has joined the rack',
    blocker: 'an agent of racks/r1',
    unblock: ['join an agent: rackwright rack join-token r1'],
  });
  host.snapshot = { ...host.snapshot, restored: undefined, restoredAccepted: false };
  expect(explain(host)).toMatchObject({
    headline: 'held: the loss is accepted, and the rack has no agent; the hold ends by itself',
    blocker: 'nothing',
    unblock: ['nothing: the hold ends by itself'],
  });
  host.apply({ kind: 'tick' });
  expect(host.record.host?.status?.holds).toEqual([]);
});

test('a BMC that says yes and does nothing is named, and asking again starts a run', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.request({ kind: 'inspect' });
  host.report(failed('notApplied', 'power stayed on for 15 s'));
  const told = explain(host);
  expect(told.unblock.at(-1)).toContain('rackwright host inspect h1');
  host.request({ kind: 'inspect' });
  expect(host.operation().kind.case).toBe('setPower');
});

test('a run under way after a failure of no known kind is not asked for again', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.request({ kind: 'inspect' });
  host.report(failed('notApplied', 'power stayed on for 15 s'));
  host.request({ kind: 'inspect' });
  const failure = host.record.host?.status?.lastError?.failure;
  if (failure === undefined) throw new Error('it has failed');
  // Of a newer version.
  failure.type = 9_999 as FailureType;
  const told = explain(host);
  const seen = 'see what failed, and in which step: rackwright host history h1';
  expect(told.unblock).toEqual([seen]);
  expect(told.deadline).toBeDefined();
});

test('with the agent away the rack is named, and how to start it', () => {
  const host = bench();
  host.snapshot = { ...host.snapshot, session: undefined };
  host.apply({ kind: 'tick' });
  const told = explain(host);
  expect(told.blocker).toBe('the agent of the rack');
  expect(told.unblock[0]).toContain('racks/r1');
});

test('a missing credential is named with the command that creates it', () => {
  const host = bench();
  host.snapshot = { ...host.snapshot, credentialVersion: undefined };
  host.apply({ kind: 'tick' });
  expect(explain(host).unblock[0]).toContain('rackwright credential create c1');
});

test('explain names no wait for a host that has reached its goal', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const told = explain(host);
  expect(told.headline).toBe('nothing to do: it is manageable, as asked');
  expect(told.blocker).toBe('');
  expect(told.unblock).toEqual([]);
});

test('a rack says whether its agent works, and names the hosts that need a person', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.report(failed('authentication'));
  const agentPublicKey = Uint8Array.of(1);
  const record = create(store.RackRecordSchema, { rack: { name: 'racks/r1' }, agentPublicKey });
  const told = explainRack(record, false, [host.record]);
  expect(told.headline).toContain('not connected');
  expect(told.unblock[0]).toContain('rackwright-agent run');
  expect(told.causes.map((cause) => cause.text).join('\n')).toContain('h1: needs a person');
});

test('between two attempts the last failure is explained, without what would be refused', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.request({ kind: 'inspect' });
  host.report(failed('notApplied', 'the BMC did not keep the boot override'));
  host.request({ kind: 'inspect' });
  const told = explain(host);
  expect(told.causes.map((cause) => cause.text)).toContain(
    'the BMC did not keep the boot override',
  );
  expect(told.unblock).toEqual([expect.stringContaining('reset or replace it')]);
});

test('after a failure at another BMC explain advises a verify', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.snapshot = { ...host.snapshot, identityOwners: new Map([['0b', 'hosts/h2']]) };
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.request({ kind: 'inspect' });
  host.report(failed('identityMismatch', 'another BMC answers'));
  expect(explain(host).unblock.at(-1)).toBe('then: rackwright host verify h1');
  host.request({ kind: 'inspect' });
  const value = create(agent.FailedSchema, {
    type: FailureType.IDENTITY_MISMATCH,
    message: 'another BMC answers',
    observations: { bmcIdentity: { guid: new Uint8Array([0x0b]) } },
  });
  host.report({ case: 'failed', value });
  expect(explain(host).causes.map(({ text }) => text)).toContain(
    'another BMC answers; it is hosts/h2',
  );
  expect(explain(host).unblock.slice(-2)).toEqual([
    'if that is the other one’s: rackwright host verify h2',
    'then: rackwright host verify h1',
  ]);
});

test('a locked account is waited for, and not called a wrong password', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.report(failed('lockedOut', 'it says no'));
  expect(explain(host).unblock[0]).toContain('wait until the BMC lets the account in again');
});

test('a step that failed is named again so that a shell takes its arguments whole', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const typedArguments = [{ name: 'settings', type: ArgumentType.STRING }];
  const step = { name: 'bios.apply_settings', destructive: false, typedArguments };
  const agentSteps = [create(agent.StepDescriptionSchema, step)];
  host.snapshot = { ...host.snapshot, agentSteps };
  const settings = "A=B;C=it's";
  host.request({ kind: 'service', steps: [{ step: step.name, arguments: { settings } }] });
  host.report(failed('settingRefused', 'C must be one of x, y'));
  expect(explain(host).unblock).toEqual([
    expect.stringContaining('rackwright host bmc bios h1'),
    'correct the step, then: rackwright host service h1 ' +
      "--step 'bios.apply_settings,settings=A=B;C=it'\\''s'",
  ]);
});

test('an address is corrected together with its unusual port', () => {
  const bmc = { address: '10.0.0.1', port: 8443, credential: 'credentials/c1' };
  const host = bench({ bmc: create(BmcEndpointSchema, bmc) });
  host.apply({ kind: 'tick' });
  host.report(failed('protocol', 'what answers is no BMC'));
  expect(explain(host).unblock[1]).toContain('--bmc ADDRESS:8443');
});

test('an address that leads nowhere is corrected by the command that explain names', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.report(failed('invalidBmcAccess', 'the BMC address cannot be resolved: correct it'));
  expect(explain(host).unblock[0]).toContain('rackwright host update h1 --bmc ADDRESS');
});

test('a policy that lets nothing be erased is named with the command that changes it', () => {
  const host = bench({ cleaning: { priorityOverrides: { 'deploy.erase_devices': 0 } } });
  driveToErase(host);
  expect(host.record.host?.status?.lastError?.failure?.type).toBe(FailureType.NOT_CERTIFIED);
  expect(explain(host).unblock[0]).toContain('--priority deploy.erase_devices-');
  // A command that would be refused does not help.
  expect(explain(host).unblock.join()).not.toContain('rackwright host clean');
  // The present policy decides, not that of the failed clean.
  delete host.record.host?.spec?.cleaning;
  expect(explain(host).unblock.join()).toContain('rackwright host clean h1');
});

test('a clean that failed for another reason is advised behind what lets it erase today', () => {
  const host = bench();
  driveToErase(host);
  host.report(failed('internal', 'the runner went wrong'));
  expect(explain(host).unblock.join()).toContain('rackwright host clean h1');
  expect(explain(host).unblock.join()).not.toContain('--priority');
  const { spec } = host.record.host ?? {};
  const priorityOverrides = { 'deploy.erase_devices': 0 };
  if (spec !== undefined) spec.cleaning = create(CleaningPolicySchema, { priorityOverrides });
  const { unblock } = explain(host);
  expect(unblock[0]).toContain('rackwright host update h1 --priority deploy.erase_devices=10');
  expect(unblock.slice(1).join()).toContain('rackwright host clean h1');
});

test.each([
  ['fleet', 'the fleet, for every host, sets', 'fleet update --priority deploy.erase_devices-'],
  [
    'pool',
    'the fleet, for hosts with the label pool=gpu, sets',
    'fleet update --pool-priority gpu:deploy.erase_devices-',
  ],
  ['host', 'its own cleaning policy sets', 'host update h1 --priority deploy.erase_devices-'],
] as const)('a step that its %s disables is explained as that', (from, who, undo) => {
  const priorityOverrides = { 'deploy.erase_devices': 0 };
  const host = bench(from === 'host' ? { cleaning: { priorityOverrides } } : {});
  const fleet = create(FleetSpecSchema, {
    ...(from === 'fleet' ? { priorityOverrides } : {}),
    ...(from === 'pool' ? { pools: [{ pool: 'gpu', priorityOverrides }] } : {}),
  });
  host.snapshot = { ...host.snapshot, fleet };
  if (host.record.host !== undefined) host.record.host.labels = { pool: 'gpu' };
  driveToErase(host);
  const { causes, unblock } = explain(host);
  expect(causes.map(({ text }) => text).join()).toContain(who);
  expect(unblock[0]).toContain(`rackwright ${undo}`);
});

test('a rack that is frozen says so as what it waits for, and since when its hosts wait', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  const silent = create(agent.TransientErrorSchema, {
    cause: TransientCause.UNREACHABLE,
    message: 'no answer',
  });
  host.report({ case: 'transientError', value: silent });
  const at = timestampFromMs(7_000);
  const freeze = { by: 'user:ann', reason: 'a drill', at };
  const rack = { name: 'racks/r1', status: { freeze } };
  const record = create(store.RackRecordSchema, { rack, agentPublicKey: Uint8Array.of(1) });
  const told = explainRack(record, true, [host.record]);
  expect(told).toMatchObject({ blocker: 'the freeze', since: at });
  const waiting = told.causes.find(({ text }) => text.startsWith('h1: waits'));
  expect(waiting?.since).toEqual(host.record.host?.status?.run?.waiting?.since);
});

test.each([
  ['updateFailed', 'rackwright host bmc firmware h1'],
  ['volumesRefused', 'rackwright host bmc log h1'],
  ['tooLate', 'rackwright host history h1'],
  ['notAllowed', 'rackwright fleet update --internal-address ADDRESS'],
  ['conflict', 'rackwright host history h1'],
  ['invalidBootSettings', 'rackwright host update h1 --label boot=PROFILE'],
  ['cancelled', 'rackwright host history h1'],
  ['pendingTimeout', 'rackwright workflow explain h1 TEMPLATE'],
] as const)('advice against %s names the command that shows the cause', (name, command) => {
  const lines = adviceFor(name, bench().record);
  expect(lines.join('\n')).toContain(command);
  expect(lines.at(-1)).toContain('rackwright ');
});

test('a conflict at a host whose BMC refuses its credential advises to correct that first', () => {
  const { record } = bench();
  expect(adviceFor('conflict', record)[0]).toContain('rackwright host history');
  const fault = create(FaultSchema, { type: 'bmcAuthentication', severity: FaultSeverity.WARNING });
  record.host?.status?.faults.push(fault);
  expect(adviceFor('conflict', record)[0]).toContain('rackwright credential update ');
});

test('during a step a fault of the BMC is explained before an earlier failure', () => {
  const host = bench();
  driveToErase(host);
  const { status } = host.record.host ?? {};
  if (status === undefined) throw new Error('a host without a status');
  status.lastError = create(HostErrorSchema, {
    run: 'workflow 3',
    failure: { type: FailureType.INTERNAL },
  });
  expect(explain(host).causes[0]?.text).toBe('workflow 3 failed: internal');
  const message = 'the BMC refused credential credentials/c1@1 once';
  status.faults.push(create(FaultSchema, { type: 'bmcAuthentication', message }));
  const told = explain(host);
  expect(told.causes.map(({ text }) => text)).toEqual([`its BMC refuses the password: ${message}`]);
  expect(told.blocker).toBe('the step under way; its BMC cannot be asked');
  expect(told.unblock[0]).toContain('rackwright credential update c1');
});

test('a host that is to be deleted is not advised to verify, which would be refused', () => {
  const { record } = bench();
  expect(adviceFor('identityMismatch', record).at(-1)).toBe('then: rackwright host verify h1');
  const { status } = record.host ?? {};
  if (status === undefined) throw new Error('a host without a status');
  status.deletion = create(DeletionSchema, { by: 'user:admin' });
  const lines = adviceFor('identityMismatch', record);
  expect(lines[1]).toContain('rackwright host cancel-delete h1');
  expect(lines.join()).not.toContain('rackwright host verify');
});
