/**
 * The server that gates of pools ask, with a log of its own: it lets a host through, does not, is
 * late, breaks, or says what only looks like a yes. What was asked under one key it answers the
 * same again, as receivers shall.
 */
import type { WebOutcome } from '@rackwright/platform';
import type { PartView } from '../part-view.ts';
import { hooksUrl } from '../workflows/recipes.ts';

export const gateUrl = `${hooksUrl}gate`;

/** A question, as its body says it. */
export interface GateQuestion {
  readonly pool: string;
  readonly host: string;
  readonly to: string;
  /** Of the slot. */
  readonly order: number;
}

interface Said {
  readonly status: number;
  readonly body: string;
  /** Longer than anybody waits, perhaps. */
  readonly afterMs: number;
}

const yes = '{"proceed": true}';
/** Only the first is a yes. */
const answers: readonly (readonly [number, Said])[] = [
  [0.5, { status: 200, body: yes, afterMs: 40 }],
  [0.65, { status: 200, body: '{"proceed": false, "why": "not now"}', afterMs: 40 }],
  [0.7, { status: 200, body: '{"proceed": "true"}', afterMs: 40 }],
  [0.75, { status: 500, body: yes, afterMs: 40 }],
  [0.8, { status: 204, body: '', afterMs: 40 }],
  [0.9, { status: 200, body: yes, afterMs: 20_000 }],
  [1, { status: 200, body: yes, afterMs: 90_000 }],
];

/** What the receiver remembers of what it was asked and has said. */
export class GateBook {
  readonly #said = new Map<string, { readonly question: string; readonly said: Said }>();
  readonly #passed = new Set<string>();

  /** What it says to this key; undefined: it has said nothing to it yet. */
  saidTo(key: string): { readonly question: string; readonly said: Said } | undefined {
    return this.#said.get(key);
  }

  say(key: string, question: string, said: Said): void {
    this.#said.set(key, { question, said });
  }

  pass(question: GateQuestion): void {
    this.#passed.add(textOf(question));
  }

  /** Whether it has ever let this slot's host through to this image. */
  hasPassed(question: GateQuestion): boolean {
    return this.#passed.has(textOf(question));
  }
}

function textOf({ pool, host, to, order }: GateQuestion): string {
  return [pool, host, to, order].join(' ');
}

/** Answers a question; `wait` ends when the caller gives up, too. */
export async function answerGate(
  view: PartView & { readonly gates: GateBook },
  key: string,
  body: string,
  wait: (ms: number) => Promise<void>,
): Promise<WebOutcome> {
  const { chance, gates } = view;
  const { pool, host, to, order }: GateQuestion = JSON.parse(body);
  const known = gates.saidTo(key);
  if (known !== undefined && known.question !== body) {
    view.found('P12', `the gate is asked ${body} under the key of ${known.question}`);
  }
  const said = known?.said ?? chooseAnswer(view);
  gates.say(key, body, said);
  await wait(chance.around(said.afterMs));
  const isYes = said.status === 200 && said.body === yes;
  if (isYes) gates.pass({ pool, host, to, order });
  view.count(`gate ${isYes ? 'lets through' : 'does not let through'}`);
  view.trace(`gate: ${key} ${host} ${said.status} ${said.body}`);
  if (chance.happens(0.1)) {
    return { kind: 'unreachable', message: 'nobody answers', mayHaveArrived: true };
  }
  const bytes = new TextEncoder().encode(said.body);
  async function* content(): AsyncGenerator<Uint8Array> {
    yield bytes;
  }
  const close = () => undefined;
  return { kind: 'answered', status: said.status, headers: {}, body: content(), close };
}

/** Once nothing goes wrong any more it lets everybody through, though perhaps not at once. */
function chooseAnswer({ faulty, random }: PartView): Said {
  const drawn = random.fraction() * (faulty() ? 1 : 0.7);
  return answers.find(([below]) => drawn < below)?.[1] ?? { status: 200, body: yes, afterMs: 40 };
}
