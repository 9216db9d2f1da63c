/** Erased disks are read again after a power cycle, before anything is written or used. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { parseDocument, parseStatement } from '@rackwright/erasure';
import {
  agent,
  DeploySpecSchema,
  ErasureDocumentKind,
  type FailureName,
  FailureType,
  HostGoal,
  HostSpecSchema,
  HostState,
  PowerCycleCheck,
  RunKind,
  RunOutcome,
  StepState,
  StorageDeviceSchema,
  StorageRegionSchema,
  WriteCache,
} from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { foresee, type PlannableRequest } from '../foresee/foresee.ts';
import {
  type Bench,
  bench,
  done,
  erased,
  inspected,
  startMs,
  statusOf,
  stepAt,
  verified,
  virtioDisk,
} from '../testing/bench.ts';
import {
  again,
  atErase,
  atFirst,
  available,
  boot,
  brings,
  documentsOf,
  fails,
  type Outcome,
  otherSeed,
  proves,
  reread,
  type Spec,
  whole,
} from './power-cycle.fixture.ts';
import { isRereadingDue } from './power-cycle.ts';

const image = `r.example/os@sha256:${'ab'.repeat(32)}`;
const provision = { kind: 'provision', image } as const;
const names = (host: Bench) => statusOf(host).run?.steps.map(({ name }) => name) ?? [];

function observe(host: Bench, seen: { readonly poweredOn: boolean }): void {
  const observations = create(agent.ObservationsSchema, seen);
  const value = create(agent.HostUpdatedSchema, { observations });
  const result = { case: 'hostUpdated' as const, value };
  host.apply({ kind: 'report', report: create(agent.ReportSchema, { hostUid: 'u1', result }) });
}

function seenOn(host: Bench): void {
  observe(host, { poweredOn: true });
}

describe('the first boot of the runner after a clean', () => {
  test('reads again before an image is written', () => {
    const host = available();
    host.request(provision);
    expect(names(host).slice(-6)).toEqual([
      ...['runner.inspect', again, 'deploy.write_image', 'power.off', 'power.on'],
      'deploy.await_image',
    ]);
    if (stepAt(host) === 'deploy.fetch_image') host.report(done);
    boot(host, [whole, again, 'deploy.write_image']);
    host.report(inspected());
    expect(stepAt(host)).toBe(again);
    const { kind } = host.operation();
    expect(kind.value).toMatchObject({
      destructive: false,
      devices: [{ certificate: expect.stringMatching(/^erasureCertificates\//) }],
    });
    const [certified] = host.record.certified;
    expect(documentsOf(proves(host))).toMatchObject([
      {
        id: `${certified?.certificate.replace(/^.*\//, '')}-addendum`,
        kind: ErasureDocumentKind.ADDENDUM,
        certificates: [certified?.certificate],
      },
    ]);
    expect(stepAt(host)).toBe('deploy.write_image');
    expect(host.record.unproved).toEqual([]);
  });

  test('reads again in an inspection and in the next clean, and only once', () => {
    const host = available();
    host.request({ kind: 'inspect' });
    boot(host);
    host.report(inspected());
    proves(host);
    host.report(done);
    expect(statusOf(host).state).toBe(HostState.AVAILABLE);
    host.request({ kind: 'inspect' });
    expect(names(host)).not.toContain(again);
  });

  test('a clean that was lost before it read still reads', () => {
    const host = available();
    host.request({ kind: 'clean', steps: [] });
    host.report(done);
    host.report({
      case: 'failed',
      value: create(agent.FailedSchema, { type: FailureType.INTERNAL }),
    });
    expect(statusOf(host).run?.outcome).toBe(RunOutcome.FAILED);
    host.request({ kind: 'clean', steps: [] });
    expect(names(host).slice(0, 6)).toEqual([
      ...['power.off', 'power.bootRunner', 'runner.await', 'runner.inspect', again, whole],
    ]);
  });

  test('does not read disks that were used since', () => {
    const host = available();
    seenOn(host);
    expect(statusOf(host).run).toMatchObject({ kind: RunKind.CLEAN });
    expect(names(host)).not.toContain(again);
  });

  test('does not read disks that were used while its run had already begun', () => {
    const host = available();
    host.request({ kind: 'inspect' });
    expect(names(host)).toContain(again);
    seenOn(host);
    boot(host);
    host.report(inspected());
    const { run } = statusOf(host);
    expect(run).toMatchObject({ kind: RunKind.INSPECT, outcome: RunOutcome.UNSPECIFIED });
    const reading = run?.steps.find(({ name }) => name === again);
    expect(reading?.state).toBe(StepState.SKIPPED);
  });

  test('ends a reading that has begun when the disks are used before it comes back', () => {
    const host = available();
    host.request({ kind: 'inspect' });
    boot(host);
    host.report(inspected());
    expect(stepAt(host)).toBe(again);
    const { session } = host.snapshot;
    if (session === undefined) throw new Error('the bench has a session');
    const journal = create(agent.JournalSchema, { id: 'j2', generation: 1n });
    host.snapshot = { ...host.snapshot, session: { ...session, journal } };
    host.apply({ kind: 'tick' });
    expect(stepAt(host)).toBe('power.off');
    observe(host, { poweredOn: false });
    observe(host, { poweredOn: true });
    boot(host);
    host.report(inspected());
    const reading = statusOf(host).run?.steps.find(({ name }) => name === again);
    expect(reading).toMatchObject({ state: StepState.SKIPPED, attempt: 1 });
  });

  test('leaves out a disk that is not there any more', () => {
    const host = available();
    host.request({ kind: 'inspect' });
    boot(host);
    host.report(inspected([]));
    const reading = statusOf(host).run?.steps.find(({ name }) => name === again);
    expect(reading?.state).toBe(StepState.SKIPPED);
  });

  const bootAndRead = [
    ...['power.off', 'power.bootRunner', 'runner.await', 'runner.inspect', again, 'power.off'],
  ];

  test('is a separate boot before an image boots over the network', () => {
    const host = available();
    const deploy = create(DeploySpecSchema, { netboot: true });
    host.request({ ...provision, deploy });
    expect(names(host)).toEqual([
      ...['deploy.fetch_image', ...bootAndRead, 'power.bootImage', 'deploy.await_image'],
    ]);
    host.report(done);
    boot(host);
    host.report(inspected());
    proves(host);
    host.report(done);
    expect(stepAt(host)).toBe('power.bootImage');
  });

  test('is a separate boot before rescue, whose runner takes no step', () => {
    const host = available();
    const spec = host.record.host?.spec ?? create(HostSpecSchema);
    const goal = HostGoal.MANAGEABLE;
    host.request({ kind: 'update', spec: { ...spec, goal }, labels: {} });
    host.request({ kind: 'rescue', reason: '' });
    expect(names(host)).toEqual([...bootAndRead, 'power.bootRescue', 'runner.await']);
    boot(host);
    host.report(inspected());
    const documents = documentsOf(proves(host));
    expect(documents).toMatchObject([{ kind: ErasureDocumentKind.ADDENDUM }]);
    boot(host, []);
    expect(statusOf(host)).toMatchObject({ inRescue: true, run: { outcome: 1 } });
  });

  test('R8: a runner that cannot read again writes nothing', () => {
    const host = available();
    host.request(provision);
    if (stepAt(host) === 'deploy.fetch_image') host.report(done);
    boot(host, [whole, 'deploy.write_image']);
    expect(statusOf(host).lastError?.failure?.type).toBe(FailureType.UNSUPPORTED);
    expect(statusOf(host).state).toBe(HostState.AVAILABLE);
    expect(host.record.unproved).toHaveLength(1);
  });

  test('reads nothing again once somebody may have used a host whose next clean failed', () => {
    const host = available();
    // A new clean counts no earlier erasure; pending second readings stay.
    host.record.certified = [];
    Object.assign(statusOf(host), { state: HostState.MANAGEABLE, dirty: true, poweredOn: false });
    expect(isRereadingDue({ record: host.record, status: statusOf(host) })).toBe(true);
    const epoch = statusOf(host).useEpoch;
    seenOn(host);
    expect(statusOf(host).useEpoch).toBeGreaterThan(epoch);
    expect(isRereadingDue({ record: host.record, status: statusOf(host) })).toBe(false);
  });

  test('gets no order that the erasing runner could not carry out', () => {
    const host = available([whole]);
    host.request({ kind: 'inspect' });
    expect(names(host)).not.toContain(again);
  });
});

describe('a large disk that was overwritten and read whole', () => {
  const gib = 1024n ** 3n;
  const sizeBytes = 1_000n * gib;
  const large = create(StorageDeviceSchema, {
    ...virtioDisk,
    ...{ sizeBytes, discardSupported: false },
    regions: [create(StorageRegionSchema, { name: 'vda', sizeBytes, logicalBlockBytes: 512 })],
  });
  /** Overwritten and read whole, in ten hours. */
  function overwritten(host: Bench): void {
    const { OVERWRITE } = agent.ErasureMethod;
    const written = { bytesWritten: sizeBytes, endTime: timestampFromMs(startMs + 36_000_000) };
    brings(host, { ...(erased(large, OVERWRITE) as Outcome), ...written }, { bootId: 'b1' });
    host.report(inspected([large]));
  }

  test('is sampled before an image comes onto it, and the plan says how long that takes', () => {
    const host = atErase({}, large);
    overwritten(host);
    host.report(done);
    expect(statusOf(host).state).toBe(HostState.AVAILABLE);
    const seen = foresee(
      { record: host.record, snapshot: { ...host.snapshot, nowMs: host.nowMs } },
      {
        ...provision,
        at: undefined,
      } as PlannableRequest,
    );
    expect(seen).toMatchObject({
      devices: [
        {
          fate: expect.stringContaining('written'),
          verification: 'again after the power cycle: 46050 places and as many new ones',
          reads: 92_100n,
          time: { seconds: 13n },
        },
      ],
    });
  });

  const levelOf = ({ kind }: agent.Operation) => {
    return kind.case === 'runStep' ? kind.value.devices[0]?.verification : undefined;
  };

  test.each<[string, Spec, object]>([
    ['sampled by default', {}, { level: agent.VerificationLevel.SAMPLED, places: 46_050n }],
    [
      'sampled as the site wants it',
      { cleaning: { verification: { sharePpcm: 100_000 } } },
      { level: agent.VerificationLevel.SAMPLED, places: 4_603n },
    ],
    [
      'read whole where the site reads all disks whole',
      { cleaning: { verification: { full: true } } },
      { level: agent.VerificationLevel.FULL },
    ],
    [
      'read whole below the configured size',
      { cleaning: { verification: { fullBelowBytes: 2_000n * gib } } },
      { level: agent.VerificationLevel.FULL },
    ],
  ])('is %s when it is read again', (_text, spec, expected) => {
    const { IMMEDIATE } = PowerCycleCheck;
    const cleaning = { powerCycleCheck: IMMEDIATE, ...spec?.cleaning };
    const host = atErase({ cleaning }, large);
    expect(levelOf(host.operation())).toMatchObject({ level: agent.VerificationLevel.FULL });
    overwritten(host);
    boot(host);
    expect(stepAt(host)).toBe(again);
    expect(levelOf(host.operation())).toMatchObject(expected);
  });
});

