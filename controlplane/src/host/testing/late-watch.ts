import type { StateStore } from '@rackwright/store';

/** A store whose watches show nothing while they are held back. */
export function lateWatch() {
  let open = Promise.withResolvers<void>();
  open.resolve();
  return {
    hold: () => {
      open = Promise.withResolvers<void>();
    },
    release: () => {
      open.resolve();
    },
    wrapStore: (store: StateStore): StateStore => {
      const { watch } = store;
      store.watch = async function* late(...args) {
        for await (const event of watch.apply(store, args)) {
          await open.promise;
          yield event;
        }
      };
      return store;
    },
  };
}
