/**
 * Power sync (DESIGN §3): polls the power of the rack's hosts by itself, at the period that the
 * control plane sets, and reports changes. A poll only reads; nothing here ever switches.
 *
 * P1 Only hosts of the last PowerSync are polled, with secrets that came in the session.
 * P2 A poll is a preemptible call and never delays an operation: the governor admits it only when
 *    nothing else wants the BMC, and stops it when an operation comes. A host with an exclusive
 *    operation is skipped, unless that waits for a runner that is gone: then a host that is off
 *    explains the absence.
 * P3 A reading of a host while, or before, an operation worked on it is not reported: the
 *    operation's result is.
 * P4 A refused password is not presented again by a poll (the governor's invariant 4).
 * P5 Power is reported only of a BMC that has said in the same poll, or shortly before, that it is
 *    the expected machine.
 * P6 Only changes are reported; each round ends with a digest, which repairs lost reports.
 */
import { create, equals, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type {
  BmcDriver,
  BmcFailed,
  BmcResult,
  BmcTransient,
  HardwareHealth,
} from '@rackwright/bmc';
import { agent, type HardwareHealthSchema, type HostUid, troubleWord } from '@rackwright/messages';
import { BoundedQueue, type Cancel, type Clock, type Log, type Random } from '@rackwright/platform';
import { boundText, messageBytesMax } from '@rackwright/results';
import { levelToWire } from './bmc-reads.ts';
import {
  type BmcDrivers,
  bmcEndpoint,
  bmcIdentityDifference,
  identityToWire,
} from './operations/index.ts';
import type { RunnerDispatcher } from './runner-gateway/index.ts';
import type { AgentSession, PowerReadings } from './session/index.ts';

export interface PowerSyncLimits {
  /** The bounds of the control plane's period. */
  readonly periodShortestMs: number;
  readonly periodLongestMs: number;
  /** BMCs of the rack that are asked at once. */
  readonly readsMax: number;
  /** Polls in a row without an answer, or their duration, after which silence is reported. */
  readonly silentReadsMax: number;
  readonly silentMs: number;
  /** The identity is read anew every so many rounds, and before any report of a power change. */
  readonly identityRounds: number;
  readonly hostsMax: number;
  /** The minimum time between two polls of one host outside its round. */
  readonly outOfRoundMs: number;
}

export const defaultPowerSyncLimits: PowerSyncLimits = {
  periodShortestMs: 10_000,
  periodLongestMs: 3_600_000,
  readsMax: 8,
  silentReadsMax: 3,
  silentMs: 300_000,
  identityRounds: 10,
  hostsMax: 4_096,
  outOfRoundMs: 30_000,
};

export interface PowerSyncParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly drivers: BmcDrivers;
  readonly session: Pick<
    AgentSession,
    'credential' | 'isBusy' | 'reportFactsOnce' | 'reportPowerDigest'
  >;
  readonly orders: Pick<RunnerDispatcher, 'isAway' | 'noteOff'>;
  readonly limits?: PowerSyncLimits;
}

/** The outcome of one poll; `nothing`: it was stopped, or the BMC had other work. */
type PollOutcome =
  | { readonly kind: 'power'; readonly on: boolean; readonly hardware: HardwareHealth | undefined }
  | { readonly kind: 'trouble'; readonly trouble: agent.BmcTrouble; readonly message: string }
  | { readonly kind: 'nothing' };

/** One host that is polled. */
interface Target {
  readonly wantedHost: agent.PowerSyncHost;
  driver: BmcDriver | undefined;
  /** The secret that the driver was made with. */
  driverVersion: bigint;
  /** Stops the poll under way. */
  abort: AbortController | undefined;
  cancelTimer: Cancel;
  /** Grows whenever an operation works on the host (P3). */
  disturbances: number;
  /** The power that was reported in this session since the last disturbance. */
  sentPower: boolean | undefined;
  sentHealth: agent.BmcTrouble | undefined;
  sentHardware: string | undefined;
  /** The round in which `power` was read; 0: it counts no more. */
  readInRound: number;
  power: boolean;
  /** The round in which the BMC was last identified; 0: not yet. */
  identifiedInRound: number;
  silence: { readonly sinceMs: number; readonly reads: number } | undefined;
  /** When it was last polled outside its round. */
  outOfRoundAtMs: number;
}

