import type { NameAnswer, Names } from '../names.ts';
import { AddressRefused, guardedLookup } from './guarded-lookup.ts';

/** The port for an address that is reached by no port of TCP: no entry of a list names it. */
const noPort = 0;

/** Resolves by the resolver of this machine. */
export function nodeNames(): Names {
  const resolveName = guardedLookup(noPort, []);
  return {
    addressOf: (name) =>
      new Promise<NameAnswer>((resolve) => {
        resolveName(name, {}, (error, address) => {
          if (error instanceof AddressRefused) {
            resolve({ kind: 'forbidden', message: error.message });
          } else if (error !== null || typeof address !== 'string') {
            resolve({ kind: 'unknown', message: error?.message ?? 'no address' });
          } else resolve({ kind: 'found', address });
        });
      }),
  };
}
