import { create, equals, type MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  DeletionMode,
  DeployProof,
  type DeploySpec,
  DeploySpecSchema,
  type FailureName,
  FailureType,
  FaultSeverity,
  FirstBootFormat,
  FleetSpecSchema,
  failureTypeOf,
  HostState,
  ProgressSchema,
  RunKind,
  RunOutcome,
  RunPhase,
  readActor,
  StepState,
  TransientCause,
  userActor,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { explainHost } from '../explain/explain.ts';
import { displayOf } from '../pass/display.ts';
import {
  availableHost,
  type Bench,
  done,
  failed,
  inspected,
  statusOf,
  stepAt,
} from '../testing/bench.ts';

const first = `registry.example/os@sha256:${'1'.repeat(64)}`;
const second = `registry.example/os@sha256:${'2'.repeat(64)}`;

function driveTo(host: Bench, name: string): void {
  for (let count = 0; count < 20 && stepAt(host) !== name; count++) {
    if (stepAt(host) === 'runner.await') host.runnerReady();
    else host.report(stepAt(host) === 'runner.inspect' ? inspected() : done);
  }
  expect(stepAt(host)).toBe(name);
}

function deploy(init: MessageInitShape<typeof DeploySpecSchema>): DeploySpec {
  return create(DeploySpecSchema, init as Exclude<typeof init, DeploySpec>);
}

/** In service with the first image, and claimed. */
function inService(): Bench {
  const host = availableHost();
  host.request({ kind: 'provision', image: first });
  driveTo(host, 'deploy.await_image');
  host.report(done);
  expect(statusOf(host)).toMatchObject({ state: HostState.PROVISIONED, image: first });
  host.request({ kind: 'claim', reason: 'mine' });
  return host;
}

function untouched(type: FailureName): agent.Report['result'] {
  const value = create(agent.FailedSchema, {
    type: failureTypeOf(type),
    message: type,
    disksUntouched: true,
  });
  return { case: 'failed', value };
}

function orderOf(host: Bench): agent.RunStep {
  const { kind } = host.operation();
  if (kind.case !== 'runStep') throw new Error('the operation is no step');
  return kind.value;
}

function sent(effects: ReturnType<Bench['apply']>): agent.RunStep | undefined {
  const send = effects.find((effect) => effect.kind === 'send');
  const kind = send?.operation.kind;
  return kind?.case === 'runStep' ? kind.value : undefined;
}

test('a deployment is told whole as it leaves; its first boot stands once in the record', () => {
  const host = availableHost();
  const { spec } = host.record.host ?? {};
  if (spec !== undefined) Object.assign(spec, { rootDisk: { serial: 'DISK-1' } });
  const registries = [{ registry: 'registry.example', plainHttp: true }];
  host.snapshot = { ...host.snapshot, fleet: create(FleetSpecSchema, { registries }) };
  const wanted = deploy({ firstBoot: { userData: '#cloud-config\n' }, keepDisks: ['D2'] });
  host.request({ kind: 'provision', image: first, deploy: wanted });
  driveTo(host, 'runner.inspect');
  const order = sent(host.report(inspected()));
  expect(order).toMatchObject({ step: 'deploy.write_image', destructive: true });
  expect(order?.deployment).toMatchObject({
    id: `u1/${statusOf(host).run?.number}`,
    hostName: 'h1',
    image: { reference: first, plainHttp: true },
    rootDisk: { serial: 'DISK-1' },
    deploy: { keepDisks: ['D2'], firstBoot: { userData: '#cloud-config\n' } },
  });
  expect(orderOf(host).deployment?.deploy).toBeUndefined();
});

test('the agent is sent no first-boot data for what it does itself, only what it goes by', () => {
  const format = FirstBootFormat.NO_CLOUD;
  const firstBoot = { format, userData: '#cloud-config\n', metaData: { a: 'b' } };
  for (const netboot of [false, true]) {
    const host = availableHost();
    const proof = DeployProof.PHONE_HOME;
    const wanted = deploy({ firstBoot, netboot, proof, keepDisks: ['D2'] });
    const effects = host.request({ kind: 'provision', image: first, deploy: wanted });
    const narrow = deploy({ firstBoot: { format }, netboot, proof });
    const told = sent(effects)?.deployment?.deploy;
    expect(told && equals(DeploySpecSchema, told, narrow)).toBe(true);
  }
});

test('a host is in service once it has proved itself, in the time that it is given', () => {
  const host = availableHost();
  const wanted = deploy({ proofTimeout: durationFromMs(3_600_000) });
  host.request({ kind: 'provision', image: first, deploy: wanted });
  driveTo(host, 'deploy.await_image');
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, image: first });
  const { deadline } = host.operation();
  expect(deadline).toEqual(timestampFromMs(host.nowMs + 3_600_000));
  expect(orderOf(host)).toMatchObject({ bootOperationId: '', destructive: false });
  expect(orderOf(host).bmc).toBeUndefined();
  const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
  expect(told.blocker).toBe('the proof that the host runs its image');
  expect(told.causes[0]?.text).toContain('has not phoned home yet');
  host.report(done);
  expect(statusOf(host)).toMatchObject({ state: HostState.PROVISIONED, dirty: true });
  const kept = statusOf(host).deploy;
  expect(kept && equals(DeploySpecSchema, kept, wanted)).toBe(true);
});

