/**
 * Operators of a simulated rack. For a while they do random things through the real API; then they
 * fall silent, and a diligent one does for each host that stands still exactly what `explain` says.
 *
 * O1 Asked twice under one request id, it is done once and never refused the second time.
 * O2 What is refused says why, and leaves no trace in any record.
 * O3 No call ends as an error of ours.
 */
import type { HostId, store as wire } from '@rackwright/messages';
import { hostRecordOf } from '../host-record.ts';
import type { SimMachine } from '../machine.ts';
import type { Replica, WorldView } from '../view.ts';
import { actsOfAuthors } from '../workflows/acts.ts';
import { type Act, acts, type Call, createAgain } from './acts.ts';
import { type Answer, ask, counterOf } from './counter.ts';
import { Diligent } from './diligent.ts';
import { isAtGoal, keptHosts, machineOf, situationOf } from './records.ts';

/** Between two acts, for as long as there are faults. */
const pauseMs = 12_000;
/** More changes than a rack writes between two calls. */
const changesMax = 10_000;

/** One act, for judges. */
export interface OperatorEvent {
  readonly atMs: number;
  readonly endMs: number;
  readonly act: string;
  /** "h1"; empty where the act is not about one host. */
  readonly hostId: HostId;
  readonly requestId: string;
  readonly outcome: Answer<unknown>['kind'];
  readonly text: string;
}

export class Operators {
  readonly log: OperatorEvent[] = [];
  readonly #view: WorldView;
  readonly #diligent: Diligent;
  #asked = 0;

  constructor(view: WorldView) {
    this.#view = view;
    this.#diligent = new Diligent(view);
  }

  start(): void {
    this.#actLater();
    this.#diligent.start();
  }

  /** Whether every host stands where it shall stand, with nobody doing anything any more. */
  isStable(): boolean {
    return this.#diligent.isStable();
  }

  /** Whether this host stands where it shall stand. */
  isSettled(record: wire.HostRecord): boolean {
    const { host } = record;
    return host?.status !== undefined && isAtGoal({ id: '', record, host, status: host.status });
  }