test('a certificate names what made it: version and build', () => {
  const host = atErase();
  const software = { version: '1.2.3', buildSha256: 'ab'.repeat(32) };
  host.snapshot = { ...host.snapshot, software };
  const effects = brings(host, erased(virtioDisk), { bootId: 'b1' });
  const [draft] = effects.flatMap((each) => (each.kind === 'certify' ? each.certificates : []));
  expect(parseStatement(draft?.statement ?? new Uint8Array())).toMatchObject({ software });
});

describe('data that has come back', () => {
  test('stops a deployment before it writes, and takes the host out of available', () => {
    const host = available();
    host.request(provision);
    if (stepAt(host) === 'deploy.fetch_image') host.report(done);
    boot(host, [whole, again, 'deploy.write_image']);
    host.report(inspected());
    const epoch = statusOf(host).useEpoch;
    const [revocation] = documentsOf(fails(host, 'dataReturned'));
    expect(revocation).toMatchObject({ kind: ErasureDocumentKind.REVOCATION, useEpoch: epoch });
    const said = parseDocument(revocation?.statement ?? new Uint8Array());
    expect(said).toMatchObject({ revocation: { reason: 'dataReturned', detail: 'it is back' } });
    const status = statusOf(host);
    expect(status).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
    expect(status.useEpoch).toBeGreaterThan(epoch);
    expect(status.faults.map(({ type }) => type)).toContain('dataReturned');
    expect(status.run?.steps.find(({ name }) => name === 'deploy.write_image')?.attempt).toBe(0);
    expect(status.backoff?.givenUpReason).toContain('dataReturned');
  });

  test('makes the next clean read again at its end, which takes the fault away', () => {
    const host = available();
    host.request({ kind: 'inspect' });
    boot(host);
    host.report(inspected());
    fails(host, 'notErased');
    // The same name from every source.
    expect(statusOf(host).lastError?.failure?.type).toBe(FailureType.DATA_RETURNED);
    host.request({ kind: 'clean', steps: [] });
    expect(names(host).slice(-4)).toEqual(['power.bootRunner', 'runner.await', again, 'power.off']);
    boot(host);
    host.report(inspected());
    brings(host, erased(virtioDisk), { bootId: 'b3' });
    host.report(inspected());
    boot(host);
    expect(statusOf(host).faults.map(({ type }) => type)).toContain('dataReturned');
    proves(host, 'b4');
    host.report(done);
    expect(statusOf(host)).toMatchObject({ state: HostState.AVAILABLE, faults: [] });
  });

  test('is erased again, and read again, by a clean that goes on after it', () => {
    const host = available();
    host.request({ kind: 'inspect' });
    boot(host);
    host.report(inspected());
    fails(host, 'notErased');
    host.request({ kind: 'clean', steps: [] });
    const eraseAndBoot = (bootId: string) => {
      boot(host);
      host.report(inspected());
      brings(host, erased(virtioDisk), { bootId });
      host.report(inspected());
      boot(host);
      expect(stepAt(host)).toBe(again);
    };
    eraseAndBoot('b3');
    fails(host, 'notErased');
    expect(statusOf(host).state).toBe(HostState.MANAGEABLE);
    host.request({ kind: 'resume', reason: '' });
    expect(statusOf(host).state).toBe(HostState.MANAGEABLE);
    eraseAndBoot('b5');
    proves(host, 'b6');
    host.report(done);
    expect(statusOf(host)).toMatchObject({ state: HostState.AVAILABLE, faults: [] });
  });
});

