/**
 * The step `burnin.network`: sends bytes to the agent and gets as many, over TLS, where the agent
 * has room for it. Digests show whether the bytes are unchanged. The kernel's counters show which
 * network card carried them, and how many broken packets it has dropped.
 */
import { BurnInKind, burnInNetworkStep, cleanSteps, counted } from '@rackwright/messages';
import { pause } from '@rackwright/platform';
import type { FailedAttempt } from '@rackwright/results';
import type { NetworkCard } from '../machine/burn-in-machine.ts';
import { type ExchangeOutcome, exchangeBytesMax } from '../session/exchange.ts';
import type { Step, StepContext } from '../steps/step.ts';
import { readNumbers } from './arguments.ts';
import { TemperatureMonitor } from './heat.ts';
import { contentOf, Pattern, pieceBytesMax } from './pattern.ts';
import {
  type BurnInPartInit,
  endOf,
  type Finding,
  failedResult,
  perSecond,
  speedText,
} from './result.ts';

const mib = 1024 * 1024;
/** Between an exchange that could not be and the next, milliseconds. */
const againMs = 2_000;
/** Exchanges in a row that break until it is enough. */
const breaksMax = 5;
/** Exchanges that are found wrong until it is enough. */
const errorsMax = 16;

export const burnInNetwork: Step = {
  description: cleanSteps[burnInNetworkStep],
  run: async (context) => {
    const { burnIn } = context.machine;
    const { exchange } = context;
    if (burnIn === undefined || exchange === undefined) {
      return failedResult('unsupported', 'this machine exchanges no bytes with an agent');
    }
    const read = readNumbers(cleanSteps[burnInNetworkStep], context.order.arguments);
    if (read.kind === 'bad') return failedResult('invalidArgument', read.problem);
    const startMs = context.clock.nowMs();
    const before = await burnIn.networkCards();
    const work = new Work(context, exchange, read.value);
    await work.run();
    if (work.state.kind === 'refused') return failedResult('exchangeFailed', work.state.reason);
    const cards = carriersOf(before, await burnIn.networkCards(), work.sent.bytes);
    const judged = judge(work, cards, read.value);
    const heat = new TemperatureMonitor(context, undefined, 0);
    return endOf(context, { ...judged, kind: BurnInKind.NETWORK, startMs, heat });
  },
};

type WorkState =
  | { readonly kind: 'going' }
  /** Exchanges broke until it was enough. */
  | { readonly kind: 'broken'; readonly reason: string }
  /** The agent takes none. */
  | { readonly kind: 'refused'; readonly reason: string };

/** What comes after an exchange. */
type Next = { readonly kind: 'atOnce' } | { readonly kind: 'later'; readonly reason: string };

/** Exchanges, one after another. */
class Work {
  readonly sent = { bytes: 0, ms: 0 };
  readonly received = { bytes: 0, ms: 0 };
  readonly wantedBytes: number;
  exchanges = 0;
  errors = 0;
  first: Finding | undefined;
  state: WorkState = { kind: 'going' };
  readonly #context: StepContext;
  readonly #exchange: NonNullable<StepContext['exchange']>;
  readonly #endMs: number;
  #breaks = 0;

  constructor(
    context: StepContext,
    exchange: NonNullable<StepContext['exchange']>,
    { size = 0, duration = 0 }: Readonly<Record<string, number>>,
  ) {
    this.#context = context;
    this.#exchange = exchange;
    this.wantedBytes = size * mib;
    this.#endMs = context.clock.suspendAwareMs() + duration * 1_000;
  }

  async run(): Promise<void> {
    const { clock, order, signal } = this.#context;
    const pattern = new Pattern(contentOf(order.challengeSeed), pieceBytesMax);
    while (!signal.aborted && !this.#isOver()) {
      const left = this.wantedBytes - this.sent.bytes;
      const bytes = Math.min(exchangeBytesMax, left);
      const content = pattern.at(this.exchanges * pieceBytesMax, pieceBytesMax);
      const end = await this.#exchange({ bytes, content });
      const next = this.#take(end);
      this.#tell(next.kind === 'later' ? [next.reason] : []);
      if (next.kind === 'later') await pause(clock, againMs, signal);
    }
  }

  /** Somebody has ended it. */
  get isCancelled(): boolean {
    return this.#context.signal.aborted;
  }

