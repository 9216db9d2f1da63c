/**
 * The judge's rules about when a pool takes a host, by its own record as it stood in that write, by
 * hosts' records, by machines' own log, and by the log of the gate's receiver.
 *
 * P11 A host in service, whatever else is wrong with it, is taken out only while a window of the
 *     pool is open.
 * P12 Where a gate's webhook is wanted, a host in service is taken out only once its receiver has
 *     let this slot's host through to this image; a key names one question.
 * P13 The first host of a target goes alone, and no host while one of a wave before its own is
 *     neither on the target nor has failed on it, or when all of such a wave have failed.
 * P14 A pool that is paused, stopped or being deleted takes nobody; a pinned host gets its pin.
 * P15 No more of a rack are taken than may be out there.
 * P16 A slot for an image that is still wanted is given back for good health only after the soak;
 *     nothing goes back to the image before unless somebody wants that, and as many have failed as
 *     stop the rollout, or as may be out, or of a wave.
 */
import {
  FaultSeverity,
  type HostSelector,
  HostState,
  type HostStatus,
  type HostUid,
  hasFault,
  type PoolSpec,
  type RolloutSlot,
  RolloutSlotState,
  type RolloutTarget,
  RunKind,
  type store,
} from '@rackwright/messages';
import type { WorldView } from '../view.ts';
import { digestOf } from './untouched.ts';
import { isOpenAt } from './windows.ts';

/** A replica may have decided so long before its write is there: suspended, or by a slow store. */
const decidedMs = 120_000;

interface Parts {
  readonly view: Pick<WorldView, 'heap' | 'gates' | 'wallStartMs' | 'count'>;
  readonly found: (rule: string, text: string) => void;
}

/** What is known of a host from its records. */
interface RecordedHost {
  readonly name: string;
  /** In service since, perhaps with faults; undefined: it is not. */
  readonly servingSinceMs: number | undefined;
  /** What it runs in good health; empty: nothing. */
  readonly digest: string;
  /** What it ran before, and until when. */
  readonly before: { readonly digest: string; readonly untilMs: number };
}

export class PolicyRules {
  readonly #parts: Parts;
  /** By host's uid. */
  readonly #hosts = new Map<string, RecordedHost>();
  /** Deployment and digest → when its machine first said that it runs it. */
  readonly #proved = new Map<string, number>();
  /** "POOL-UID DIGEST" → hosts that have failed on it, whatever became of them. */
  readonly #failed = new Map<string, Set<string>>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** An older state of the store stands there now. */
  reload(): void {
    this.#hosts.clear();
  }

  /** A machine says that it runs what a deployment has brought. */
  proved(what: string, atMs: number): void {
    if (!this.#proved.has(what)) this.#proved.set(what, atMs);
  }

  /** When it said so first; now, if it has not. */
  provedAtMs(what: string): number {
    return this.#proved.get(what) ?? this.#parts.view.heap.nowMs;
  }

  /** A host's record was written. */
  changed({ host }: store.HostRecord): void {
    const { name = '', uid = '', status } = host ?? {};
    const { nowMs } = this.#parts.view.heap;
    const known = this.#hosts.get(uid);
    const { isServing, digest } = serviceOf(status);
    const isSame = known?.digest === digest;
    const before = isSame ? known.before : { digest: known?.digest ?? '', untilMs: nowMs };
    const servingSinceMs = isServing ? (known?.servingSinceMs ?? nowMs) : undefined;
    this.#hosts.set(uid, { name, servingSinceMs, digest, before });
  }

  removed({ host }: store.HostRecord): void {
    this.#hosts.delete(host?.uid ?? '');
  }

  /** A pool's record was written; `before` is undefined for a new one. */
  written(
    before: store.PoolRecord | undefined,
    record: store.PoolRecord,
    { isBack, threshold, most }: { isBack: boolean; threshold: number; most: number },
  ): void {
    for (const slot of slotsOf(record)) {
      const was = slotsOf(before).find(({ number }) => number === slot.number);
      if (was === undefined) this.#judgeTaken(record, slot, most);
      const isOut = slot.state !== RolloutSlotState.GATE;
      const wasOut = was !== undefined && was.state !== RolloutSlotState.GATE;
      if (isOut && !wasOut) this.#judgeOut(record, slot, most);
      if (was === undefined && !isBack) this.#judgeSlot(record, slot);
    }
    this.#noteFailures(record);
    if (before === undefined || isBack) return;
    for (const slot of slotsOf(before)) this.#judgeSoak(record, slot);
    this.#judgeWayBack(before, record, Math.max(1, Math.min(threshold, most)));
  }

  /** P16; `enough`: hosts that have to fail where there are no waves. */
  #judgeWayBack(before: store.PoolRecord, record: store.PoolRecord, enough: number): void {
    const { pool } = record;
    const goes = pool?.status?.rolledBackFrom ?? '';
    if (pool === undefined || goes === '') return;
    if ((before.pool?.status?.rolledBackFrom ?? '') !== '') return;
    this.#parts.view.count('pool went back');
    const many = this.#failed.get(`${pool.uid} ${goes}`)?.size ?? 0;
    const { waves = [], rollback = false } = pool.spec?.rollout ?? {};
    const least = waves.length > 0 ? 1 : enough;
    if (rollback && many >= least) return;
    const why = rollback ? `${many} of ${least} have failed` : 'nobody wants that';
    this.#found('P16', record, `goes back from ${goes}, and ${why}`);
  }

