/**
 * Whether an acknowledged write is on disk. nats-server acknowledges before it syncs unless
 * `sync_interval: always` is set, in which case it syncs the Raft log and the stream first. Each
 * server that holds a replica must be asked; an ordinary client cannot read the setting.
 */
import type { PeerInfo } from '@nats-io/jetstream';
import { errorText } from '@rackwright/platform';
import { connect } from 'nats';
import type { StateStore } from '../contract.ts';
import { StoreError } from '../errors.ts';
import { connectionOptions } from './connect.ts';
import type { NatsStoreOptions } from './options.ts';
import { checkServerVersion } from './server-version.ts';

/** A living follower is seen every second. */
const UNHEARD_MS = 5_000;
/** How long monitors and servers may take to answer. */
const PROOF_TIMEOUT_MS = 3_000;
/** Servers that answer the system account; more are not waited for. */
const SERVERS_MAX = 64;

/** One server's report about itself. */
export interface ServerFacts {
  readonly name: string;
  readonly version: string;
  readonly syncsAlways: boolean;
}

/** A follower as the stream's leader reports it (`PeerInfo`); `active` counts nanoseconds. */
export function holderOf(peer: Pick<PeerInfo, 'name' | 'offline' | 'active'>): ReplicaHolder {
  return { name: peer.name, isOffline: peer.offline || peer.active / 1e6 > UNHEARD_MS };
}

/** A server that holds a replica, as the leader sees it. */
export interface ReplicaHolder {
  readonly name: string;
  /** The leader does not see it: until it is back it acknowledges nothing. */
  readonly isOffline: boolean;
}

export interface DurabilityVerdict {
  readonly survivesPowerLoss: StateStore['survivesPowerLoss'];
  /** For the refusal, and for a person: the missing setting. */
  readonly reason: string;
  /** Holders that sync before they acknowledge, by a present or earlier answer. */
  readonly proven: readonly string[];
  /** Holders that did not answer now: they must be asked again. */
  readonly silent: readonly string[];
}

/**
 * Judges the servers that hold a replica. One that is offline may be silent, as long as a majority
 * is proven; so may one in `provenBefore`. `failures`: the errors of those that did not answer.
 */
export function judgeDurability(
  facts: readonly ServerFacts[],
  holders: readonly ReplicaHolder[],
  provenBefore: readonly string[] = [],
  failures: readonly string[] = [],
): DurabilityVerdict {
  const byName = new Map(facts.map((each) => [each.name, each]));
  const silent = holders.filter(({ name }) => !byName.has(name));
  const late = namesOf(holders.filter(({ name }) => byName.get(name)?.syncsAlways === false));
  const proven = namesOf(holders).filter(
    (name) => byName.get(name)?.syncsAlways ?? provenBefore.includes(name),
  );
  const verdict = { proven, silent: namesOf(silent) };
  if (late.length > 0) {
    const reason = `nats-server ${late.join(', ')} syncs too late; set sync_interval: always`;
    return { ...verdict, survivesPowerLoss: 'no', reason };
  }
  const unproven = silent.filter(({ name }) => !proven.includes(name));
  const hasMajority = proven.length * 2 > holders.length;
  if (!hasMajority || unproven.some(({ isOffline }) => !isOffline)) {
    const names = namesOf(unproven).join(', ') || '(none known)';
    const why = failures.length === 0 ? '' : ` (${failures.join('; ')})`;
    const reason = `nobody has shown how nats-server ${names} syncs${why}`;
    return { ...verdict, survivesPowerLoss: 'unknown', reason };
  }
  const reason = 'every replica syncs before it acknowledges';
  return { ...verdict, survivesPowerLoss: 'yes', reason };
}

/** Whether only servers that may just have gone are in the way of a proof. */
export function mayComeToPass({ survivesPowerLoss, proven, silent }: DurabilityVerdict): boolean {
  return survivesPowerLoss === 'unknown' && proven.length > silent.length;
}

