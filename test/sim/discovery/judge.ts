/**
 * The judge's rules about machines that are no hosts, by what they themselves are and by records as
 * they were written. Which machine a record is about it knows from whose interface is named in it.
 *
 * D1 A machine is listed once, and at the end not beside its host.
 * D2 Nothing is done to the disks of a machine that is no host, nor by steps on it.
 * D3 A listing or a line makes one host, and what its machine says of itself is recorded then.
 * D4 Lists, the hosts of a rule, and boots of unknown machines stay bounded.
 * D5 Nothing is listed, and nothing unknown boots, before the rack's policy says so.
 * D6 When the faults stop, what a line names becomes a host, and the line says so.
 */
import { fromBinary } from '@bufbuild/protobuf';
import {
  type DiscoveredMachine,
  type DiscoveryPolicy,
  type ExpectedHost,
  HostState,
  type OperationId,
  store,
} from '@rackwright/messages';
import { isWrite } from '../drives.ts';
import { type JudgedHost, type JudgeParts, machineOf } from '../judged.ts';
import type { SimMachine } from '../machine.ts';
import type { LiveAgent } from '../part-view.ts';

/** What was decided by a policy may be written so much later: who decides may be suspended. */
const policySlackMs = 90_000;
/** What was ordered before a host went may still reach its machine for so long. */
const goneSlackMs = 120_000;
/** Unknown machines that boot at once, and in an hour; a boot is given up after its window. */
const bootsMax = 64;
const bootsPerHourMax = 512;
const bootWindowMs = 900_000;
const listedDefault = 256;
/** How addresses of a flood begin. */
export const madeUpMacs = '02:00:00:00:';

interface Policy {
  readonly atMs: number;
  readonly enabled: boolean;
  readonly listedMax: number;
  /** By the name that hosts keep of the rule. */
  readonly hostsMax: ReadonlyMap<string, number>;
}

export class DiscoveryJudge {
  readonly #parts: JudgeParts;
  readonly #hosts: ReadonlyMap<string, JudgedHost>;
  readonly #found: (rule: string, text: string) => void;
  readonly #listed = new Map<string, DiscoveredMachine>();
  readonly #lines = new Map<string, ExpectedHost>();
  #policies: Policy[] = [];
  /** How long the list was when its bound was set. */
  #longest = 0;
  /** The policy has been on at some time. */
  #wasOn = false;
  readonly #uids = new Set<string>();
  /** Requests of the system that have made a host. */
  readonly #made = new Set<string>();
  /** Machine → since when it is no host any more; Infinity: it is one. */
  readonly #goneMs = new Map<string, number>();
  /** Boots of unknown machines by the life of the agent that let them begin: when, and which. */
  readonly #boots = new WeakMap<LiveAgent, Map<string, number>>();
  /** The same of addresses that no machine has: when. */
  readonly #madeUp = new WeakMap<LiveAgent, number[]>();
  #backUntilMs = -1;
  /** What is noted at this moment stood there before, under the policy of then. */
  #reloadedAtMs = -1;
  #drivesRead = 0;
  #stepsRead = 0;
  #workRead = 0;

  constructor(
    parts: JudgeParts,
    hosts: ReadonlyMap<string, JudgedHost>,
    found: (rule: string, text: string) => void,
  ) {
    this.#parts = parts;
    this.#hosts = hosts;
    this.#found = found;
  }

