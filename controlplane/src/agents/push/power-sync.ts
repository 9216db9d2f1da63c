/**
 * What one session tells its agent of the hosts whose power it shall look at, and what it makes of
 * the agent's digests (DESIGN §3, power sync).
 *
 * Invariants:
 * 1. A secret goes before the list that names it, once for each version, in a message of its own.
 * 2. Only hosts whose BMC has been proved are looked at: no password goes to an address by itself
 *    that nobody has answered for.
 * 3. A digest stands for reports that were lost: it is folded in as they would have been, and only
 *    where it differs from what is known.
 * 4. A host is looked at only where its credential may go by what that says itself.
 */
import { create, equals } from '@bufbuild/protobuf';
import { agent, type HostUid, type RackId, store as wire } from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { accessTo, type IndexedHost } from '../../host/index.ts';
import { readRecord } from '../../records/index.ts';
import {
  boundsProblem,
  credentialRecord,
  noteGiven,
  openRecord,
  type Vault,
} from '../../secrets/index.ts';
import type { SessionDependencies } from '../base/dependencies.ts';
import type { SessionSink } from '../base/sink.ts';

const periodDefaultSeconds = 60;
/** A change elsewhere, of a credential say, is found after this at the latest. */
const lookAgainMs = 30_000;

type Message = agent.SessionResponse['message'];
type CredentialMessage = Extract<Message, { case: 'credentialValue' }>;

export class PowerSyncs {
  readonly #deps: SessionDependencies;
  readonly #rackId: RackId;
  readonly #send: SessionSink['send'];
  #sent: agent.PowerSync | undefined;
  readonly #sentVersions = new Map<string, bigint>();
  #refreshing: Promise<void> = Promise.resolve();
  #lookedAtMs = 0;
  #lookedAtRevision = -1;

  constructor(deps: SessionDependencies, rackId: RackId, send: SessionSink['send']) {
    this.#deps = deps;
    this.#rackId = rackId;
    this.#send = send;
  }