const namesOf = (holders: readonly ReplicaHolder[]): string[] => holders.map(({ name }) => name);

/** Reads the part of a server's `varz` that matters. Undefined when it is something else. */
export function factsOf(varz: unknown): ServerFacts | undefined {
  if (!isRecord(varz)) return undefined;
  const { server_name: name, version, jetstream } = varz;
  if (typeof name !== 'string' || typeof version !== 'string') return undefined;
  const config = isRecord(jetstream) ? jetstream['config'] : undefined;
  return { name, version, syncsAlways: isRecord(config) && config['sync_always'] === true };
}

/** The facts of the servers that answer, and the errors of the others. */
export interface GatheredFacts {
  readonly facts: readonly ServerFacts[];
  readonly failures: readonly string[];
}

/** Asks by the way that the options give. Throws `serverTooOld`; other failures prove nothing. */
export async function gatherFacts(options: NatsStoreOptions): Promise<GatheredFacts> {
  const failures: string[] = [];
  const answers = await askServers(options, failures);
  const facts: ServerFacts[] = [];
  for (const answer of answers) {
    const each = factsOf(answer);
    if (each === undefined) continue;
    checkServerVersion(each.version, each.name);
    facts.push(each);
  }
  return { facts, failures: failures.toSorted() };
}

/** Throws `durabilityUnproven` unless proved. */
export function checkDurability(verdict: DurabilityVerdict): void {
  if (verdict.survivesPowerLoss === 'yes') return;
  throw new StoreError(
    'durabilityUnproven',
    `it is not proved that acknowledged writes survive a loss of power: ${verdict.reason}. Give ` +
      'the monitors of all servers or a system account, or accept unproven durability',
  );
}

async function askServers(
  options: NatsStoreOptions,
  failures: string[],
): Promise<readonly unknown[]> {
  const proof = options.durability;
  switch (proof?.kind) {
    case undefined:
      return [];
    case 'monitors':
      return Promise.all(proof.urls.map((url) => askMonitor(url, failures)));
    case 'systemAccount': {
      const { user, password } = proof;
      const authentication = { kind: 'password', user, password } as const;
      return askSystem({ ...options, authentication }, failures);
    }
    case 'systemAccountCredentials': {
      const { credentials } = proof;
      const authentication = { kind: 'credentials', credentials } as const;
      return askSystem({ ...options, authentication }, failures);
    }
  }
}

async function askMonitor(url: string, failures: string[]): Promise<unknown> {
  try {
    const target = new URL('/varz', url);
    const answer = await fetch(target, { signal: AbortSignal.timeout(PROOF_TIMEOUT_MS) });
    return await answer.json();
  } catch (error) {
    failures.push(monitorFailure(url, error));
    return undefined;
  }
}

/** Without the password that the URL may hold. */
function monitorFailure(url: string, error: unknown): string {
  if (!URL.canParse(url)) return `a monitor: ${errorText(error)}`;
  const { host, username, password } = new URL(url);
  // `fetch` refuses such a URL, and its message repeats it.
  if (`${username}${password}` !== '') return `${host}: give its URL without a password`;
  return `${host}: ${errorText(error)}`;
}

async function askSystem(
  options: NatsStoreOptions,
  failures: string[],
): Promise<readonly unknown[]> {
  try {
    const connection = await connect({ ...connectionOptions(options), reconnect: false });
    try {
      const answers: unknown[] = [];
      const all = await connection.requestMany('$SYS.REQ.SERVER.PING.VARZ', undefined, {
        strategy: 'stall',
        stall: PROOF_TIMEOUT_MS / 6,
        maxWait: PROOF_TIMEOUT_MS,
        maxMessages: SERVERS_MAX,
      });
      for await (const message of all) answers.push(message.json<{ data?: unknown }>().data);
      return answers;
    } finally {
      await connection.close();
    }
  } catch (error) {
    failures.push(`the system account: ${errorText(error)}`);
    return [];
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
