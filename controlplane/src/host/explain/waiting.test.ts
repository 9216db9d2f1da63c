/** Every possible wait of a run is explained, and following the advice moves the run. */
import { readFile } from 'node:fs/promises';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  asRunNumber,
  BmcProtocol,
  FleetSpecSchema,
  HostGoal,
  type HostWait,
  hostWaits,
  ProgressSchema,
  pendingWaits,
  RunPhase,
  type TemplatePolicySchema,
  type TransientName,
  transientCauseOf,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import type { OwnSlot, QuotaView } from '../pass/quota.ts';
import type { HostEffect, HostRequest } from '../pass/types.ts';
import {
  type Bench,
  bench,
  done,
  driveToClean,
  driveToErase,
  driveToInspect,
  failed,
  inspected,
  makeAvailable,
  verified,
} from '../testing/bench.ts';
import {
  bootNow,
  exited,
  rendered,
  runOf,
  script,
  startOn,
  workable,
} from '../testing/templates.ts';
import { explainHost } from './explain.ts';
import { waitCells } from './waiting.ts';

/** How a host begins a wait, and what ends it besides commands. */
interface Case {
  readonly into: () => Bench;
  /** Actions of `unblock` outside the host; returns their effects on it. */
  readonly outside?: (host: Bench) => readonly HostEffect[];
}

const tick = (host: Bench) => host.apply({ kind: 'tick' });

function silent(cause: TransientName, host: Bench): Bench {
  const value = create(agent.TransientErrorSchema, {
    cause: transientCauseOf(cause),
    message: `${cause}: no answer`,
  });
  host.report({ case: 'transientError', value });
  return host;
}

function atVerify(): Bench {
  const host = bench();
  tick(host);
  return host;
}

/** The announced pause is over. */
function later(host: Bench): readonly HostEffect[] {
  const { nextAttemptTime } = explained(host);
  expect(nextAttemptTime, 'what goes on by itself says when').toBeDefined();
  host.nowMs = Number(nextAttemptTime?.seconds ?? 0n) * 1_000 + 1_000;
  return tick(host);
}

/** Before the first boot, with a limit that has no slot for this host. */
function queued(name: QuotaView['name'], at: () => Bench, quota: QuotaView['quota']): Bench {
  const host = at();
  const slot: OwnSlot = { run: runOf(host).number, kind: 'queued', position: 1 };
  const nextSlotMs = host.nowMs + 60_000;
  host.snapshot = { ...host.snapshot, quotaViews: [{ name, quota, own: [slot], nextSlotMs }] };
  tick(host);
  return host;
}

function granted(host: Bench): readonly HostEffect[] {
  const quotaViews = host.snapshot.quotaViews.map((view) => ({
    ...view,
    own: view.own.map(({ run }): OwnSlot => ({ run, kind: 'open' })),
  }));
  host.snapshot = { ...host.snapshot, quotaViews };
  return tick(host);
}

/** A clean before its erasure, behind a brake. */
function braked(brake: (host: Bench) => void): Bench {
  const host = bench();
  driveToClean(host);
  brake(host);
  host.report(inspected());
  return host;
}

function allow(host: Bench, templates: MessageInitShape<typeof TemplatePolicySchema>): void {
  host.snapshot = { ...host.snapshot, fleet: create(FleetSpecSchema, { templates }) };
}

const frozen = { of: 'racks/r1', by: 'user:ann', reason: 'a drill', at: timestampFromMs(0) };

/** A provision whose image is to be written next. */
function atWrite(): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  tick(host);
  host.report(verified());
  makeAvailable(host);
  host.request({ kind: 'provision', image: `registry.example/os@sha256:${'1'.repeat(64)}` });
  host.report(done);
  driveToInspect(host);
  host.report(inspected());
  return host;
}

const webhook = rendered('tell', 'webhook', { arguments: { url: 'https://x.example/secret' } });