  /** Takes in what was written; undefined: it is gone. */
  note(key: string, value: Uint8Array | undefined): void {
    if (!this.#parts.view.discovery) return;
    if (key.startsWith('racks.')) this.#noteRack(value);
    if (key.startsWith('discoveredMachines.')) this.#noteListed(key, value);
    if (!key.startsWith('expectedHosts.')) return;
    const line = value && fromBinary(store.ExpectedHostRecordSchema, value).expectedHost;
    if (line === undefined) this.#lines.delete(key);
    else this.#lines.set(key, line);
  }

  /** Takes in a written record of a host. */
  changed(host: JudgedHost): void {
    if (!this.#parts.view.discovery) return;
    const machine = machineOf(this.#parts.machines, host);
    if (machine !== undefined) this.#goneMs.set(machine.name, Number.POSITIVE_INFINITY);
    const uid = host.record.host?.uid ?? '';
    if (this.#uids.has(uid)) return;
    this.#uids.add(uid);
    if (host.record.change?.cause.startsWith('accepted by ') === true) this.#accepted(host.record);
  }

  /** A host is gone. */
  removed(host: JudgedHost): void {
    if (!this.#parts.view.discovery) return;
    const machine = machineOf(this.#parts.machines, host);
    if (machine !== undefined) this.#goneMs.set(machine.name, this.#parts.view.heap.nowMs);
    // Taken back before it was anything, as somebody else had its addresses: it may come again.
    const { status } = host.record.host ?? {};
    if (status?.state === HostState.NEW) {
      for (const id of host.record.requestIds) this.#made.delete(id.replace('create:', ''));
    }
  }

  /** The store went back: for a while machines still do what stands there no more. */
  restored(forMs: number): void {
    this.#backUntilMs = this.#parts.view.heap.nowMs + forMs;
  }

  /** An older state of the store stands there now: what it says is noted next. */
  reload(): void {
    const { nowMs } = this.#parts.view.heap;
    this.#reloadedAtMs = nowMs;
    for (const kept of [this.#listed, this.#lines, this.#made, this.#uids]) kept.clear();
    this.#policies = this.#policies.slice(-1);
    for (const name of this.#goneMs.keys()) this.#goneMs.set(name, nowMs);
  }

  /** The same of a host. */
  reloaded(host: JudgedHost): void {
    this.#uids.add(host.record.host?.uid ?? '');
    const machine = machineOf(this.#parts.machines, host);
    if (machine !== undefined) this.#goneMs.set(machine.name, Number.POSITIVE_INFINITY);
  }

  /** An agent has let a machine that is no host boot, or boots it still. */
  opened(agent: LiveAgent, mac: string, operationId: OperationId): void {
    // As it tells the time: its clock may step, and what it has written down is not undone by that.
    const writtenMs = agent.core.bootMemory().writtenAtMs ?? 0;
    const nowMs = Math.max(agent.process.clock.nowMs(), writtenMs);
    const boots = this.#boots.get(agent) ?? new Map<string, number>();
    this.#boots.set(agent, boots);
    if (boots.has(operationId)) return;
    boots.set(operationId, nowMs);
    this.#parts.view.count('unknown machine boots');
    if (!this.#wasOn) this.#found('D5', `${mac} boots, and nobody has switched discovery on`);
    if (boots.size > bootsPerHourMax) {
      this.#found('D4', `${boots.size} unknown machines have booted within an hour`);
    }
    // Of a real machine nobody here knows whether its inventory has come and made room.
    if (!mac.startsWith(madeUpMacs)) return;
    const known = this.#madeUp.get(agent) ?? [];
    const madeUp = known.filter((atMs) => nowMs - atMs < bootWindowMs);
    this.#madeUp.set(agent, [...madeUp, nowMs]);
    if (madeUp.length >= bootsMax) this.#found('D4', `${mac} boots beside ${madeUp.length} others`);
  }

  /** D2 */
  look(): void {
    if (!this.#parts.view.discovery) return;
    const { drives, steps, work } = this.#parts.logs;
    for (; this.#drivesRead < drives.length; this.#drivesRead++) {
      const event = drives[this.#drivesRead];
      if (event === undefined || !isWrite(event)) continue;
      this.#judgeDone(event.machine, `${event.act} on ${event.serial}`);
    }
    for (; this.#stepsRead < steps.length; this.#stepsRead++) {
      const event = steps[this.#stepsRead];
      if (event !== undefined) this.#judgeDone(event.machine, event.step);
    }
    for (; this.#workRead < work.length; this.#workRead++) {
      const event = work[this.#workRead];
      if (event === undefined || event.machine === '' || event.act === 'cut') continue;
      this.#judgeDone(event.machine, `${event.act} ${event.title}`);
    }
  }

  /** Whether nothing is left that must come by itself. */
  isSettled(): boolean {
    return this.#open().length === 0;
  }

  /** D6, and D1 of what is a host. */
  end(): void {
    for (const { rule, text } of this.#open()) this.#found(rule, text);
  }

  #open(): { readonly rule: string; readonly text: string }[] {
    if (!this.#parts.view.discovery) return [];
    const open: { rule: string; text: string }[] = [];
    for (const [key, listed] of this.#listed) {
      const host = this.#hostWith(listed.bootMac);
      if (host !== undefined) open.push({ rule: 'D1', text: `${key} is listed and is ${host}` });
    }
    for (const machine of this.#parts.view.strangers()) {
      const said = [...this.#listed.values()].find(({ bootMac }) => machine.macs.includes(bootMac));
      if (this.#hostWith(machine.mac) !== undefined) continue;
      const why = said === undefined ? 'not even listed' : said.notAccepted;
      open.push({ rule: 'D6', text: `${machine.name} became no host: ${why}` });
    }
    for (const [key, { uid, host }] of this.#lines) {
      const made = this.#hostOfLine(uid);
      if (host !== '' || made === undefined) continue;
      open.push({ rule: 'D6', text: `${key} does not say that it has made ${made}` });
    }
    return open;
  }

  #hostWith(mac: string): string | undefined {
    const hosts = [...this.#hosts.values()];
    return hosts.find(({ record }) => record.host?.spec?.bootMacs.includes(mac) === true)?.key;
  }

  #hostOfLine(uid: string): string | undefined {
    const hosts = [...this.#hosts.values()];
    return hosts.find(({ record }) => record.requestIds.includes(`create:expected.${uid}`))?.key;
  }

  #noteRack(value: Uint8Array | undefined): void {
    if (value === undefined) return;
    const { rack } = fromBinary(store.RackRecordSchema, value);
    const policy = policyOf(rack?.spec?.discovery, rack?.name ?? '', this.#parts.view.heap.nowMs);
    this.#wasOn ||= policy.enabled;
    if (policy.listedMax !== this.#policies.at(-1)?.listedMax) this.#longest = this.#listed.size;
    this.#policies = [...this.#policies.slice(-policiesMax), policy];
  }

  /** In force now or a short while ago. */
  #inForce(): Policy[] {
    const sinceMs = this.#parts.view.heap.nowMs - policySlackMs;
    return this.#policies.filter((_, at) => (this.#policies[at + 1]?.atMs ?? Infinity) >= sinceMs);
  }

  #noteListed(key: string, value: Uint8Array | undefined): void {
    const machine = value && fromBinary(store.DiscoveredMachineRecordSchema, value).machine;
    if (machine === undefined) {
      this.#listed.delete(key);
      return;
    }
    const isNew = !this.#listed.has(key);
    this.#listed.set(key, machine);
    const truth = this.#machineWith([machine.bootMac]);
    const twin = [...this.#listed].find(
      ([other, { bootMac }]) => other !== key && truth?.macs.includes(bootMac) === true,
    );
    if (twin !== undefined) {
      this.#found('D1', `${truth?.name} is listed as ${key} and as ${twin[0]}`);
    }
    const { nowMs } = this.#parts.view.heap;
    if (!isNew || nowMs < this.#backUntilMs || nowMs === this.#reloadedAtMs) return;
    this.#parts.view.count('machine listed');
    const policies = this.#inForce();
    if (!policies.some(({ enabled }) => enabled)) {
      this.#found('D5', `${key} is listed while discovery is off`);
    }
    // A list that was longer when its bound was lowered may stay so long, and no longer.
    const most = Math.max(this.#longest, ...policies.map(({ listedMax }) => listedMax));
    if (this.#listed.size > most) {
      this.#found('D4', `${this.#listed.size} machines are listed, of at most ${most}`);
    }
  }

  #machineWith(macs: readonly string[]): SimMachine | undefined {
    const machines = [...this.#parts.machines.values()];
    return machines.find((machine) => machine.macs.some((mac) => macs.includes(mac)));
  }

  /** D3, and D4 of rules. */
  #accepted({ host, change, acceptedIdentity, acceptedByRule }: store.HostRecord): void {
    const { view } = this.#parts;
    const { cause = '', requestId = '' } = change ?? {};
    view.count(cause.split(':')[0]?.split('/')[0] ?? '');
    const name = host?.name ?? '';
    const { board } = this.#machineWith(host?.spec?.bootMacs ?? []) ?? {};
    if (board === undefined || !isIdentityOf(board, acceptedIdentity))
      this.#found('D3', `${name} was made, and who it said to be is not recorded`);
    if (/^(discovered|expected)\./.test(requestId)) {
      if (this.#made.has(requestId)) this.#found('D3', `${requestId} made ${name}, a second host`);
      this.#made.add(requestId);
    }
    if (acceptedByRule === '' || view.heap.nowMs < this.#backUntilMs) return;
    const rivals = [...this.#hosts.values()].filter(
      ({ record }) => record.acceptedByRule === acceptedByRule,
    );
    const most = Math.max(
      ...this.#inForce().map(({ hostsMax }) => hostsMax.get(acceptedByRule) ?? 0),
    );
    if (rivals.length > most) {
      this.#found('D4', `${acceptedByRule} has made ${rivals.length} hosts, of at most ${most}`);
    }
  }

  #judgeDone(machine: string, what: string): void {
    const { nowMs } = this.#parts.view.heap;
    if (nowMs < this.#backUntilMs) return;
    const goneMs = this.#goneMs.get(machine);
    if (goneMs !== undefined && nowMs - goneMs <= goneSlackMs) return;
    this.#found('D2', `${machine}: ${what}, and it is no host`);
  }
}

const policiesMax = 200;

function policyOf(policy: DiscoveryPolicy | undefined, rack: string, atMs: number): Policy {
  const rules = policy?.rules ?? [];
  return {
    atMs,
    enabled: policy?.enabled === true,
    listedMax: policy?.machinesMax ?? listedDefault,
    hostsMax: new Map(
      rules.map(({ name, hostsMax }) => [`${rack} rule ${name}`, hostsMax ?? listedDefault]),
    ),
  };
}

function isIdentityOf(
  { serial, uuid }: SimMachine['board'],
  recorded: store.HostRecord['acceptedIdentity'],
): boolean {
  return recorded?.serial === serial && Buffer.from(recorded.uuid).equals(uuid);
}
