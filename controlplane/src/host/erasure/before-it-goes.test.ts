/** A host that goes out of use is read again first: no later boot would do that. */
import { create } from '@bufbuild/protobuf';
import {
  CleaningPolicySchema,
  DeletionMode,
  DeletionPolicySchema,
  ErasureDocumentKind,
  type HostSpec,
  PowerCycleCheck,
  RunKind,
  RunPhase,
} from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { type Bench, done, inspected, statusOf, stepAt } from '../testing/bench.ts';
import { again, available, boot, documentsOf, fails, proves } from './power-cycle.fixture.ts';

function changed(host: Bench, change: Partial<HostSpec>): void {
  const spec = host.record.host?.spec;
  if (spec === undefined) throw new Error('a host has a spec');
  host.request({ kind: 'update', spec: { ...spec, ...change }, labels: {} });
}

function deleted(host: Bench): void {
  host.request({ kind: 'delete', mode: DeletionMode.NORMAL, reason: 'sold' });
}

function atReading(host: Bench): void {
  expect(statusOf(host).run).toMatchObject({ kind: RunKind.INSPECT });
  boot(host);
  host.report(inspected());
  expect(stepAt(host)).toBe(again);
}

describe('an available host whose disks were not read after a power cycle', () => {
  test('is read again when it is retired, and once', () => {
    const host = available();
    changed(host, { retired: true });
    atReading(host);
    expect(documentsOf(proves(host))).toMatchObject([{ kind: ErasureDocumentKind.ADDENDUM }]);
    host.report(done);
    expect(statusOf(host)).toMatchObject({ dirty: false, run: { phase: RunPhase.ENDED } });
    expect(host.record.unproved).toEqual([]);
    const { number } = statusOf(host).run ?? {};
    host.apply({ kind: 'tick' });
    expect(statusOf(host).run?.number, 'nothing is left to do').toBe(number);
  });

  test('is read again when it is deleted, and goes after that', () => {
    const host = available();
    deleted(host);
    atReading(host);
    expect(documentsOf(proves(host))).toMatchObject([{ kind: ErasureDocumentKind.ADDENDUM }]);
    host.report(done);
    expect(statusOf(host).run?.kind).toBe(RunKind.DELETE);
  });

  test('has its certificate revoked before it goes, where data has come back', () => {
    const host = available();
    deleted(host);
    atReading(host);
    expect(documentsOf(fails(host, 'notErased'))).toMatchObject([
      { kind: ErasureDocumentKind.REVOCATION },
    ]);
    expect(statusOf(host).dirty).toBe(true);
  });

  test.each([
    ['its policy leaves that to the next boot', PowerCycleCheck.NEXT_BOOT, false],
    ['its data may stay', PowerCycleCheck.UNSPECIFIED, true],
  ])('goes at once where %s', (_what, powerCycleCheck, keepData) => {
    const host = available();
    const cleaning = create(CleaningPolicySchema, { powerCycleCheck });
    changed(host, { cleaning, deletion: create(DeletionPolicySchema, { keepData }) });
    deleted(host);
    expect(statusOf(host).run?.kind).toBe(RunKind.DELETE);
  });
});