  #noteFailures({ pool, failures }: store.PoolRecord): void {
    for (const { counted, digest, hostUid } of failures) {
      if (!counted) continue;
      const key = `${pool?.uid} ${digest}`;
      this.#failed.set(key, (this.#failed.get(key) ?? new Set()).add(hostUid));
    }
  }

  #found(rule: string, { pool }: store.PoolRecord, text: string): void {
    this.#parts.found(rule, `${pool?.name}: ${text}`);
  }

  /** P14, as the slot is taken. */
  #judgeTaken(record: store.PoolRecord, slot: RolloutSlot, most: number): void {
    const { spec } = record.pool ?? {};
    const why = whyNothingBegins(record, most);
    if (why !== undefined) this.#found('P14', record, `${slot.host} is taken, and ${why}`);
    const pin = spec?.pins[slot.host];
    if (pin !== undefined && pin !== slot.image) {
      this.#found('P14', record, `${slot.host} is pinned to ${pin} and gets ${slot.image}`);
    }
  }

  /** The host leaves the gate, or has had none. */
  #judgeOut(record: store.PoolRecord, slot: RolloutSlot, most: number): void {
    const { view } = this.#parts;
    const { nowMs } = view.heap;
    const why = whyNothingBegins(record, most);
    if (why !== undefined) this.#found('P14', record, `${slot.host} goes out, and ${why}`);
    const { servingSinceMs } = this.#hosts.get(slot.hostUid) ?? {};
    const isServing = servingSinceMs !== undefined && nowMs - servingSinceMs > decidedMs;
    if (isServing) this.#judgeServing(record, slot);
    const cap = record.pool?.spec?.rollout?.maxUnavailablePerRack;
    const there = slotsOf(record).filter(
      ({ rack, state }) => rack === slot.rack && state !== RolloutSlotState.GATE,
    );
    const isCapped = isServing || slot.kind === RunKind.PROVISION;
    if (cap === undefined || !isCapped) return;
    view.count('host taken under a cap of its rack');
    if (there.length <= cap) return;
    const text = `${slot.host} goes out, the ${there.length}. of ${slot.rack}; ${cap} may be`;
    this.#found('P15', record, text);
  }

  /** P11 and P12, of a host that was in service long enough to be seen so. */
  #judgeServing(record: store.PoolRecord, slot: RolloutSlot): void {
    const { view } = this.#parts;
    const { windows = [], gate } = record.pool?.spec?.rollout ?? {};
    const wallMs = view.wallStartMs + view.heap.nowMs;
    if (windows.length > 0) {
      view.count('host taken in a window');
      const isIn = [0, 15, 30, 45, 60, 75, 90, 105, 120].some((seconds) =>
        isOpenAt(windows, wallMs - seconds * 1_000),
      );
      const at = new Date(wallMs).toISOString();
      if (!isIn)
        this.#found('P11', record, `${slot.host} is taken out at ${at}, no window is open`);
    }
    if ((gate?.webhookUrl ?? '') === '') return;
    view.count('host let through by a webhook');
    const { host, image: to, number } = slot;
    const question = { pool: record.pool?.name ?? '', host, to, order: Number(number) };
    if (view.gates.hasPassed(question)) return;
    this.#found('P12', record, `${host} goes out to ${to}, and the gate has not let it through`);
  }

  /** P13. */
  #judgeSlot(record: store.PoolRecord, slot: RolloutSlot): void {
    const { spec, status } = record.pool ?? {};
    const target = status?.target;
    const isBack = (status?.rolledBackFrom ?? '') !== '';
    if (spec === undefined || target === undefined || isBack) return;
    if (slot.image !== target.image || slot.host in spec.pins) return;
    const members = record.members.filter(({ host }) => !(host in spec.pins));
    const isReady = (uid: string) => this.#isOn(uid, target);
    const ofTarget = slotsOf(record).filter(({ image }) => image === target.image);
    const isAlone = ofTarget.length < 2 || members.some(({ hostUid }) => isReady(hostUid));
    if (!isAlone)
      this.#found('P13', record, `${slot.host} is taken beside the target's first host`);
    const wave = waveOf(spec, slot.host, slot.rack);
    for (const { host, hostUid } of members) {
      const known = this.#hosts.get(hostUid);
      if (known === undefined || hostUid === slot.hostUid) continue;
      if (waveOf(spec, host, slot.rack) >= wave || isReady(hostUid)) continue;
      const hasFailed = record.failures.some(
        (each) => each.hostUid === hostUid && each.digest === target.digest,
      );
      const isLost = !members.some((each) => {
        return (
          waveOf(spec, each.host, slot.rack) === waveOf(spec, host, slot.rack) &&
          isReady(each.hostUid)
        );
      });
      if (hasFailed && !isLost) continue;
      this.#found('P13', record, `${slot.host} is taken, and ${host} of a wave before is not done`);
    }
    if (wave > 0) this.#parts.view.count('host of a later wave taken');
  }

  /** It runs the target in good health, or did when somebody decided by that. */
  #isOn(hostUid: HostUid, { digest }: RolloutTarget): boolean {
    const known = this.#hosts.get(hostUid);
    if (known === undefined) return false;
    const sinceMs = this.#parts.view.heap.nowMs - known.before.untilMs;
    return known.digest === digest || (known.before.digest === digest && sinceMs < decidedMs);
  }

  /** P16. */
  #judgeSoak(record: store.PoolRecord, slot: RolloutSlot): void {
    const isKept = slotsOf(record).some(({ number }) => number === slot.number);
    const isMember = record.members.some(({ hostUid }) => hostUid === slot.hostUid);
    const hasFailed = record.failures.some(({ hostUid }) => hostUid === slot.hostUid);
    if (isKept || !isMember || hasFailed || record.deletion !== undefined) return;
    if (slot.state !== RolloutSlotState.PROVING || !isStillWanted(record, slot)) return;
    const soakMs = Number(record.pool?.spec?.rollout?.soak?.seconds ?? 0n) * 1_000;
    const what = `${slot.hostUid}/${slot.run} ${digestOf(slot.image)}`;
    const goodMs = this.#parts.view.heap.nowMs - this.provedAtMs(what);
    if (soakMs > 0) this.#parts.view.count('host soaked');
    if (goodMs >= soakMs) return;
    const text = `slot ${slot.number} of ${slot.host} is free after ${goodMs} ms, not ${soakMs}`;
    this.#found('P16', record, text);
  }
}