  #actLater(): void {
    const { heap, chance } = this.#view;
    heap.after(chance.around(pauseMs), () => {
      if (!this.#view.faulty()) return;
      this.#act().catch((error: unknown) => {
        this.#view.found('O3', `an operator's call threw: ${String(error)}`);
      });
      this.#actLater();
    });
  }

  async #act(): Promise<void> {
    const replica = this.#pick(this.#view.replicas());
    const machine = this.#pick([...this.#view.machines.values()]);
    if (replica === undefined || machine === undefined) return;
    this.#asked += 1;
    const requestId = `q${this.#asked}`;
    const host = keptHosts(this.#view).find((kept) => machineOf(this.#view, kept) === machine);
    const nowMs = replica.process.clock.nowMs();
    const pick = <T>(choices: readonly T[]) => this.#pick(choices) as T;
    const scene = { view: this.#view, machine, nowMs, requestId, pick };
    if (host === undefined) {
      const call = createAgain(scene, this.#freeIds(machine));
      await this.#call('create', '', requestId, replica, call);
      return;
    }
    const act = this.#pickAct();
    const call = act.prepare({ ...scene, host });
    await this.#call(act.name, host.id, requestId, replica, call);
  }

  /** Names that no host has: the machine's usual one and another. */
  #freeIds({ name }: SimMachine): string[] {
    const taken = new Set(keptHosts(this.#view).map(({ id }) => id));
    const usual = `h${name.slice(1)}`;
    return [usual, `${usual}-again`, `spare-${name}`].filter((id) => !taken.has(id));
  }

  async #call(
    act: string,
    hostId: HostId,
    requestId: string,
    replica: Replica,
    call: Call,
  ): Promise<void> {
    const disk = this.#view.storeDisk();
    const first = await this.#ask(act, hostId, requestId, replica, call);
    const answeredAt = disk.latest();
    if (this.#view.random.fraction() > 0.3) return;
    // Said again, perhaps to another replica, perhaps while the first time is not answered yet.
    await this.#pause();
    const again = this.#pick(this.#view.replicas());
    if (again === undefined) return;
    const second = await this.#ask(`${act} again`, hostId, requestId, again, call);
    if (first.kind !== 'accepted' || second.kind !== 'refused') return;
    if (isGone(second) || !answersRequestIds(act)) return;
    // A store that was put back meanwhile has never heard of it.
    if (this.#view.storeDisk() !== disk) return;
    // What was made may be deleted since, and its name be another's.
    const isTaken = second.error.kind === 'alreadyExists';
    if (isTaken && disk.after(answeredAt, '', changesMax).some(isDeletion)) return;
    this.#view.found(
      'O1',
      `${act} ${hostId} ${requestId} was accepted, then ${second.error.message}`,
    );
  }

  async #ask(
    act: string,
    hostId: HostId,
    requestId: string,
    replica: Replica,
    call: Call,
  ): Promise<Answer<unknown>> {
    const { heap } = this.#view;
    const atMs = heap.nowMs;
    const before = this.#view.storeDisk().latest();
    const answer = await ask(this.#view, () => call(counterOf(this.#view, replica)));
    const text = answer.kind === 'refused' ? answer.error.message : '';
    this.#view.trace(`operator: ${act} ${hostId} ${requestId} ${answer.kind} ${text}`);
    this.#view.count(`operator ${answer.kind}`);
    this.log.push({ atMs, endMs: heap.nowMs, act, hostId, requestId, outcome: answer.kind, text });
    this.#judge(act, hostId, requestId, answer);
    if (answer.kind === 'refused' && hostId !== '') this.#judgeWrites(act, hostId, before);
    return answer;
  }

  #judge(act: string, hostId: HostId, requestId: string, answer: Answer<unknown>): void {
    if (answer.kind !== 'refused') return;
    const { kind, message } = answer.error;
    if (kind === 'internal') {
      this.#view.found('O3', `${act} ${hostId}: ${kind}: ${message}`);
    }
    if (message.length < 10) this.#view.found('O2', `${act} ${hostId}: refused without a word`);
    if (kind !== 'failedPrecondition' && kind !== 'invalidArgument') return;
    const ids = this.#requestIds(hostId);
    if (ids.some((id) => id.endsWith(`:${requestId}`))) {
      this.#view.found('O2', `${act} ${hostId} ${requestId} was refused and stands in the record`);
    }
  }

  /** What was written meanwhile had a reason of its own: more than its bookkeeping changed. */
  #judgeWrites(act: string, hostId: HostId, before: number): void {
    const changes = this.#view.storeDisk().changesOf(`hosts.${hostId}`);
    for (const [index, change] of changes.entries()) {
      const earlier = changes[index - 1];
      if (change.revision <= before || change.kind !== 'put' || earlier?.kind !== 'put') continue;
      const [was, is] = [hostRecordOf(earlier.value), hostRecordOf(change.value)];
      if (situationOf(was) !== situationOf(is)) continue;
      const added = is.requestIds.filter((id) => !was.requestIds.includes(id));
      // What a workflow says of a run that never started has an id of its own.
      if (added.some((id) => /:q\d+$|^workflow:/.test(id))) continue;
      this.#view.found(
        'O2',
        `${act} ${hostId} was refused, and revision ${change.revision} written: ` +
          `${is.change?.cause}, ${added}`,
      );
    }
  }

  #requestIds(hostId: HostId): readonly string[] {
    const [change] = this.#view.storeDisk().lastChanges(`hosts.${hostId}`);
    if (change?.kind !== 'put') return [];
    return hostRecordOf(change.value).requestIds;
  }

  #pickAct(): Act {
    const all = [...acts, ...actsOfAuthors(this.#view)];
    const sum = all.reduce((total, { weight }) => total + weight, 0);
    let left = this.#view.random.fraction() * sum;
    return all.find(({ weight }) => (left -= weight) < 0) ?? (acts[0] as Act);
  }

  #pick<T>(choices: readonly T[]): T | undefined {
    return choices[Math.floor(this.#view.random.fraction() * choices.length)];
  }

  #pause(): Promise<void> {
    const { heap, chance } = this.#view;
    return new Promise((resolve) => void heap.after(chance.around(5_000), resolve));
  }
}

/** The host that was asked for is removed, or the same request was answered by its removal. */
function isGone(answer: Answer<unknown>): boolean {
  return answer.kind === 'refused' && ['notFound', 'unavailable'].includes(answer.error.kind);
}

function isDeletion({ kind }: { readonly kind: string }): boolean {
  return kind === 'delete';
}

/** Reading has no request id. */
function answersRequestIds(act: string): boolean {
  return act !== 'read';
}
