import type { StateStore } from '@rackwright/store';
import { Gate } from './gate.ts';

/** A store whose watches show nothing while the gate is closed. */
export function lateWatch() {
  const gate = new Gate();
  const wrapStore = (store: StateStore): StateStore => {
    const { watch } = store;
    store.watch = async function* late(...args) {
      for await (const event of watch.apply(store, args)) {
        await gate.pass();
        yield event;
      }
    };
    return store;
  };
  return { gate, wrapStore };
}
