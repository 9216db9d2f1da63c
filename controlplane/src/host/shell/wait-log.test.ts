/** The log says in the explanation's words what a host waits for, once. */
import { create } from '@bufbuild/protobuf';
import { agent, TransientCause } from '@rackwright/messages';
import type { LogFields } from '@rackwright/platform';
import { recordingLog } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { explainHost } from '../explain/explain.ts';
import { type Bench, bench, failed, verified } from '../testing/bench.ts';
import { WaitLog } from './wait-log.ts';

function recording() {
  const lines: { readonly message: string; readonly fields: LogFields }[] = [];
  const log = recordingLog(({ level, fields, message }) => {
    if (level === 'info') lines.push({ fields, message });
  });
  const waits = new WaitLog(log);
  const note = (host: Bench) =>
    waits.note('h1', host.record, { ...host.snapshot, nowMs: host.nowMs });
  return { lines, note };
}

const silent: agent.Report['result'] = {
  case: 'transientError',
  value: create(agent.TransientErrorSchema, {
    cause: TransientCause.UNREACHABLE,
    message: 'no answer',
  }),
};

test('a host that begins to wait writes one line, in the words that explain has', () => {
  const { lines, note } = recording();
  const host = bench();
  host.apply({ kind: 'tick' });
  note(host);
  expect(lines, 'it moves').toEqual([]);
  host.report(silent);
  note(host);
  const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
  expect(lines).toMatchObject([
    { message: told.headline, fields: { host: 'hosts/h1', blocker: told.blocker } },
  ]);
});

test('a host that waits for the same again and again says so once, and a new wait again', () => {
  const { lines, note } = recording();
  const host = bench();
  host.apply({ kind: 'tick' });
  for (let attempt = 0; attempt < 5; attempt++) {
    host.report(silent);
    note(host);
    host.nowMs += 120_000;
    host.apply({ kind: 'tick' });
    note(host);
  }
  expect(lines).toHaveLength(1);
  host.report(verified());
  host.snapshot = { ...host.snapshot, session: undefined };
  host.apply({ kind: 'tick' });
  note(host);
  expect(lines.at(-1)?.fields['blocker']).toBe('the agent of the rack');
  expect(lines).toHaveLength(2);
});

test('a goal that was given up is said as well, for it waits for a person', () => {
  const { lines, note } = recording();
  const host = bench();
  host.apply({ kind: 'tick' });
  host.report(failed('authentication'));
  note(host);
  expect(lines.at(-1)?.message).toContain('stopped trying');
});