/** Whether it is the digest that the pool leads the slot's host to. */
function isStillWanted({ pool, previousTarget }: store.PoolRecord, slot: RolloutSlot): boolean {
  const { target, rolledBackFrom } = pool?.status ?? {};
  const inForce = rolledBackFrom === target?.digest ? previousTarget : target;
  const wanted = pool?.spec?.pins[slot.host] ?? inForce?.image ?? '';
  return digestOf(wanted) === digestOf(slot.image);
}

/** Why nothing may begin; undefined: it may. */
function whyNothingBegins({ pool, deletion }: store.PoolRecord, most: number): string | undefined {
  if (deletion !== undefined) return 'the pool is being deleted';
  if (pool?.spec?.rollout?.paused === true) return 'the pool is paused';
  return most === 0 ? 'no host may be out' : undefined;
}

function slotsOf(record: store.PoolRecord | undefined): readonly RolloutSlot[] {
  return record?.pool?.status?.slots ?? [];
}

/** The first wave that selects it; who is in none comes last. */
function waveOf({ rollout }: PoolSpec, host: string, rack: string): number {
  const waves = rollout?.waves ?? [];
  const found = waves.findIndex(({ hosts }) => hosts !== undefined && selects(hosts, host, rack));
  return found === -1 ? waves.length : found;
}

/** No label stands on a simulated host. */
function selects({ names, rack: wanted }: HostSelector, host: string, rack: string): boolean {
  const isNamed = names.length === 0 || names.includes(host);
  return isNamed && (wanted === '' || wanted === rack) && names.length + wanted.length > 0;
}

/** Whether a host serves, and the digest of the image that it serves well; empty: none. */
function serviceOf(status: HostStatus | undefined) {
  const { state, faults = [], poweredOn, inRescue, image = '' } = status ?? {};
  const errors = faults.filter(({ severity }) => severity !== FaultSeverity.WARNING);
  const isLost = hasFault(errors, 'reimageFailed');
  const isOut = isLost || poweredOn === false || inRescue === true;
  const isServing = state === HostState.PROVISIONED && !isOut;
  return { isServing, digest: isServing && errors.length === 0 ? digestOf(image) : '' };
}