export class PowerSync implements PowerReadings {
  readonly #parts: PowerSyncParts;
  readonly #limits: PowerSyncLimits;
  #generation = 0n;
  #periodMs = 0;
  #targets = new Map<HostUid, Target>();
  readonly #forgotten = new Set<HostUid>();
  #round = 0;
  #roundEndsMs = 0;
  #roundOver = false;
  #cancelRound: Cancel = () => undefined;
  readonly #due: BoundedQueue<Target>;

  constructor(parts: PowerSyncParts) {
    this.#parts = parts;
    this.#limits = parts.limits ?? defaultPowerSyncLimits;
    const { readsMax: atOnceMax, hostsMax } = this.#limits;
    // Each host once in its round, and once outside it.
    const queueLimits = { atOnceMax, waitingMax: 2 * hostsMax };
    const poll = (target: Target): Promise<void> => this.#pollTarget(target);
    this.#due = new BoundedQueue(queueLimits, poll, () => this.#allPolled());
  }

  sessionOpened(): void {
    for (const target of this.#targets.values()) forgetSent(target);
  }

  replace(sync: agent.PowerSync): void {
    const { periodShortestMs, periodLongestMs, hostsMax } = this.#limits;
    const periodMs =
      sync.periodMs === 0
        ? 0
        : Math.min(Math.max(sync.periodMs, periodShortestMs), periodLongestMs);
    const before = this.#targets;
    const listed = periodMs === 0 ? [] : sync.hosts.slice(0, hostsMax);
    const wanted = listed.filter(({ hostUid }) => !this.#forgotten.has(hostUid));
    this.#generation = sync.generation;
    this.#targets = new Map(wanted.map((host) => [host.hostUid, keptOrNew(before, host)]));
    for (const target of before.values()) if (!this.#isWanted(target)) dismiss(target);
    const goesOn = periodMs === this.#periodMs && before.size > 0;
    this.#periodMs = periodMs;
    if (this.#targets.size === 0) this.#cancelRound();
    else if (!goesOn) this.#beginRound();
    else this.#joinRound([...this.#targets.values()].filter((target) => !isIn(before, target)));
  }

  noteDisturbance(hostUid: HostUid): void {
    const target = this.#targets.get(hostUid);
    if (target === undefined) return;
    target.disturbances += 1;
    target.readInRound = 0;
    target.silence = undefined;
    forgetSent(target);
  }

  /**
   * A packet suggests that the host boots: its BMC is asked now. Strangers may send such packets
   * often.
   */
  readNow(hostUid: HostUid): void {
    const { clock } = this.#parts;
    const target = this.#targets.get(hostUid);
    if (target === undefined || target.abort !== undefined) return;
    const nowMs = clock.suspendAwareMs();
    if (nowMs - target.outOfRoundAtMs < this.#limits.outOfRoundMs) return;
    target.outOfRoundAtMs = nowMs;
    this.#due.add(target, { isFirst: true });
  }

  forgetHost(hostUid: HostUid): void {
    this.#forgotten.add(hostUid);
    const [oldest] = this.#forgotten;
    if (oldest !== undefined && this.#forgotten.size > this.#limits.hostsMax) {
      this.#forgotten.delete(oldest);
    }
    const target = this.#targets.get(hostUid);
    this.#targets.delete(hostUid);
    if (target !== undefined) dismiss(target);
  }

  stop(): void {
    this.#cancelRound();
    for (const target of this.#targets.values()) dismiss(target);
    this.#targets = new Map();
  }

  #isWanted(target: Target): boolean {
    return this.#targets.get(target.wantedHost.hostUid) === target;
  }

  /** Polls are spread over the period, each host somewhere in a stretch of its own. */
  #beginRound(): void {
    const { clock, random } = this.#parts;
    this.#cancelRound();
    this.#round += 1;
    this.#roundOver = false;
    this.#due.clear();
    this.#roundEndsMs = clock.suspendAwareMs() + this.#periodMs;
    this.#cancelRound = clock.after(this.#periodMs, () => this.#endRound());
    const stretchMs = this.#periodMs / this.#targets.size;
    for (const [index, target] of [...this.#targets.values()].entries()) {
      this.#pollIn(target, (index + random.fraction()) * stretchMs);
    }
  }

  /** A host that is added in mid-round is polled in the rest of it. */
  #joinRound(targets: readonly Target[]): void {
    const { clock, random } = this.#parts;
    const leftMs = Math.max(this.#roundEndsMs - clock.suspendAwareMs(), 0);
    for (const target of targets) this.#pollIn(target, random.fraction() * leftMs);
  }

  #pollIn(target: Target, delayMs: number): void {
    target.cancelTimer();
    target.cancelTimer = this.#parts.clock.after(Math.floor(delayMs), () => {
      this.#due.add(target);
    });
  }

  /** A round that takes longer than its period ends when its last poll does. */
  #endRound(): void {
    this.#roundOver = true;
    if (this.#due.size > 0) {
      this.#parts.log.debug({ hosts: this.#due.size }, 'power sync takes longer than its period');
      return;
    }
    this.#reportDigest();
    this.#beginRound();
  }

  #allPolled(): void {
    if (this.#roundOver && this.#targets.size > 0) this.#endRound();
  }

  async #pollTarget(target: Target): Promise<void> {
    if (!this.#isWanted(target)) return;
    const { log } = this.#parts;
    const { hostUid } = target.wantedHost;
    const driver = this.#driverOf(target);
    if (driver === undefined || this.#isTaken(hostUid)) return;
    const abort = new AbortController();
    const { disturbances } = target;
    target.abort = abort;
    try {
      const outcome = await this.#read(target, driver, abort.signal);
      const counts = disturbances === target.disturbances && !this.#isTaken(hostUid);
      if (counts && this.#isWanted(target)) this.#note(target, outcome);
    } catch (error) {
      log.error({ host: target.wantedHost.hostName }, 'a power poll threw', error);
    } finally {
      target.abort = undefined;
    }
  }

  #isTaken(hostUid: HostUid): boolean {
    const { session, orders } = this.#parts;
    return session.isBusy(hostUid) && !orders.isAway(hostUid);
  }

  /** Undefined without a secret, or for a protocol that is not supported here. */
  #driverOf(target: Target): BmcDriver | undefined {
    const { session, drivers } = this.#parts;
    const { bmc, expectedIdentity } = target.wantedHost;
    if (bmc === undefined) return undefined;
    const credential = session.credential(bmc.credential, bmc.credentialVersion);
    if (credential === undefined) return undefined;
    if (target.driver !== undefined && target.driverVersion === credential.version) {
      return target.driver;
    }
    const endpoint = bmcEndpoint(bmc, credential, expectedIdentity);
    if (endpoint === undefined) return undefined;
    target.driver = drivers.driver(endpoint, { preempt: () => target.abort?.abort() });
    target.driverVersion = credential.version;
    return target.driver;
  }

  async #read(target: Target, driver: BmcDriver, signal: AbortSignal): Promise<PollOutcome> {
    const seen = await driver.readPowerAndHealth(signal);
    if (seen.kind !== 'ok') return outcomeOfFailedCall(seen);
    const on = seen.value.power === 'on';
    const hardware = seen.value.health;
    const power = { kind: 'power', on, hardware } as const;
    const roundsAgo = this.#round - target.identifiedInRound;
    const known = target.identifiedInRound > 0 && roundsAgo < this.#limits.identityRounds;
    const isNews = on !== target.sentPower || hardwareNews(target, hardware) !== undefined;
    if (known && !isNews) return power;
    const identity = await driver.readIdentity(signal);
    if (identity.kind !== 'ok') return outcomeOfFailedCall(identity);
    const { expectedIdentity } = target.wantedHost;
    const difference = bmcIdentityDifference(expectedIdentity, identityToWire(identity.value));
    if (difference !== undefined) {
      target.identifiedInRound = 0;
      const message = `another BMC answers at ${target.wantedHost.bmc?.address}: ${difference}`;
      return { kind: 'trouble', trouble: agent.BmcTrouble.IDENTITY_MISMATCH, message };
    }
    target.identifiedInRound = this.#round;
    return power;
  }