const cases: { readonly [W in HostWait]: Case } = {
  agent: {
    into: () => {
      const host = bench();
      host.snapshot = { ...host.snapshot, session: undefined };
      tick(host);
      return host;
    },
    outside: (host) => {
      host.snapshot = { ...host.snapshot, session: bench().snapshot.session };
      return tick(host);
    },
  },
  runner: {
    into: () => {
      const host = bench();
      tick(host);
      host.report(verified());
      host.report({ case: 'complete', value: create(agent.CompleteSchema) });
      host.report({ case: 'complete', value: create(agent.CompleteSchema) });
      return host;
    },
    outside: (host) => {
      host.runnerReady();
      return [];
    },
  },
  bmc: { into: () => silent('unreachable', atVerify()), outside: later },
  person: {
    into: () => {
      const host = bench({ bmc: { protocol: BmcProtocol.MANUAL } });
      tick(host);
      host.report(done);
      return host;
    },
    outside: (host) => host.request({ kind: 'confirmPower', on: false }),
  },
  registry: {
    into: () => {
      const host = workable();
      allow(host, { imageRepositories: ['registry.example/tools/*'] });
      const image = `registry.example/tools/check@sha256:${'a'.repeat(64)}`;
      startOn(host, [rendered('check', 'run.command', { arguments: { image } })]);
      bootNow(host);
      return silent('registry', host);
    },
    outside: later,
  },
  image: {
    into: () => {
      const host = atWrite();
      host.report({ case: 'continuing', value: create(agent.ContinuingSchema, { queuePlace: 3 }) });
      return host;
    },
    outside: (host) => {
      const text = 'asks for the image';
      return host.report({ case: 'continuing', value: create(agent.ContinuingSchema, { text }) });
    },
  },
  conflict: {
    into: () => {
      const host = atVerify();
      const reason = agent.ConflictReason.LOCKED;
      const delay = durationFromMs(30_000);
      const value = create(agent.RetryAfterSchema, { reason, message: 'locked', delay });
      host.report({ case: 'retryAfter', value });
      return host;
    },
    outside: later,
  },
  retry: {
    into: () => {
      const host = workable();
      startOn(host, [script('a', { retries: 2 })]);
      bootNow(host);
      host.report(exited(1));
      return host;
    },
    outside: later,
  },
  webhook: {
    into: () => {
      const host = workable();
      allow(host, { webhookUrls: ['https://x.example/'] });
      startOn(host, [webhook]);
      const call = host.record.call?.id ?? '';
      const result = { kind: 'transientError', message: 'refused' } as const;
      host.apply({ kind: 'webhookResult', id: call, result });
      return host;
    },
    outside: later,
  },
  hold: {
    into: () => {
      const host = workable();
      startOn(host, [rendered('look', 'hold', { arguments: { reason: 'look at it' } })]);
      return host;
    },
  },
  wait: {
    into: () => {
      const host = workable();
      startOn(host, [rendered('settle', 'wait', { arguments: { seconds: '90' } })]);
      return host;
    },
    outside: later,
  },
  freeze: {
    into: () =>
      braked((host) => {
        host.snapshot = { ...host.snapshot, freeze: frozen };
      }),
    outside: (host) => {
      host.snapshot = { ...host.snapshot, freeze: undefined };
      return tick(host);
    },
  },
  wipeBudget: {
    into: () => {
      const quota = { kind: 'inStretch', hosts: 1, stretchMs: 60_000 } as const;
      return braked((host) => queued('rackWipes', () => host, quota));
    },
    outside: granted,
  },
  capacity: {
    into: () => {
      const host = bench({ goal: HostGoal.MANAGEABLE });
      tick(host);
      host.report(verified());
      const own: OwnSlot[] = [{ run: asRunNumber(2), kind: 'queued', position: 1 }];
      const quota = { kind: 'atOnce', hosts: 1 } as const;
      host.snapshot = {
        ...host.snapshot,
        quotaViews: [{ name: 'runner', quota, own, nextSlotMs: undefined }],
      };
      host.request({ kind: 'inspect' });
      return host;
    },
    outside: granted,
  },
  restored: {
    into: () => {
      const host = bench();
      host.snapshot = { ...host.snapshot, session: undefined };
      tick(host);
      const { session } = bench().snapshot;
      host.snapshot = { ...host.snapshot, session, restored: 'the store was restored' };
      tick(host);
      return host;
    },
    outside: (host) => {
      host.snapshot = { ...host.snapshot, restored: undefined };
      const { journal } = host.snapshot.session ?? {};
      if (journal === undefined) throw new Error('no session');
      // The agent connects anew once it knows of the acceptance.
      return host.apply({ kind: 'hello', journal, listed: [] });
    },
  },
};

