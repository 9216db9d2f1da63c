/**
 * Processes an agent's report of a machine that netbooted: it becomes listed, or is a host, or
 * there is no room (D4, D5 of `discovery.ts`).
 *
 * Must not: make hosts.
 */
import { clone, create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  type DiscoveredMachine,
  DiscoveredMachineSchema,
  type DiscoveryRefusal,
  type HostId,
  type HostUid,
  type RackName,
} from '@rackwright/messages';
import { type Clock, type Log, type Random, randomId } from '@rackwright/platform';
import type { StateStore } from '@rackwright/store';
import { unicastMac } from '../fleet-view/index.ts';
import type { SeenElsewhere } from './elsewhere.ts';
import { hostOf, isKnownBoot, judge } from './judge.ts';
import { type KeptMachine, traitsOfMachine } from './kept.ts';
import { removeMachine, writeMachine } from './listing.ts';
import { freeIdentity, leastWanted, machinesMaxOf } from './room.ts';
import type { DiscoverySnapshot, KnownHost } from './snapshot.ts';
import { isSameMachine } from './traits.ts';

/** The dependencies of the intake. */
export interface IntakeDependencies {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Folds the report into a host. */
  readonly reportHost: (hostId: HostId, report: agent.Report) => Promise<unknown>;
}

/** The basis of a decision about a discovered machine. */
export interface IntakeContext {
  readonly snapshot: DiscoverySnapshot;
  /** Read only when the rack's list is full. */
  readonly ofRack: () => Promise<DiscoverySnapshot>;
}

/** What becomes of a discovered machine. */
export type IntakeResult =
  | { readonly kind: 'listed' }
  /** It is a host, and its agent should have recognized it. */
  | { readonly kind: 'known' }
  /** `hostUid`: the host of the same rack that it is. */
  | ({ readonly kind: 'refused'; readonly hostUid?: HostUid } & DiscoveryRefusal);

/** Another write came first, and nothing was decided. */
type LostWrite = { readonly kind: 'lost' };

const causes = agent.DiscoveryRefusalKind;

export class Intake {
  readonly #deps: IntakeDependencies;
  readonly #elsewhere: SeenElsewhere;

  constructor(deps: IntakeDependencies, elsewhere: SeenElsewhere) {
    this.#deps = deps;
    this.#elsewhere = elsewhere;
  }

  /** The finding as it would be listed; it has no name yet. */
  seen(rack: RackName, finding: agent.Discovered): KeptMachine {
    const machine = this.#machineOf(rack, finding);
    return { id: '', machine, traits: traitsOfMachine(machine), revision: 0 };
  }

  /** Lists the machine, unless it is a host or is refused. */
  async takeIn(
    seen: KeptMachine,
    { snapshot, ofRack }: IntakeContext,
  ): Promise<IntakeResult | LostWrite> {
    const { machine: fresh, traits } = seen;
    const { rack } = fresh;
    const known = hostOf(seen, snapshot.hosts);
    if (known !== undefined) {
      await this.#reportToHost(known.host, known.text, fresh);
      return verdictOnHost(known, fresh);
    }
    const sameMachines = snapshot.machines.filter((each) => isSameMachine(each.traits, traits));
    const before = sameMachines.find(({ machine }) => machine.rack === rack);
    if (before !== undefined) return await this.#seenAgain(before, fresh);
    for (const { machine } of sameMachines) this.#noteElsewhere(machine, fresh);
    const policy = snapshot.racks.get(rack)?.spec?.discovery;
    const listed = snapshot.listedIn(rack);
    const most = machinesMaxOf(policy);
    if (policy?.enabled !== true) {
      return refused(causes.DISABLED, `${rack} takes in no machines that nobody knows`);
    }
    const room = listed < most ? 'made' : await this.#makeRoom(seen, snapshot, ofRack);
    if (room === 'changed') return { kind: 'lost' };
    if (room === 'none') {
      const full = `${rack} lists ${listed} machines already, of ${most}: accept some`;
      return refused(causes.FULL, full);
    }
    return await this.#list(seen, snapshot);
  }