describe('a reading that shows nothing', () => {
  test.each<[FailureName, HostState]>([
    ['ioError', HostState.MANAGEABLE],
    ['deviceChanged', HostState.MANAGEABLE],
    ['internal', HostState.AVAILABLE],
    ['unsupported', HostState.AVAILABLE],
  ])('a reading that fails with %s leaves the host in state %i', (type, state) => {
    const host = available();
    host.request({ kind: 'inspect' });
    boot(host);
    host.report(inspected());
    fails(host, type);
    expect(statusOf(host).state).toBe(state);
    expect(statusOf(host).faults.map((fault) => fault.type)).not.toContain('dataReturned');
    expect(host.record.unproved).toHaveLength(state === HostState.AVAILABLE ? 1 : 0);
  });

  test.each<[string, (host: Bench) => unknown]>([
    ['of the boot that erased', (host) => proves(host, 'b1')],
    ['of another certificate', (host) => brings(host, reread(host, { certificate: 'x' }), {})],
    ['of a step that failed', (host) => brings(host, reread(host), { ofFailedStep: true })],
    ['that read fewer places than it says', (host) => proves(host, 'b2', { placesRead: 9n })],
    ['with places of another seed', (host) => proves(host, 'b2', { challengeSeed: otherSeed })],
    ['of places of another erasure', (host) => proves(host, 'b2', { erasedSeed: otherSeed })],
    ['that wrote', (host) => proves(host, 'b2', { bytesWritten: 4_096n })],
    ['that ends before it starts', (host) => proves(host, 'b2', { endTime: atFirst })],
    ['that read nothing', (host) => brings(host, reread(host, { placesRead: 0n }), {})],
    ['without evidence', (host) => host.report(done)],
  ])('a reading %s is no proof', (_text, bring) => {
    const host = available();
    host.request({ kind: 'inspect' });
    boot(host);
    host.report(inspected());
    bring(host);
    const why = statusOf(host).lastError?.failure?.type;
    expect([FailureType.INVALID_RESULT, FailureType.UNVERIFIED]).toContain(why);
    expect(host.record.unproved).toHaveLength(1);
  });
});