test('a host that never proves itself is not in service, and what it holds is named', () => {
  const host = availableHost();
  host.request({ kind: 'provision', image: first });
  driveTo(host, 'deploy.await_image');
  passTime(host, 21 * 60_000);
  const { run, faults, image, state } = statusOf(host);
  expect(run?.error?.type).toBe(FailureType.NOT_PROVED);
  expect(run?.error?.message).toContain('was switched on at 2026-01-01T');
  expect(run?.error?.message).toContain('has not phoned home in 20 minutes');
  expect(run?.error?.message).toContain('nothing was seen of it since');
  expect(faults[0]?.message).toContain(`on the disk: the whole of ${first}`);
  expect([state, image]).toEqual([HostState.MANAGEABLE, first]);
});

/** The agent has sent a message since. */
function passTime(host: Bench, ms: number): void {
  host.nowMs += ms;
  const { session } = host.snapshot;
  if (session === undefined) throw new Error('no session');
  host.snapshot = { ...host.snapshot, session: { ...session, lastMessageMs: host.nowMs } };
  host.apply({ kind: 'tick' });
}

function continuing(init: MessageInitShape<typeof agent.ContinuingSchema>): agent.Report['result'] {
  return { case: 'continuing', value: create(agent.ContinuingSchema, init as agent.Continuing) };
}

const refusedCall = { kind: agent.HostSignKind.WRONG_TOKEN, detail: '10.0.0.66' };
const netbooted = { kind: agent.HostSignKind.NETBOOT, detail: 'script' };

test('one text says that a host is not proved, whoever says it first, with what was seen', () => {
  const messages = ['the agent', 'our own deadline'].map((who) => {
    const host = availableHost();
    const wanted = deploy({ proofTimeout: durationFromMs(60_000) });
    host.request({ kind: 'provision', image: first, deploy: wanted });
    driveTo(host, 'deploy.await_image');
    const writtenDisk = { disk: 'DISK-1', bootEntryProblem: 'the firmware is full' };
    Object.assign(statusOf(host), { writtenDisk, poweredOn: false });
    const signs = [
      { ...refusedCall, time: timestampFromMs(host.nowMs + 30_000) },
      { ...netbooted, time: timestampFromMs(host.nowMs + 10_000) },
    ];
    host.report(continuing({ step: 'deploy.await_image', signs }));
    const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
    expect(told.causes.map(({ text }) => text)).toContain('it asked for a network boot (script)');
    if (who === 'the agent') {
      const observations = { signs };
      const init = {
        type: FailureType.NOT_PROVED,
        message: 'it has not phoned home',
        observations,
      };
      host.report({ case: 'failed', value: create(agent.FailedSchema, init) });
    } else passTime(host, 2 * 60_000);
    return statusOf(host).run?.error?.message ?? '';
  });
  expect(messages[0]).toBe(messages[1]);
  expect(messages[0]).toMatch(
    /home in 1 minute; it asked for a network boot \(script\) at 2026-.*; 10\.0\.0\.66 phoned/,
  );
  expect(messages[0]).toContain(
    '; it has been seen off since; it was to boot from its disk DISK-1',
  );
  expect(messages[0]).toContain('without a boot entry (the firmware is full)');
});

test('the observations of a host are recorded once for each kind, and whole at the end', () => {
  const host = availableHost();
  host.request({ kind: 'provision', image: first });
  driveTo(host, 'deploy.await_image');
  const say = (seconds: number) => {
    const time = timestampFromMs(host.nowMs + seconds * 1_000);
    host.report(continuing({ step: 'deploy.await_image', signs: [{ ...netbooted, time }] }));
    return host.record.signs[0]?.time;
  };
  const at = say(1);
  expect(say(20)).toEqual(at);
  const unknown = [
    { kind: 99 as agent.HostSignKind },
    ...Array.from({ length: 20 }, () => netbooted),
  ];
  const observations = { signs: unknown };
  const init = { type: FailureType.NOT_PROVED, message: '', observations };
  host.report({ case: 'failed', value: create(agent.FailedSchema, init as agent.Failed) });
  expect(host.record.signs).toHaveLength(8);
  host.request({ kind: 'clean', steps: [] });
  expect(host.record.signs).toEqual([]);
});

