/** The server that simulated webhooks call, with a log of what it was asked and under which key. */
import type { WebAnswer, WebClient, WebOutcome } from '@rackwright/platform';
import type { SimProcess } from '@rackwright/sim';
import { answerGate, gateUrl } from '../pools/gate-hook.ts';
import type { WorldView } from '../view.ts';
import type { WorkEvent } from './programs.ts';
import { readMark } from './recipes.ts';

/** A web client of one process: it reaches the one server that there is, mostly. */
export function simHooks(
  view: WorldView,
  process: SimProcess,
  log: (event: WorkEvent) => void,
): WebClient {
  const { chance, heap } = view;
  return {
    send: async ({ url, headers, body = new Uint8Array() }) => {
      await process.answer(chance.around(40), () => undefined);
      if (chance.happens(0.1)) return unreachable(false);
      const key = headers['idempotency-key'] ?? '';
      const text = new TextDecoder().decode(body);
      if (url === gateUrl) {
        return answerGate(view, key, text, (ms) => process.answer(ms, () => undefined));
      }
      const mark = readMark(text);
      if (mark !== undefined) {
        const called = { machine: '', boot: '', operationId: key, act: 'called' } as const;
        log({ ...mark, ...called, atMs: heap.nowMs, code: undefined });
        view.trace(`hooks: ${mark.title} of version ${mark.version}: ${key}`);
      }
      view.count('webhook called');
      await process.answer(chance.around(chance.happens(0.1) ? 8_000 : 40), () => undefined);
      if (chance.happens(0.1)) return unreachable(true);
      return answered(chance.happens(0.15) ? chance.pick([404, 500, 503]) : 204);
    },
  };
}

function unreachable(mayHaveArrived: boolean): WebOutcome {
  return { kind: 'unreachable', message: 'nobody answers', mayHaveArrived };
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

function answered(status: number): WebAnswer {
  return { kind: 'answered', status, headers: {}, body: nothing(), close: () => undefined };
}