  #note(target: Target, outcome: PollOutcome): void {
    switch (outcome.kind) {
      case 'nothing':
        return;
      case 'power':
        target.silence = undefined;
        target.readInRound = this.#round;
        target.power = outcome.on;
        this.#report(
          target,
          outcome.on,
          { reachable: true, trouble: agent.BmcTrouble.UNSPECIFIED },
          hardwareNews(target, outcome.hardware),
        );
        if (!outcome.on) this.#parts.orders.noteOff(target.wantedHost.hostUid);
        return;
      case 'trouble':
        this.#noteTrouble(target, outcome.trouble, outcome.message);
    }
  }

  #noteTrouble(target: Target, trouble: agent.BmcTrouble, message: string): void {
    const { clock } = this.#parts;
    const nowMs = clock.suspendAwareMs();
    const silent = trouble === agent.BmcTrouble.UNREACHABLE;
    const { sinceMs, reads } = target.silence ?? { sinceMs: nowMs, reads: 0 };
    target.silence = silent ? { sinceMs, reads: reads + 1 } : undefined;
    target.readInRound = 0;
    const lastedMs = nowMs - sinceMs;
    const { silentReadsMax, silentMs } = this.#limits;
    if (silent && reads + 1 < silentReadsMax && lastedMs < silentMs) return;
    const since = timestampFromMs(Math.round(clock.nowMs() - (silent ? lastedMs : 0)));
    const text = boundText(message, messageBytesMax);
    this.#report(target, undefined, { reachable: !silent, trouble, message: text, since });
  }

  /** Reports power and health as far as they differ from the last report (P6). */
  #report(
    target: Target,
    power: boolean | undefined,
    bmcHealth: Pick<agent.BmcHealth, 'trouble'> & MessageInitShape<typeof agent.BmcHealthSchema>,
    hardware?: MessageInitShape<typeof HardwareHealthSchema>,
  ): void {
    const news = {
      ...(power === undefined || power === target.sentPower ? {} : { poweredOn: power }),
      ...(bmcHealth.trouble === target.sentHealth ? {} : { bmcHealth }),
      ...(hardware === undefined ? {} : { hardwareHealth: hardware }),
    };
    if (Object.keys(news).length === 0) return;
    target.sentPower = power ?? target.sentPower;
    target.sentHealth = bmcHealth.trouble;
    if (hardware !== undefined) target.sentHardware = hardwareKey(hardware);
    const { session, log } = this.#parts;
    const { hostUid, hostName } = target.wantedHost;
    log.info(
      {
        host: hostName,
        bmc: troubleWord(bmcHealth.trouble),
        ...(power === undefined ? {} : { power }),
      },
      'seen',
    );
    session.reportFactsOnce(hostUid, news);
  }

  #reportDigest(): void {
    const { session, clock } = this.#parts;
    const hosts = [...this.#targets.values()].map(({ wantedHost, readInRound, power }) =>
      create(agent.HostPowerStateSchema, {
        hostUid: wantedHost.hostUid,
        ...(readInRound === this.#round ? { poweredOn: power } : {}),
      }),
    );
    const generation = this.#generation;
    const time = timestampFromMs(clock.nowMs());
    session.reportPowerDigest(create(agent.PowerDigestSchema, { generation, time, hosts }));
  }
}

