/**
 * A simulated stream between two processes. Within one stream order always holds, as with TCP:
 * messages arrive in their order after a delay, wait while their direction is blocked, or are lost
 * with the end of the stream. An end need not reach both sides at once: a stream may stand half
 * open until the other side's keepalive notices.
 */
import type { EventHeap } from './heap.ts';

export interface LinkEnd<Out> {
  send(message: Out): void;
  close(): void;
}

export interface LinkHandlers<In> {
  onMessage(message: In): void;
  onClosed(): void;
}

export type Direction = 'toFar' | 'toNear';

export interface LinkOptions {
  readonly heap: EventHeap;
  delayMs(): number;
}

export interface Link<A, B> {
  /** Sends to the far side. */
  readonly near: LinkEnd<A>;
  /** Sends to the near side. */
  readonly far: LinkEnd<B>;
  /** Ends the stream for both sides now; messages under way are lost. */
  cut(): void;
  /** Ends the stream; the named side notices it only after `noticedMs`. */
  halfOpen(unaware: 'near' | 'far', noticedMs: number): void;
  /** Holds messages of one direction back, or lets them go on in their order. */
  block(direction: Direction, blocked: boolean): void;
  readonly isOpen: () => boolean;
}

interface State {
  /** Whether messages still get through. */
  open: boolean;
  readonly blocked: Record<Direction, boolean>;
}

export function openLink<A, B>(
  options: LinkOptions,
  nearHandlers: LinkHandlers<B>,
  farHandlers: LinkHandlers<A>,
): Link<A, B> {
  const { heap } = options;
  const state: State = { open: true, blocked: { toFar: false, toNear: false } };
  const end = (nearAfterMs: number, farAfterMs: number) => {
    if (!state.open) return;
    state.open = false;
    heap.after(nearAfterMs, () => nearHandlers.onClosed());
    heap.after(farAfterMs, () => farHandlers.onClosed());
  };
  const close = () => end(0, 0);
  const toFar = direction(options, state, 'toFar', farHandlers, close);
  const toNear = direction(options, state, 'toNear', nearHandlers, close);
  return {
    near: toFar.end,
    far: toNear.end,
    cut: close,
    halfOpen: (unaware, noticedMs) => (unaware === 'near' ? end(noticedMs, 0) : end(0, noticedMs)),
    block: (which, blocked) => {
      state.blocked[which] = blocked;
      if (!blocked) (which === 'toFar' ? toFar : toNear).release();
    },
    isOpen: () => state.open,
  };
}

function direction<M>(
  { heap, delayMs }: LinkOptions,
  state: State,
  name: Direction,
  receiver: LinkHandlers<M>,
  close: () => void,
): { readonly end: LinkEnd<M>; release(): void } {
  let arrivesAtMs = 0;
  const blocked: M[] = [];
  const arrive = (message: M) => {
    if (!state.open) return;
    if (state.blocked[name] || blocked.length > 0) blocked.push(message);
    else receiver.onMessage(message);
  };
  return {
    end: {
      send: (message) => {
        if (!state.open) return;
        arrivesAtMs = Math.max(arrivesAtMs, heap.nowMs + delayMs());
        heap.after(arrivesAtMs - heap.nowMs, () => arrive(message));
      },
      close,
    },
    release: () => {
      if (blocked.length === 0) return;
      heap.after(0, () => {
        while (blocked.length > 0 && state.open && !state.blocked[name]) {
          receiver.onMessage(blocked.shift() as M);
        }
      });
    },
  };
}
