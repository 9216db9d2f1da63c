/**
 * Sends the hosts that boot in a rack to the agent of one session.
 *
 * Invariants:
 * 1. No older list is sent after a newer one, and no list twice.
 * 2. An order to boot an image is sent only after a list that names the host. Messages through
 *    `sendInOrder` keep their order.
 * 3. A registry secret is sent before the list that needs it.
 * 4. When the list has no room for a host's image, the order to boot it fails.
 */
import { create, equals } from '@bufbuild/protobuf';
import { agent, type CredentialName, type RackId, type store as wire } from '@rackwright/messages';
import { pause } from '@rackwright/platform';
import { credentialVersions } from '../../host/index.ts';
import type { KeptRecord } from '../../records/index.ts';
import type { SessionDependencies } from '../base/dependencies.ts';
import type { SessionSink } from '../base/sink.ts';
import { type BootList, type BootLists, isSameMap } from './boot-lists.ts';
import type { GivenSecrets } from './given-secrets.ts';

/** The most texts of problems that a session remembers as logged. */
const loggedMax = 256;
/** Pause before another try, after a boot snapshot could not be made. */
const retryMs = 1_000;
/** The longest delay until a changed credential is noticed. */
const recheckMs = 30_000;

type Message = agent.SessionResponse['message'];

type SnapshotDependencies = Pick<SessionDependencies, 'clock' | 'log' | 'store'> & {
  readonly hosts: Pick<SessionDependencies['hosts'], 'hostIdOfUid' | 'wake' | 'fail'>;
};

/** `idle`: the session may be told nothing now. `failed`: another try follows by itself. */
type SnapshotSending = 'sent' | 'unchanged' | 'idle' | 'failed';

export interface BootSnapshotsParts {
  readonly lists: Pick<BootLists, 'of'>;
  readonly secrets: Pick<GivenSecrets, 'has' | 'give'>;
  readonly send: SessionSink['send'];
  /** Whether the session has been welcomed and is still valid. */
  readonly mayTell: () => boolean;
}

export class BootSnapshots {
  readonly #deps: SnapshotDependencies;
  readonly #rackId: RackId;
  readonly #parts: BootSnapshotsParts;
  #sent: agent.BootSnapshot | undefined;
  #list: BootList | undefined;
  #sending: Promise<unknown> = Promise.resolve();
  /** Messages that wait for earlier ones (2). */
  #waiting: Promise<void> | undefined;
  #checkedAtMs = 0;
  readonly #logged = new Set<string>();
  /** One for all failures: callers repeat `send` on their own, too. */
  #isRetryDue = false;

  constructor(deps: SnapshotDependencies, rackId: RackId, parts: BootSnapshotsParts) {
    this.#deps = deps;
    this.#rackId = rackId;
    this.#parts = parts;
  }

  /** Sends the present list if it differs from the last one. */
  send(): Promise<SnapshotSending> {
    if (!this.#parts.mayTell()) return Promise.resolve('idle');
    const sending = this.#sending
      .then(() => this.#sendNow())
      .catch((error: unknown): SnapshotSending => {
        this.#deps.log.warn({ rack: this.#rackId }, 'no boot snapshot; tried again', error);
        this.#retryLater();
        return 'failed';
      });
    this.#sending = sending;
    return sending;
  }

  #retryLater(): void {
    if (this.#isRetryDue) return;
    this.#isRetryDue = true;
    this.#deps.clock.after(retryMs, () => {
      this.#isRetryDue = false;
      void this.send();
    });
  }