function keptOrNew(before: ReadonlyMap<HostUid, Target>, wantedHost: agent.PowerSyncHost): Target {
  const known = before.get(wantedHost.hostUid);
  if (known !== undefined && equals(agent.PowerSyncHostSchema, known.wantedHost, wantedHost))
    return known;
  return {
    wantedHost,
    driver: undefined,
    driverVersion: 0n,
    abort: undefined,
    cancelTimer: () => undefined,
    disturbances: 0,
    sentPower: undefined,
    sentHealth: undefined,
    sentHardware: undefined,
    readInRound: 0,
    power: false,
    identifiedInRound: 0,
    silence: undefined,
    outOfRoundAtMs: Number.NEGATIVE_INFINITY,
  };
}

function isIn(targets: ReadonlyMap<HostUid, Target>, target: Target): boolean {
  return targets.get(target.wantedHost.hostUid) === target;
}

function dismiss(target: Target): void {
  target.cancelTimer();
  target.abort?.abort();
}

function forgetSent(target: Target): void {
  target.sentPower = undefined;
  target.sentHealth = undefined;
  target.sentHardware = undefined;
}

/** The hardware state to report (P6); nothing from a BMC that does not report it. */
function hardwareNews(
  { sentHardware }: Target,
  hardware: HardwareHealth | undefined,
): MessageInitShape<typeof HardwareHealthSchema> | undefined {
  if (hardware === undefined) return undefined;
  const { level, text } = hardware;
  const news = { level: levelToWire(level), message: boundText(text, messageBytesMax) };
  return hardwareKey(news) === sentHardware ? undefined : news;
}