  /** Lists a machine that is not listed in its rack. */
  async #list(seen: KeptMachine, snapshot: DiscoverySnapshot): Promise<IntakeResult | LostWrite> {
    const identity = freeIdentity(seen, snapshot);
    if (identity === undefined) {
      return refused(causes.INDISTINCT, 'nothing tells it from machines that are listed already');
    }
    const { clock, log } = this.#deps;
    const machine = clone(DiscoveredMachineSchema, seen.machine);
    machine.name = `discoveredMachines/${identity.id}`;
    machine.identifiedBy = identity.by;
    machine.firstSeenTime = timestampFromMs(clock.nowMs());
    const written = await writeMachine(this.#deps, identity.id, machine, 'absent');
    if (!written) return { kind: 'lost' };
    const { name, rack, bootMac: mac } = machine;
    log.info({ machine: name, rack, mac }, 'a machine was discovered');
    return { kind: 'listed' };
  }

  /** D4; `changed`: the machine to remove was seen again or removed in the meantime. */
  async #makeRoom(
    seen: KeptMachine,
    snapshot: DiscoverySnapshot,
    ofRack: IntakeContext['ofRack'],
  ): Promise<'made' | 'none' | 'changed'> {
    const decision = judge(seen, snapshot);
    if (decision.kind === 'wait' && !decision.fits) return 'none';
    const goes = leastWanted(seen.machine.rack, await ofRack(), decision.kind === 'accept');
    if (goes === undefined) return 'none';
    if (!(await removeMachine(this.#deps, goes))) return 'changed';
    this.#deps.log.info({ machine: goes.machine.name }, 'dropped from a full list for another one');
    return 'made';
  }

  #machineOf(rack: RackName, finding: agent.Discovered): DiscoveredMachine {
    const { clock, random } = this.#deps;
    const { bootMac, inventory, bmcAddress } = finding;
    return create(DiscoveredMachineSchema, {
      uid: randomId(random),
      rack,
      lastSeenTime: timestampFromMs(clock.nowMs()),
      bootMac: unicastMac(bootMac) ?? '',
      ...(inventory === undefined ? {} : { inventory }),
      bmcAddress,
    });
  }

  /** The same machine stays listed once: it may have booted from another interface. */
  async #seenAgain(
    { id, machine, revision }: KeptMachine,
    fresh: DiscoveredMachine,
  ): Promise<IntakeResult | LostWrite> {
    const next = clone(DiscoveredMachineSchema, machine);
    const { bootMac, inventory, lastSeenTime, bmcAddress } = fresh;
    Object.assign(next, { bootMac, inventory, lastSeenTime });
    if (bmcAddress !== '') next.bmcAddress = bmcAddress;
    const written = await writeMachine(this.#deps, id, next, revision);
    return { kind: written ? 'listed' : 'lost' };
  }

  /** A host netbooted from an unknown interface without an order. */
  async #reportToHost(host: KnownHost, text: string, machine: DiscoveredMachine): Promise<void> {
    if (isKnownBoot(machine, host)) return;
    const { rack, bootMac } = machine;
    this.#deps.log.warn({ host: host.name, rack, mac: bootMac }, text);
    // D5: no other evidence identifies it, because UUID and serial are readable on a sticker.
    if (host.rack !== rack) {
      this.#noteElsewhere(host, machine);
      return;
    }
    this.#elsewhere.forget(host.name);
    const unexpectedNetboot = create(agent.UnexpectedNetbootSchema, {
      mac: machine.bootMac,
      hostUid: host.uid,
      hostName: host.name,
      seenInBand: true,
      ...(machine.lastSeenTime === undefined ? {} : { time: machine.lastSeenTime }),
    });
    const observations = create(agent.ObservationsSchema, { unexpectedNetboot });
    const value = create(agent.HostUpdatedSchema, { observations });
    const result = { case: 'hostUpdated', value } as const;
    const report = create(agent.ReportSchema, { hostUid: host.uid, result });
    await this.#deps.reportHost(host.hostId, report);
  }

  #noteElsewhere(
    { name, rack }: Pick<KnownHost, 'name' | 'rack'>,
    { rack: seenIn, bootMac: mac }: DiscoveredMachine,
  ): void {
    this.#elsewhere.note(name, { rack, seenIn, mac });
  }
}

/** D5: the answer contains nothing of a host of another rack. */
function verdictOnHost(
  { host, text }: { readonly host: KnownHost; readonly text: string },
  machine: DiscoveredMachine,
): IntakeResult {
  if (isKnownBoot(machine, host)) return { kind: 'known' };
  if (host.rack === machine.rack) {
    return { kind: 'refused', cause: causes.HOST, text, hostUid: host.uid };
  }
  return refused(causes.HOST_ELSEWHERE, 'it says that it is a host of another rack');
}

function refused(cause: agent.DiscoveryRefusalKind, text: string): IntakeResult {
  return { kind: 'refused', cause, text };
}