  #isOver(): boolean {
    return (
      this.sent.bytes >= this.wantedBytes ||
      this.errors >= errorsMax ||
      this.state.kind !== 'going' ||
      this.#context.clock.suspendAwareMs() >= this.#endMs
    );
  }

  /** Counts an exchange. */
  #take(end: ExchangeOutcome): Next {
    switch (end.kind) {
      case 'done':
        this.#count(end);
        return { kind: 'atOnce' };
      case 'changed':
        this.#count(end);
        this.errors += 1;
        this.first ??= { text: end.problem };
        return { kind: 'atOnce' };
      case 'wait':
        return { kind: 'later', reason: end.reason };
      case 'refused':
        this.state = end;
        return { kind: 'atOnce' };
      case 'broken':
        this.#breaks += 1;
        if (this.#breaks >= breaksMax) this.state = end;
        return { kind: 'later', reason: end.reason };
    }
  }

  #count({ sent, received }: ExchangeOutcome & { readonly kind: 'done' | 'changed' }): void {
    this.#breaks = 0;
    this.exchanges += 1;
    add(this.sent, sent);
    add(this.received, received);
  }

  #tell(waitsFor: readonly string[]): void {
    const { sent, received } = this;
    const fraction = sent.bytes / this.wantedBytes;
    const parts =
      sent.ms === 0
        ? []
        : [
            `${Math.floor(sent.bytes / mib)} MiB each way`,
            `${speedText(sent.bytes, sent.ms)} sent`,
            `${speedText(received.bytes, received.ms)} received`,
            counted(this.errors, 'error'),
          ];
    const text = [...parts, ...waitsFor].join(', ');
    this.#context.reportProgress(Math.min(99, Math.floor(100 * fraction)), text);
  }
}

function add(sum: { bytes: number; ms: number }, more: { bytes: number; ms: number }): void {
  sum.bytes += more.bytes;
  sum.ms += more.ms;
}

/** A card that carried at least half of one direction, and its counts meanwhile. */
interface Carrier {
  readonly name: string;
  readonly linkMbps: number;
  readonly errors: number;
  /** How often the link changed. */
  readonly linkChanges: number;
}

function carriersOf(
  before: readonly NetworkCard[],
  after: readonly NetworkCard[],
  bytes: number,
): Carrier[] {
  if (bytes === 0) return [];
  return after.flatMap((now) => {
    const was = before.find(({ name }) => name === now.name);
    if (was === undefined) return [];
    const moved = Math.max(now.sentBytes - was.sentBytes, now.receivedBytes - was.receivedBytes);
    if (moved < bytes / 2) return [];
    const grown = (field: 'receiveErrors' | 'sendErrors' | 'linkChanges') =>
      Math.max(0, now[field] - was[field]);
    const errors = grown('receiveErrors') + grown('sendErrors');
    const { name, linkMbps } = now;
    return [{ name, linkMbps, errors, linkChanges: grown('linkChanges') }];
  });
}

interface JudgedNetwork {
  readonly parts: readonly BurnInPartInit[];
  readonly problems: readonly string[];
  readonly type?: FailedAttempt['type'];
}

/**
 * Where no card is known to have carried the bytes, the finding is about the network as a whole.
 */
function judge(
  work: Work,
  carriers: readonly Carrier[],
  { rate_min: rateMin = 0, link_min: linkMin = 0 }: Readonly<Record<string, number>>,
): JudgedNetwork {
  const { sent, received, wantedBytes, exchanges, errors, first, state } = work;
  const rates = [perSecond(sent.bytes, sent.ms), perSecond(received.bytes, received.ms)] as const;
  const least = sent.bytes === 0 ? 0 : rateMin * 1_000_000;
  const slow = [
    ...(Number(rates[0]) < least ? [`sends ${rates[0] / 1_000_000n} MB/s`] : []),
    ...(Number(rates[1]) < least ? [`receives ${rates[1] / 1_000_000n} MB/s`] : []),
  ];
  const wrong = errors === 0 ? [] : [`${counted(errors, 'wrong exchange')}: ${first?.text}`];
  const unknown = { name: 'network', linkMbps: 0, errors: 0, linkChanges: 0 };
  const found = (carriers.length === 0 ? [unknown] : carriers).map((each) => {
    const findings = [...wrong, ...cardFindings(each, linkMin), ...slow];
    const part = {
      ...{ name: each.name, bytes: BigInt(sent.bytes), passes: BigInt(exchanges) },
      ...{ errors: BigInt(errors + each.errors), linkMbps: each.linkMbps },
      ...{ writtenPerSecond: rates[0], readPerSecond: rates[1], finding: findings.join(', ') },
    };
    return { part, defects: findings.length === 0 ? [] : [`${part.name}: ${part.finding}`] };
  });
  const parts = found.map(({ part }) => part);
  const defects = found.flatMap((each) => each.defects);
  if (defects.length > 0) return { parts, problems: defects };
  const done = `${Math.floor(sent.bytes / mib)} of ${wantedBytes / mib} MiB were exchanged`;
  if (state.kind === 'broken') {
    const why = `${breaksMax} exchanges in a row broke: ${state.reason}; ${done}`;
    return { parts, problems: [why], type: 'exchangeFailed' };
  }
  if (sent.bytes >= wantedBytes) return { parts, problems: [] };
  return work.isCancelled
    ? { parts, problems: [] }
    : { parts, problems: [`its time was over: ${done}`], type: 'deadline' };
}

function cardFindings({ errors, linkChanges, linkMbps }: Carrier, linkMin: number): string[] {
  const isSlow = linkMin > 0 && linkMbps > 0 && linkMbps < linkMin;
  return [
    ...(errors === 0 ? [] : [`${counted(errors, 'error')} counted by the kernel`]),
    ...(linkChanges === 0 ? [] : [`its link came or went ${counted(linkChanges, 'time')}`]),
    ...(isSlow ? [`its link has ${linkMbps} Mbit/s`] : []),
  ];
}