function hardwareKey({ level, message }: MessageInitShape<typeof HardwareHealthSchema>): string {
  return `${level} ${message}`;
}

/** What a failed call says of the BMC. */
function outcomeOfFailedCall(result: Exclude<BmcResult<never>, { kind: 'ok' }>): PollOutcome {
  return result.kind === 'failed' ? outcomeOfFailure(result) : outcomeOfTransient(result);
}

function outcomeOfTransient({ reason, message, backendText }: BmcTransient): PollOutcome {
  switch (reason) {
    case 'unreachable':
    case 'breakerOpen': {
      const text = backendText === '' ? '' : ` (${backendText})`;
      return {
        kind: 'trouble',
        trouble: agent.BmcTrouble.UNREACHABLE,
        message: `${message}${text}`,
      };
    }
    case 'busy':
    case 'trouble':
    case 'queueFull':
    case 'cancelled':
      return { kind: 'nothing' };
  }
}

const troubles: Readonly<Record<BmcFailed['type'], agent.BmcTrouble>> = {
  authentication: agent.BmcTrouble.AUTHENTICATION,
  privilege: agent.BmcTrouble.PRIVILEGE,
  lockedOut: agent.BmcTrouble.LOCKED_OUT,
  certificate: agent.BmcTrouble.CERTIFICATE,
  toolMissing: agent.BmcTrouble.TOOL_MISSING,
  cipherSuite: agent.BmcTrouble.ACCESS,
  address: agent.BmcTrouble.ACCESS,
  invalidCredential: agent.BmcTrouble.ACCESS,
  notApplied: agent.BmcTrouble.PROTOCOL,
  unsupported: agent.BmcTrouble.PROTOCOL,
  rejected: agent.BmcTrouble.PROTOCOL,
  malformed: agent.BmcTrouble.PROTOCOL,
  protocol: agent.BmcTrouble.PROTOCOL,
  ambiguous: agent.BmcTrouble.ACCESS,
  mediaRefused: agent.BmcTrouble.PROTOCOL,
  mediaMissing: agent.BmcTrouble.PROTOCOL,
  settingRefused: agent.BmcTrouble.PROTOCOL,
  settingUnknown: agent.BmcTrouble.PROTOCOL,
  stillPending: agent.BmcTrouble.PROTOCOL,
  updateFailed: agent.BmcTrouble.PROTOCOL,
  volumesRefused: agent.BmcTrouble.PROTOCOL,
  notAllowed: agent.BmcTrouble.PROTOCOL,
};

function outcomeOfFailure({ type, message, backendText }: BmcFailed): PollOutcome {
  const trouble = troubles[type];
  // A person who compares the certificate with the BMC's own display needs the fingerprint.
  const text = type === 'certificate' ? `${message} (${backendText})` : message;
  return { kind: 'trouble', trouble, message: text };
}
