/**
 * The diligent operator: once the faults have stopped, whoever stands still gets exactly what
 * `explain` says, and must move by it.
 *
 * J9 For every host that does not move, `explain` names when it goes on by itself, or something to
 *    do; every line can be acted on, and doing what they say makes the host move.
 */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { Explanation } from '@rackwright/messages';
import type { Replica, WorldView } from '../view.ts';
import { ask, counterOf } from './counter.ts';
import { understand } from './errands.ts';
import {
  addressOf,
  isAtGoal,
  type KeptHost,
  keptHosts,
  machineOf,
  situationOf,
} from './records.ts';

const roundMs = 30_000;
/** A host that has not changed for so long stands still. */
const stillMs = 4 * 60_000;
/** What was done must have moved the host by then. */
const effectMs = 20 * 60_000;
/** What goes on by itself without a time of its own waits for others, and they for their boots. */
const promiseMs = 60 * 60_000;
/** What explain promises for a time may come so much later. */
const slackMs = 10 * 60_000;
/** The same advice, followed so often, leads nowhere. */
const circlesMax = 12;

interface Watched {
  situation: string;
  sinceMs: number;
  /** What was done about it, and when. */
  done: { readonly atMs: number; readonly advice: string } | undefined;
  readonly followed: Map<string, number>;
}

export class Diligent {
  readonly #view: WorldView;
  readonly #watched = new Map<string, Watched>();
  #stable = false;

  constructor(view: WorldView) {
    this.#view = view;
  }

  isStable(): boolean {
    // A host may have been made since the last round.
    return this.#stable && keptHosts(this.#view).every(isAtGoal);
  }