function explained(host: Bench) {
  return explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
}

function waitsFor(host: Bench): string | undefined {
  const { run } = host.record.host?.status ?? {};
  return run?.phase === RunPhase.WAITING ? run.waiting?.reason : undefined;
}

/** Whether the wait has changed: it is over, or the order was sent again. */
function moved(host: Bench, reason: string, effects: readonly HostEffect[]): boolean {
  const tried = effects.some(({ kind }) => kind === 'send' || kind === 'callWebhook');
  return waitsFor(host) !== reason || tried;
}

/** The request of a command in a line; undefined for a line without a host command. */
function requestOf(line: string): HostRequest | undefined {
  const [, command] = /rackwright host (resume|skip|abort|retry) h1$/.exec(line) ?? [];
  if (command === 'retry') return { kind: 'retry' };
  return command === undefined
    ? undefined
    : { kind: command as 'resume' | 'skip' | 'abort', reason: 'as explain says' };
}

test.each(hostWaits)('a run that waits for %s says so, and moves by what is said', (reason) => {
  const { into, outside } = cases[reason];
  const host = into();
  expect(waitsFor(host)).toBe(reason);
  const told = explained(host);
  expect(told.blocker).toBe(
    waitCells[reason](host.record, runOf(host), { ...host.snapshot, nowMs: host.nowMs }).blocker,
  );
  expect(told.since, 'since when').toBeDefined();
  expect(told.causes.length).toBeGreaterThan(0);
  expect(told.unblock.length).toBeGreaterThan(0);
  expect(JSON.stringify(told.unblock)).not.toContain('secret');
  const commands = told.unblock.filter((line) => requestOf(line) !== undefined);
  if (commands.length < told.unblock.length || outside !== undefined) {
    expect(outside, told.unblock.join(' | ')).toBeDefined();
    const effects = outside?.(host) ?? [];
    expect(moved(host, reason, effects), told.unblock.join(' | ')).toBe(true);
  }
  for (const line of commands) {
    const fresh = into();
    const request = requestOf(line);
    const effects = request === undefined ? [] : fresh.request(request);
    expect(moved(fresh, reason, effects), line).toBe(true);
  }
});

test('the words on the wire are those that are explained', async () => {
  const proto = await readFile('proto/rackwright/v1/run.proto', 'utf8');
  const [, list = ''] =
    /A word of a closed list: ([^.]*)\.\n\s*string reason = 1;/.exec(proto) ?? [];
  const words = list
    .replaceAll(/\s*\/\/\s*/g, ' ')
    .replace(/;[^:]*:/, ',')
    .split(/,\s*/);
  expect(words.toSorted()).toEqual([...hostWaits, ...pendingWaits].toSorted());
});

test('a reason of another version is told in its own words', () => {
  const host = cases.conflict.into();
  const { waiting } = runOf(host);
  if (waiting !== undefined) waiting.reason = 'moonlight';
  expect(explained(host)).toMatchObject({ blocker: 'moonlight' });
});

test('no retry is advised where it would mean more than another try', () => {
  const rescued = cases.bmc.into();
  if (rescued.record.host?.status) rescued.record.host.status.inRescue = true;
  expect(explained(rescued).unblock.join()).not.toContain('host retry');
  const unseen = cases.bmc.into();
  unseen.record.lookFirstSince = timestampFromMs(0);
  expect(explained(unseen).unblock.join()).not.toContain('host retry');
});

test('work under way says how long it usually takes, and how far it is', () => {
  const host = bench();
  driveToErase(host);
  const usual = { runMs: () => 720_000, stepMs: () => undefined };
  const progress = create(ProgressSchema, { percent: 43, text: 'zeroes to sda' });
  const told = explainHost(
    host.record,
    { ...host.snapshot, nowMs: host.nowMs },
    { usual, progress },
  );
  expect(told.usualDuration?.seconds).toBe(720n);
  expect(told.lastEvidence).toContain('zeroes to sda, 43 %');
  host.report(failed('ioError'));
  expect(explained(host).usualDuration).toBeUndefined();
});