  /** Sends a message to the agent (2). */
  sendInOrder(message: Message): void {
    if (this.#waiting === undefined && bootsImage(message) === undefined) {
      this.#parts.send(message);
      return;
    }
    const waiting = (this.#waiting ?? Promise.resolve()).then(() => this.#sendAfterList(message));
    this.#waiting = waiting;
    void waiting.then(() => {
      if (this.#waiting === waiting) this.#waiting = undefined;
    });
  }

  /** A heartbeat came; `fleet` is what the store has now. */
  onHeartbeat(fleet: KeptRecord<wire.FleetRecord> | undefined): void {
    const list = this.#list;
    if (list === undefined || !list.hosts.some(({ netboot }) => netboot !== undefined)) return;
    if ((fleet?.revision ?? 0) !== list.access.fleetRevision) return void this.send();
    const nowMs = this.#deps.clock.nowMs();
    if (nowMs - this.#checkedAtMs < recheckMs) return;
    this.#checkedAtMs = nowMs;
    this.#recheck(list, fleet?.record).catch((error: unknown) => {
      this.#deps.log.warn({ rack: this.#rackId }, 'credentials of images could not be read', error);
    });
  }

  async #recheck(list: BootList, fleet: wire.FleetRecord | undefined): Promise<void> {
    const versions = await credentialVersions(this.#deps, fleet);
    if (isSameMap(versions, list.access.versions)) await this.#sendSecrets(list);
    else await this.send();
  }

  async #sendNow(): Promise<SnapshotSending> {
    const list = await this.#parts.lists.of(this.#rackId);
    await this.#sendSecrets(list);
    this.#wakeAfter(this.#list, list);
    this.#list = list;
    for (const problem of list.problems) this.#logOnce(problem);
    const { hosts, revision } = list;
    const generation = BigInt(revision);
    const snapshot = create(agent.BootSnapshotSchema, { generation, hosts: [...hosts] });
    if (this.#sent !== undefined) {
      const same = create(agent.BootSnapshotSchema, { ...this.#sent, generation });
      if (equals(agent.BootSnapshotSchema, same, snapshot)) return 'unchanged';
    }
    this.#sent = snapshot;
    this.#parts.send({ case: 'bootSnapshot', value: snapshot });
    return 'sent';
  }

  /** Wakes the hosts whose image has a new problem, or no longer has one. */
  #wakeAfter(before: BootList | undefined, { access, hosts }: BootList): void {
    if (before === undefined || before.access === access) return;
    for (const { hostUid, netboot } of hosts) {
      const hostId = this.#deps.hosts.hostIdOfUid(hostUid, this.#rackId);
      if (netboot !== undefined && hostId !== undefined) this.#deps.hosts.wake(hostId);
    }
  }

  /** Invariant 3. */
  async #sendSecrets({ hosts }: BootList): Promise<void> {
    const wanted = new Map<CredentialName, bigint>();
    for (const { netboot } of hosts) {
      for (const source of [netboot?.image, ...(netboot?.image?.mirrors ?? [])]) {
        if (source !== undefined && source.credential !== '') {
          wanted.set(source.credential, source.credentialVersion);
        }
      }
    }
    const { secrets } = this.#parts;
    for (const [name, version] of wanted) {
      const problem = secrets.has(name, version) ? undefined : await secrets.give(name);
      if (problem !== undefined) this.#logOnce(`${name}: ${problem}`);
    }
  }

  #logOnce(problem: string): void {
    if (this.#logged.has(problem)) return;
    if (this.#logged.size >= loggedMax) this.#logged.clear();
    this.#logged.add(problem);
    const text = 'what hosts of the rack boot over the network is at risk';
    this.#deps.log.warn({ rack: this.#rackId, problem }, text);
  }

  /** Never rejects. */
  async #sendAfterList(message: Message): Promise<void> {
    const operation = bootsImage(message);
    if (operation !== undefined) {
      while ((await this.send()) === 'failed') await pause(this.#deps.clock, retryMs);
      const leftOut = this.#list?.leftOut.get(operation.hostUid);
      if (leftOut !== undefined) return this.#fail(operation, leftOut);
    }
    this.#parts.send(message);
  }

  /** Invariant 4. */
  #fail(operation: agent.Operation, why: string): void {
    const { hosts, log } = this.#deps;
    const hostId = hosts.hostIdOfUid(operation.hostUid, this.#rackId);
    if (hostId === undefined) return;
    hosts.fail(hostId, operation, 'invalidBootSettings', why).catch((error: unknown) => {
      log.error({ host: hostId, why }, 'a refusal could not be noted', error);
    });
  }
}

/** The order to boot an image over the network, if it is one. */
function bootsImage(message: Message): agent.Operation | undefined {
  if (message.case !== 'operation') return undefined;
  const { kind } = message.value;
  const boots = kind.case === 'setPower' && kind.value.bootFrom === agent.BootTarget.IMAGE;
  return boots ? message.value : undefined;
}