test.each([{ netboot: false }, { netboot: true }])(
  'a host in service runs on until its next image is in its rack, %j',
  ({ netboot }) => {
    const host = inService();
    const { status: of } = host.record.host ?? {};
    if (netboot && of !== undefined) of.deploy = deploy({ netboot });
    host.request({ kind: 'reimage', image: second });
    const { run } = statusOf(host);
    expect(run?.steps[0]?.name).toBe('deploy.fetch_image');
    expect(orderOf(host)).toMatchObject({
      ...{ step: 'deploy.fetch_image', destructive: false, bootOperationId: '' },
      deployment: { image: { reference: second } },
      turnTimeout: durationFromMs(2 * 3_600_000),
    });
    expect(statusOf(host)).toMatchObject({ poweredOn: true, image: first });
    host.report(failed('imageNotFound', 'the registry has no such image'));
    expect(statusOf(host).run).toMatchObject({ kind: RunKind.REIMAGE, phase: RunPhase.ENDED });
    expect(statusOf(host)).toMatchObject({ state: HostState.PROVISIONED, poweredOn: true });
    expect(statusOf(host)).toMatchObject({ image: first, deploy: { netboot } });
    expect(host.record.pendingPower).toBeUndefined();
    const power = run?.steps.filter(({ name, attempt }) => name.startsWith('power') && attempt > 0);
    expect(power).toEqual([]);
    expect(statusOf(host).faults).toMatchObject([
      { type: 'reimageFailed', severity: FaultSeverity.WARNING },
    ]);
  },
);

test('a step’s time begins when it has its slot for the image', () => {
  const host = inService();
  host.request({ kind: 'reimage', image: second });
  driveTo(host, 'deploy.write_image');
  const sentMs = host.nowMs;
  const hourMs = 3_600_000;
  const deadlineMs = () => {
    const { run } = statusOf(host);
    return timestampMs(run?.steps[run.currentStep]?.deadline ?? timestampFromMs(0)) - sentMs;
  };
  expect(orderOf(host).turnTimeout).toEqual(durationFromMs(2 * hourMs));
  expect(host.operation().deadline).toEqual(timestampFromMs(sentMs + 26 * hourMs));
  expect(deadlineMs()).toBe(2 * hourMs);
  host.report(continuing({ queuePlace: 3 }));
  expect(deadlineMs()).toBe(24 * hourMs);
  passTime(host, 5 * hourMs);
  const waiting = { reason: 'image', since: timestampFromMs(sentMs) };
  expect(statusOf(host).run).toMatchObject({ phase: RunPhase.WAITING, waiting });
  const progress = create(ProgressSchema, { text: 'queued for the image, place 2' });
  const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs }, { progress });
  expect(told.causes.map(({ text }) => text)).toEqual([
    `a slot to get ${second}`,
    'queued for the image, place 2',
  ]);
  expect(told.deadline).toEqual(timestampFromMs(sentMs + 24 * hourMs));
  host.report(continuing({ text: 'asks for the image' }));
  expect(statusOf(host).run?.phase).toBe(RunPhase.RUNNING);
  expect(deadlineMs()).toBe(7 * hourMs);
  host.report(continuing({ text: 'fetches the image' }));
  expect(deadlineMs()).toBe(7 * hourMs);
  passTime(host, 2 * hourMs + 30_000);
  expect(statusOf(host).lastError?.failure?.type).toBe(FailureType.DEADLINE);
});

test('a slot that never comes ends the wait, with one message from agent and control plane', () => {
  const messages = ['the agent', 'our own deadline'].map((who) => {
    const host = inService();
    host.request({ kind: 'reimage', image: second });
    driveTo(host, 'deploy.write_image');
    host.report(continuing({ queuePlace: 3 }));
    if (who === 'the agent') host.report(untouched('queueTimeout'));
    else passTime(host, 25 * 3_600_000);
    expect(statusOf(host).lastError?.failure?.type).toBe(FailureType.QUEUE_TIMEOUT);
    return statusOf(host).lastError?.failure?.message;
  });
  expect(messages[0]).toBe(messages[1]);
  expect(messages[0]).toContain(`waited 1 day for a slot to get ${second}: the agent of racks/r1`);
});

