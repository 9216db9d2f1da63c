/**
 * Sends the agent of one session the list of hosts whose power it polls, and processes the agent's
 * digests (DESIGN §3, power sync).
 *
 * Invariants:
 * 1. A secret is sent before the list that needs it, once for each version, in a message of its
 *    own.
 * 2. Only hosts with a proved BMC are polled, and those whose BMC a person has changed during an
 *    order for the runner: no password is sent automatically to an address that nobody has
 *    confirmed. In both cases only what a BMC with the proved identity says is accepted.
 * 3. A digest replaces lost reports: it is folded in like them, and only where it differs from the
 *    known state.
 * 4. A host is polled only where its credential permits it.
 */
import { create, equals } from '@bufbuild/protobuf';
import {
  agent,
  type CredentialName,
  type HostUid,
  type RackId,
  store as wire,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { accessTo, type IndexedHost } from '../../host/index.ts';
import { readRecord } from '../../records/index.ts';
import {
  boundsProblem,
  type CredentialOpener,
  credentialRecord,
  noteGiven,
  openRecord,
} from '../../secrets/index.ts';
import type { SessionDependencies } from '../base/dependencies.ts';
import type { SessionSink } from '../base/sink.ts';

const periodDefaultSeconds = 60;
/** The longest delay until a change elsewhere, such as of a credential, is noticed. */
const recheckMs = 30_000;

type Message = agent.SessionResponse['message'];
type CredentialMessage = Extract<Message, { case: 'credentialValue' }>;

export class PowerSyncs {
  readonly #deps: SessionDependencies;
  readonly #rackId: RackId;
  readonly #send: SessionSink['send'];
  #sent: agent.PowerSync | undefined;
  readonly #sentVersions = new Map<string, bigint>();
  #refreshing: Promise<void> = Promise.resolve();
  #readAtMs = 0;
  #readAtRevision = -1;

  constructor(deps: SessionDependencies, rackId: RackId, send: SessionSink['send']) {
    this.#deps = deps;
    this.#rackId = rackId;
    this.#send = send;
  }

  /** Sends the list of hosts to poll, if it differs from the last one. */
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
  onHeartbeat(rack: wire.RackRecord | undefined, revision: number): void {
    const other = periodMsOf(rack) !== this.#sent?.periodMs;
    const news = revision !== this.#readAtRevision;
    const late = this.#deps.clock.nowMs() - this.#readAtMs >= recheckMs;
    if (other || (news && late)) void this.refresh();
  }

  /** Resolves once every lost report has been folded in. */
  async digest(digest: agent.PowerDigest): Promise<void> {
    const { hosts } = this.#deps;
    if (digest.generation !== this.#sent?.generation) return;
    const known = new Map(
      hosts.index.powerTargetsOfRack(this.#rackId).map((host) => [host.uid, host]),
    );
    const lost = digest.hosts.flatMap(({ hostUid, poweredOn }) => {
      const host = known.get(hostUid);
      // A host counts once, even if it is named several times.
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
    this.#readAtMs = clock.nowMs();
    this.#readAtRevision = revision;
    const periodMs = periodMsOf(rack?.record);
    const wanted =
      periodMs === 0 ? [] : hosts.index.powerTargetsOfRack(this.#rackId).filter(hasBmc);
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

  /** A credential that cannot be opened is left out: runs of its hosts report the problem. */
  async #credentialsOf(hosts: readonly PolledHost[]): Promise<Map<CredentialName, PowerTarget>> {
    const names = [...new Set(hosts.map(({ bmc }) => bmc.credential))];
    const found = await Promise.all(names.map((name) => this.#credential(name, hosts)));
    return new Map(found.filter((each) => each !== undefined));
  }

  /** Invariant 4, by the same record that is opened. */
  async #credential(
    name: string,
    wanted: readonly PolledHost[],
  ): Promise<[string, PowerTarget] | undefined> {
    const { store, hosts, log } = this.#deps;
    const record = await credentialRecord({ store }, name);
    const { credential } = record ?? {};
    if (record === undefined || credential === undefined) return undefined;
    const { version } = credential;
    const rack = `racks/${this.#rackId}`;
    const mayGoTo = ({ bmc }: PolledHost): boolean =>
      bmc.credential === name &&
      boundsProblem(credential, { rack, bmcAddress: bmc.address }) === undefined;
    if (!wanted.some(mayGoTo)) return undefined;
    if (this.#sentVersions.get(name) === version) {
      return [name, { version, message: undefined, mayGoTo }];
    }
    try {
      const openCredential: CredentialOpener['openCredential'] = (each) =>
        hosts.openCredential(each);
      const value = create(
        agent.CredentialValueSchema,
        openRecord({ openCredential }, name, record),
      );
      this.#sentVersions.set(name, version);
      return [name, { version, message: { case: 'credentialValue', value }, mayGoTo }];
    } catch (error) {
      log.warn({ credential: name }, 'hosts with this credential are not polled', error);
      return undefined;
    }
  }
}

/** A credential for polling, and its secret where the agent does not have it yet. */
interface PowerTarget {
  readonly version: bigint;
  readonly message: CredentialMessage | undefined;
  readonly mayGoTo: (host: PolledHost) => boolean;
}

type PolledHost = IndexedHost & { readonly bmc: NonNullable<IndexedHost['bmc']> };

function hasBmc(host: IndexedHost): host is PolledHost {
  return host.bmc !== undefined && host.bmc.credential !== '';
}

function periodMsOf(rack: wire.RackRecord | undefined): number {
  return (rack?.rack?.spec?.powerSyncSeconds ?? periodDefaultSeconds) * 1_000;
}

function syncHost(host: PolledHost, version: bigint): agent.PowerSyncHost {
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