  /** Sends what the agent shall look at, if it differs from what was sent last. */
  refresh(): Promise<void> {
    this.#refreshing = this.#refreshing
      .then(() => this.#refresh())
      .catch((error: unknown) => {
        this.#deps.log.warn(
          { rack: this.#rackId },
          'no power sync could be sent; tried again later',
          error,
        );
      });
    return this.#refreshing;
  }

  /** A heartbeat came; `rack` and `revision` are what the store has now. */
  heard(rack: wire.RackRecord | undefined, revision: number): void {
    const other = periodMsOf(rack) !== this.#sent?.periodMs;
    const news = revision !== this.#lookedAtRevision;
    const late = this.#deps.clock.nowMs() - this.#lookedAtMs >= lookAgainMs;
    if (other || (news && late)) void this.refresh();
  }

  /** Returns once everything that was lost has been folded in. */
  async digest(digest: agent.PowerDigest): Promise<void> {
    const { hosts } = this.#deps;
    if (digest.generation !== this.#sent?.generation) return;
    const known = new Map(hosts.index.looksOfRack(this.#rackId).map((host) => [host.uid, host]));
    const lost = digest.hosts.flatMap(({ hostUid, poweredOn }) => {
      const host = known.get(hostUid);
      // A host counts once, however often it is named.
      known.delete(hostUid);
      if (host === undefined || poweredOn === undefined) return [];
      return host.poweredOn === poweredOn ? [] : [{ host, poweredOn }];
    });
    await Promise.all(
      lost.map(({ host, poweredOn }) => hosts.report(host.hostId, powerFact(host.uid, poweredOn))),
    );
  }

  async #refresh(): Promise<void> {
    const { store, hosts, clock } = this.#deps;
    const key = storeKey('racks', this.#rackId);
    const [rack, revision] = await Promise.all([
      readRecord(store, wire.RackRecordSchema, key),
      store.latestRevision(),
    ]);
    this.#lookedAtMs = clock.nowMs();
    this.#lookedAtRevision = revision;
    const periodMs = periodMsOf(rack?.record);
    const wanted = periodMs === 0 ? [] : hosts.index.looksOfRack(this.#rackId).filter(hasBmc);
    const credentials = await this.#credentialsOf(wanted);
    const sync = create(agent.PowerSyncSchema, {
      generation: BigInt(revision),
      periodMs,
      hosts: wanted.flatMap((host) => {
        const found = credentials.get(host.bmc.credential);
        return found?.mayGoTo(host) === true ? [syncHost(host, found.version)] : [];
      }),
    });
    const { generation = 0n } = this.#sent ?? {};
    const same = create(agent.PowerSyncSchema, { ...sync, generation });
    if (this.#sent !== undefined && equals(agent.PowerSyncSchema, this.#sent, same)) return;
    for (const { message } of credentials.values()) if (message !== undefined) this.#give(message);
    this.#sent = sync;
    this.#send({ case: 'powerSync', value: sync });
  }

  #give(message: CredentialMessage): void {
    this.#send(message);
    noteGiven(this.#deps.audit, message.value, `the agent of racks/${this.#rackId}`);
  }

  /** One that cannot be opened is left out: runs of its hosts say what is wrong with it. */
  async #credentialsOf(hosts: readonly LookedAt[]): Promise<Map<string, ForLooks>> {
    const names = [...new Set(hosts.map(({ bmc }) => bmc.credential))];
    const found = await Promise.all(names.map((name) => this.#credential(name, hosts)));
    return new Map(found.filter((each) => each !== undefined));
  }

  /** Invariant 4, by the very record that is opened. */
  async #credential(
    name: string,
    wanted: readonly LookedAt[],
  ): Promise<[string, ForLooks] | undefined> {
    const { store, hosts, log } = this.#deps;
    const record = await credentialRecord({ store }, name);
    const { credential } = record ?? {};
    if (record === undefined || credential === undefined) return undefined;
    const { version } = credential;
    const rack = `racks/${this.#rackId}`;
    const mayGoTo = ({ bmc }: LookedAt): boolean =>
      bmc.credential === name &&
      boundsProblem(credential, { rack, bmcAddress: bmc.address }) === undefined;
    if (!wanted.some(mayGoTo)) return undefined;
    if (this.#sentVersions.get(name) === version) {
      return [name, { version, message: undefined, mayGoTo }];
    }
    try {
      const openCredential: Vault['openCredential'] = (each) => hosts.openCredential(each);
      const value = create(
        agent.CredentialValueSchema,
        openRecord({ openCredential }, name, record),
      );
      this.#sentVersions.set(name, version);
      return [name, { version, message: { case: 'credentialValue', value }, mayGoTo }];
    } catch (error) {
      log.warn({ credential: name }, 'no looks with this credential', error);
      return undefined;
    }
  }
}

/** A credential for looks, and its secret where the agent does not have it yet. */
interface ForLooks {
  readonly version: bigint;
  readonly message: CredentialMessage | undefined;
  readonly mayGoTo: (host: LookedAt) => boolean;
}

type LookedAt = IndexedHost & { readonly bmc: NonNullable<IndexedHost['bmc']> };

function hasBmc(host: IndexedHost): host is LookedAt {
  return host.bmc !== undefined && host.bmc.credential !== '';
}

function periodMsOf(rack: wire.RackRecord | undefined): number {
  return (rack?.rack?.spec?.powerSyncSeconds ?? periodDefaultSeconds) * 1_000;
}

function syncHost(host: LookedAt, version: bigint): agent.PowerSyncHost {
  const { uid, name, bmc, identity } = host;
  return create(agent.PowerSyncHostSchema, {
    hostUid: uid,
    hostName: name,
    bmc: accessTo(bmc, identity, version),
    ...(identity === undefined ? {} : { expectedIdentity: identity }),
  });
}

function powerFact(hostUid: HostUid, poweredOn: boolean): agent.Report {
  const observations = create(agent.ObservationsSchema, { poweredOn });
  const value = create(agent.HostUpdatedSchema, { observations });
  return create(agent.ReportSchema, { hostUid, result: { case: 'hostUpdated', value } });
}