test('a host that waits for its slot can be deleted: its order is cancelled', () => {
  const host = availableHost();
  host.request({ kind: 'provision', image: first });
  driveTo(host, 'deploy.write_image');
  const { id } = host.operation();
  const remove = { kind: 'delete', mode: DeletionMode.NORMAL, reason: '' } as const;
  expect(
    host.try({ kind: 'request', request: remove, by: { actor: readActor('a') } }),
  ).toMatchObject({
    kind: 'refused',
  });
  host.report(continuing({ queuePlace: 3 }));
  expect(displayOf(statusOf(host))).toBe('provisioning, queued for its image');
  const effects = host.request(remove);
  expect(effects.find(({ kind }) => kind === 'cancel')).toMatchObject({ operationId: id });
  // Its position is reported once more: an order that is called off no longer waits.
  host.report(continuing({ queuePlace: 2 }));
  expect(statusOf(host).run).toMatchObject({ phase: RunPhase.RUNNING });
});

test('an agent that was away while its order waited for its slot goes on with it', () => {
  const host = inService();
  host.request({ kind: 'reimage', image: second });
  driveTo(host, 'deploy.write_image');
  const { id } = host.operation();
  host.report(continuing({ queuePlace: 3 }));
  const { session } = host.snapshot;
  if (session === undefined) throw new Error('no session');
  host.snapshot = { ...host.snapshot, session: undefined };
  host.apply({ kind: 'tick' });
  expect(statusOf(host).run?.waiting?.reason).toBe('agent');
  host.nowMs += 3 * 3_600_000;
  host.snapshot = { ...host.snapshot, session: { ...session, lastMessageMs: host.nowMs } };
  const { journal } = session;
  const { JOURNALLED: state } = agent.JournalledOperation_State;
  const listed = [create(agent.JournalledOperationSchema, { operationId: id, state })];
  host.apply({ kind: 'hello', journal, listed, grants: [] });
  host.apply({ kind: 'tick' });
  expect(host.operation().id).toBe(id);
  host.report(continuing({ queuePlace: 1 }));
  expect(statusOf(host).run?.waiting?.reason).toBe('image');
});

test('an image that cannot be had leaves a host in service on the one before', () => {
  const host = inService();
  const before = host.record.deployedRun;
  host.request({ kind: 'reimage', image: second });
  driveTo(host, 'deploy.write_image');
  expect(statusOf(host).image).toBe('');
  host.report(untouched('imageNotFound'));
  expect(statusOf(host)).toMatchObject({ state: HostState.PROVISIONED, image: first });
  expect(host.record.deployedRun).toBe(before);
  expect(statusOf(host).faults[0]?.message).toContain(`on the disk: ${first}, untouched`);
  expect(statusOf(host).run?.kind).toBe(RunKind.POWER);
  expect(statusOf(host).run?.steps.map(({ name }) => name)).toEqual(['power.off', 'power.on']);
  const ended = host.record.finishedRuns[0] ?? statusOf(host).run;
  const writing = ended?.steps.find(({ name }) => name === 'deploy.write_image');
  expect(writing).toMatchObject({ disksUntouched: true, state: StepState.FAILED });
});

test('one attempt that may have written counts, whatever a later one says', () => {
  for (const cut of [failed('interrupted'), failed('writeError')]) {
    const host = inService();
    host.request({ kind: 'reimage', image: second });
    driveTo(host, 'deploy.write_image');
    host.report(cut);
    if (stepAt(host) === 'deploy.write_image') host.report(untouched('imageNotFound'));
    expect(statusOf(host).image).toBe('');
    expect(statusOf(host).deploy).toBeUndefined();
    expect(statusOf(host).faults[0]?.message).toContain(`a part of ${second}`);
    expect(statusOf(host).run?.steps.map(({ name }) => name)).toEqual(['power.off']);
  }
});

test('an order that left and of which no word has come may have written', () => {
  const host = inService();
  host.request({ kind: 'reimage', image: second });
  driveTo(host, 'deploy.write_image');
  host.nowMs += 25 * 3_600_000;
  const { session } = host.snapshot;
  if (session === undefined) throw new Error('no session');
  host.snapshot = { ...host.snapshot, session: { ...session, lastMessageMs: host.nowMs } };
  host.apply({ kind: 'tick' });
  expect(statusOf(host).image).toBe('');
  expect(statusOf(host).faults[0]?.message).toContain('a part of');
});