  start(): void {
    this.#view.heap.after(roundMs, () => {
      this.#round()
        .catch((error: unknown) => this.#view.found('J9', `explain threw: ${String(error)}`))
        .finally(() => this.start());
    });
  }

  async #round(): Promise<void> {
    const [replica] = this.#view.replicas();
    if (this.#view.faulty() || replica === undefined) return;
    const uids = keptHosts(this.#view).map(({ host }) => host.uid);
    for (const uid of uids) {
      // What was done for one host may have moved the next one, or removed it.
      const host = keptHosts(this.#view).find((kept) => kept.host.uid === uid);
      if (host !== undefined) await this.#look(host, replica);
    }
    this.#stable = keptHosts(this.#view).every(isAtGoal);
  }

  async #look(host: KeptHost, replica: Replica): Promise<void> {
    const { nowMs } = this.#view.heap;
    const situation = situationOf(host.record);
    const known = this.#watched.get(host.host.uid);
    const watched = known ?? {
      situation: '',
      sinceMs: nowMs,
      done: undefined,
      followed: new Map(),
    };
    this.#watched.set(host.host.uid, watched);
    if (watched.situation !== situation) {
      Object.assign(watched, { situation, sinceMs: nowMs, done: undefined });
      return;
    }
    if (isAtGoal(host) || nowMs - watched.sinceMs < stillMs) return;
    if (watched.done !== undefined) this.#judgeEffect(host, watched.done);
    else await this.#follow(host, watched, replica);
  }

  #judgeEffect({ id }: KeptHost, done: NonNullable<Watched['done']>): void {
    if (this.#view.heap.nowMs - done.atMs < effectMs) return;
    this.#view.found('J9', `${id} did not move by what explain says: ${done.advice}`);
  }

  async #follow(host: KeptHost, watched: Watched, replica: Replica): Promise<void> {
    const { name } = host.host;
    const { hosts } = counterOf(this.#view, replica);
    const answer = await ask(this.#view, () => hosts.explainHost({ name }));
    if (answer.kind !== 'accepted') return;
    const { headline, unblock } = answer.value;
    const isRemark = (line: string) => understand(line, undefined).kind === 'remark';
    const { nextAttemptTime } = answer.value;
    const inMs = this.#promisedMs(answer.value, replica) ?? 0;
    const isPromise = unblock.length > 0 && unblock.every(isRemark);
    if (isPromise && (nextAttemptTime === undefined || inMs < 0)) {
      watched.done = { atMs: this.#view.heap.nowMs + promiseMs, advice: unblock.join(' | ') };
      return;
    }
    if (unblock.every(isRemark)) {
      this.#mustGoOn(host, answer.value, replica);
      return;
    }
    const advice = unblock.join(' | ');
    const times = (watched.followed.get(advice) ?? 0) + 1;
    watched.followed.set(advice, times);
    if (times > circlesMax) {
      this.#view.found('J9', `${host.id} goes in circles: ${headline}: ${advice}`);
      return;
    }
    this.#view.trace(`diligent: ${host.id}: ${headline}; doing: ${advice}`);
    this.#view.count('advice followed');
    const chosen = this.#chosen(unblock, times);
    for (const line of chosen) await this.#do(host, line, replica);
    const chosenAreRemarks = chosen.every(isRemark);
    const promised = nextAttemptTime === undefined ? (chosenAreRemarks ? promiseMs : 0) : inMs;
    watched.done = { atMs: this.#view.heap.nowMs + promised, advice: chosen.join(' | ') };
  }

  /** What nothing can be done about must have a time of its own. */
  #mustGoOn({ id }: KeptHost, explained: Explanation, replica: Replica): void {
    const inMs = this.#promisedMs(explained, replica);
    if (inMs === undefined) {
      this.#view.found(
        'J9',
        `${id} stands still, and explain knows neither what to do nor until when: ` +
          explained.headline,
      );
    } else if (inMs < -slackMs) {
      this.#view.found(
        'J9',
        `${id} stands still although its time has come: ${explained.headline}`,
      );
    }
  }

  /** Milliseconds until the time that explain names; undefined when it names none. */
  #promisedMs(
    { nextAttemptTime, deadline }: Explanation,
    { process }: Replica,
  ): number | undefined {
    const time = nextAttemptTime ?? deadline;
    return time === undefined ? undefined : timestampMs(time) - process.clock.nowMs();
  }

  /**
   * Lines that begin with "or" are other ways to the same end; of those, commands are tried. Who
   * comes here again goes the first way: a claim that is given up in turn would lead in circles.
   */
  #chosen(lines: readonly string[], times: number): readonly string[] {
    const isOther = (line: string) => line.startsWith('or ');
    const isCommand = (line: string) => understand(line, undefined).kind === 'command';
    const others = lines.filter((line) => isOther(line) && isCommand(line));
    const mayChoose = others.length > 0 && times === 1;
    if (mayChoose && this.#view.random.fraction() < 0.5) return others.slice(0, 1);
    return lines.filter((line) => !isOther(line));
  }

  async #do(host: KeptHost, text: string, replica: Replica): Promise<void> {
    const machine = machineOf(this.#view, host);
    const advised = understand(text, machine);
    switch (advised.kind) {
      case 'remark':
        if (text.startsWith('find out which of the two hosts')) await this.#findOut(host, replica);
        return;
      case 'errand':
        if (machine !== undefined) advised.run(machine);
        return;
      case 'unclear':
        this.#view.found('J9', `${host.id}: nobody can act on "${text}"`);
        return;
      case 'command':
        await this.#type(host, advised.line, advised.input, replica);
    }
  }

  /** Whoever looks for a wrong BMC address looks at every host, not only at the one that asks. */
  async #findOut(host: KeptHost, replica: Replica): Promise<void> {
    for (const other of keptHosts(this.#view)) {
      const machine = machineOf(this.#view, other);
      if (machine === undefined || other.host.uid === host.host.uid) continue;
      const address = addressOf(machine);
      if (other.host.spec?.bmc?.address === address) continue;
      await this.#type(other, ['host', 'update', other.id, '--bmc', address], '', replica);
    }
  }

  async #type(
    { id, host }: KeptHost,
    line: readonly string[],
    input: string,
    replica: Replica,
  ): Promise<void> {
    const before = this.#watched.get(host.uid)?.situation;
    const { type } = counterOf(this.#view, replica);
    const answer = await ask(this.#view, () => type(line, input));
    if (answer.kind !== 'accepted') return;
    const { code, output } = answer.value;
    this.#view.trace(`diligent: rackwright ${line.join(' ')}: ${code}`);
    const now = keptHosts(this.#view).find((kept) => kept.host.uid === host.uid);
    const unmoved = now !== undefined && situationOf(now.record) === before;
    if (code === 0 || !unmoved) return;
    this.#view.found(
      'J9',
      `${id}: "rackwright ${line.join(' ')}" as explain says: ${output.trim()}`,
    );
  }
}