describe('a clean reads again at its end', () => {
  const cached = create(StorageDeviceSchema, { ...virtioDisk, writeCache: WriteCache.FIXED_ON });
  const immediate = { powerCycleCheck: PowerCycleCheck.IMMEDIATE };
  test.each<[string, Spec, typeof virtioDisk]>([
    ['by its policy', { cleaning: immediate }, virtioDisk],
    ['of a host that is retired', { retired: true, goal: HostGoal.AVAILABLE }, virtioDisk],
    ['where a write cache cannot be switched off', {}, cached],
  ])('a clean reads again at its end %s', (_text, spec, disk) => {
    const host = bench(spec);
    host.apply({ kind: 'tick' });
    host.report(verified());
    if (stepAt(host) === '') host.request({ kind: 'inspect' });
    boot(host);
    host.report(inspected([disk]));
    if (statusOf(host).run?.kind !== RunKind.CLEAN) {
      host.report(done);
      host.request({ kind: 'clean', steps: [] });
      boot(host);
    }
    host.report(inspected([disk]));
    brings(host, erased(disk), { bootId: 'b1' });
    host.report(inspected([disk]));
    boot(host);
    expect(statusOf(host).dirty).toBe(true);
    proves(host);
    host.report(done);
    expect(statusOf(host).run?.outcome).toBe(RunOutcome.SUCCEEDED);
    expect(statusOf(host).dirty).toBe(false);
  });

  test('a clean does not read again where the policy leaves it to the next boot', () => {
    const cleaning = { powerCycleCheck: PowerCycleCheck.NEXT_BOOT };
    expect(names(atErase({ cleaning, retired: false }, cached))).not.toContain(again);
  });

  test('a clean whose first runner is lost reads again in another boot, and erases no more', () => {
    const host = atErase({ cleaning: immediate });
    brings(host, erased(virtioDisk), { bootId: 'b1' });
    host.report(inspected());
    boot(host);
    const value = create(agent.RetryAfterSchema, {
      reason: agent.ConflictReason.INVALID_STATE,
      message: 'the grant is lost',
      delay: durationFromMs(1_000),
    });
    host.report({ case: 'retryAfter', value });
    expect(stepAt(host)).toBe('power.off');
    boot(host);
    expect(stepAt(host)).toBe(again);
    proves(host);
    host.report(done);
    expect(statusOf(host)).toMatchObject({ state: HostState.AVAILABLE });
  });
});