test('a registry that stays away for too long gives the host back to what it ran', () => {
  const host = inService();
  host.request({ kind: 'reimage', image: second });
  driveTo(host, 'deploy.write_image');
  const away = {
    cause: TransientCause.REGISTRY,
    message: 'it does not answer',
    disksUntouched: true,
  };
  for (let minute = 0; minute < 40 && stepAt(host) === 'deploy.write_image'; minute++) {
    host.report({ case: 'transientError', value: create(agent.TransientErrorSchema, away) });
    host.nowMs += 60_000;
    host.apply({ kind: 'tick' });
  }
  expect(statusOf(host).lastError?.failure?.type).toBe(FailureType.REGISTRY_UNREACHABLE);
  expect(statusOf(host).image).toBe(first);
});

test('a reimage without a word of how keeps how it was deployed', () => {
  const host = availableHost();
  const wanted = deploy({ proof: DeployProof.POWER_ON });
  host.request({ kind: 'provision', image: first, deploy: wanted });
  driveTo(host, 'deploy.await_image');
  host.report(done);
  host.request({ kind: 'claim', reason: 'mine' });
  host.request({ kind: 'reimage', image: second });
  expect(host.record.deploy?.proof).toBe(DeployProof.POWER_ON);
  driveTo(host, 'deploy.write_image');
  host.report(failed('writeError'));
  host.report(done);
  host.request({ kind: 'reimage', image: first });
  expect(host.record.deploy?.proof).toBe(DeployProof.POWER_ON);
});

test('the progress that an agent reports of an image is shown', () => {
  const host = availableHost();
  host.request({ kind: 'provision', image: first });
  driveTo(host, 'deploy.write_image');
  const progress = create(ProgressSchema, { percent: 0, text: 'queued for the image, place 3' });
  const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs }, { progress });
  expect(told.causes.map(({ text }) => text)).toContain('0 %: queued for the image, place 3');
  expect(told.blocker).toBe('the image on its way');
});

test('an image by tag, or over plain HTTP that nobody has allowed, comes onto no host', () => {
  const host = availableHost();
  const ask = (image: string) => {
    const request = { kind: 'provision', image } as const;
    const outcome = host.try({ kind: 'request', request, by: { actor: userActor('test') } });
    return outcome.kind === 'refused' ? outcome.refusal.message : outcome.kind;
  };
  expect(ask('registry.example/os:1')).toContain('a host is told only digests');
  const file = `http://files.example/os.raw#sha256=${'1'.repeat(64)}`;
  expect(ask(file)).toContain('by plain HTTP, which the fleet does not allow');
  const registries = [{ registry: 'files.example', plainHttp: true }];
  host.snapshot = { ...host.snapshot, fleet: create(FleetSpecSchema, { registries }) };
  expect(ask(file)).toBe('kept');
  const lacking = [{ registry: 'files.example', plainHttp: true, credential: 'credentials/c9' }];
  host.snapshot = { ...host.snapshot, fleet: create(FleetSpecSchema, { registries: lacking }) };
  expect(ask(file)).toContain('credentials/c9, which the fleet names for files.example, does not');
});

test('a deployment that is aborted before it writes leaves the host to what it ran', () => {
  const host = inService();
  host.request({ kind: 'reimage', image: second });
  driveTo(host, 'runner.inspect');
  host.request({ kind: 'abort', reason: 'no' });
  host.report(failed('cancelled'));
  expect(host.record.finishedRuns[0]?.outcome ?? statusOf(host).run?.outcome).not.toBe(
    RunOutcome.SUCCEEDED,
  );
  expect(statusOf(host).image).toBe(first);
});

test.each([
  ['dirty', {}, 'deploy.await_image'],
  ['dirty, also where no disk was written', { netboot: true }, 'deploy.await_image'],
])('a host that was deployed is %s', (_, wanted, last) => {
  const host = availableHost();
  expect(statusOf(host).dirty).toBe(false);
  host.request({ kind: 'provision', image: first, deploy: deploy(wanted) });
  driveTo(host, last);
  host.report(done);
  expect(statusOf(host)).toMatchObject({ state: HostState.PROVISIONED, dirty: true });
});

test('a host that was deployed leaves word of its data when it goes by force', () => {
  const host = inService();
  host.request({ kind: 'unclaim', reason: 'done' });
  host.snapshot = { ...host.snapshot, session: undefined };
  const burnt = { kind: 'delete', mode: DeletionMode.FORCE, reason: 'burnt down' } as const;
  const effects = [...host.request(burnt)];
  for (let minutes = 0; minutes < 30 && !host.removed; minutes += 1) {
    host.nowMs += 60_000;
    effects.push(...host.apply({ kind: 'tick' }));
  }
  const [left] = effects.flatMap((effect) => (effect.kind === 'abandon' ? [effect.resource] : []));
  expect(left?.leftBehind).toContainEqual(expect.stringMatching(/^data: the host ran an image/));
});
