/**
 * A simulated stream between two processes: messages arrive in their order after a delay, or the
 * stream ends at both sides. As with TCP, the last messages before an end may be lost.
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

export interface LinkOptions {
  readonly heap: EventHeap;
  delayMs(): number;
}

export interface Link<A, B> {
  /** Sends to the far side. */
  readonly near: LinkEnd<A>;
  /** Sends to the near side. */
  readonly far: LinkEnd<B>;
  /** Ends the stream now; what is under way is lost. */
  cut(): void;
  readonly isOpen: () => boolean;
}

export function openLink<A, B>(
  options: LinkOptions,
  nearHandlers: LinkHandlers<B>,
  farHandlers: LinkHandlers<A>,
): Link<A, B> {
  const state = { open: true };
  const close = () => {
    if (!state.open) return;
    state.open = false;
    options.heap.after(0, () => nearHandlers.onClosed());
    options.heap.after(0, () => farHandlers.onClosed());
  };
  return {
    near: direction(options, state, farHandlers, close),
    far: direction(options, state, nearHandlers, close),
    cut: close,
    isOpen: () => state.open,
  };
}

function direction<M>(
  { heap, delayMs }: LinkOptions,
  state: { readonly open: boolean },
  receiver: LinkHandlers<M>,
  close: () => void,
): LinkEnd<M> {
  let arrivesAtMs = 0;
  return {
    send: (message) => {
      if (!state.open) return;
      arrivesAtMs = Math.max(arrivesAtMs, heap.nowMs + delayMs());
      heap.after(arrivesAtMs - heap.nowMs, () => {
        if (state.open) receiver.onMessage(message);
      });
    },
    close,
  };
}
