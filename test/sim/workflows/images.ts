/**
 * The image that commands of templates come in, at a registry that is slow and away at times. Agent
 * and runner ask for it with production code; its contents are the machine's programs.
 */
import { type BlobSource, OciError } from '@rackwright/oci';
import { writeImage } from '@rackwright/oci/testing';
import type { CommandParts, Programs } from '@rackwright/runner';
import type { SimProcess } from '@rackwright/sim';
import type { PartView } from '../part-view.ts';

export const registryName = 'registry.sim';
const image = writeImage([], { config: { Entrypoint: ['/bin/tool'] } });
/** How templates name it. */
export const imageReference = `${registryName}/tools@${image.manifest}`;

/** What the agent fetches images with: it takes time, and may not be had. */
export function simImages({ chance, count }: PartView, process: SimProcess) {
  return {
    fetch: async (_wanted: unknown, signal: AbortSignal) => {
      await process.answer(chance.around(4_000), () => undefined);
      signal.throwIfAborted();
      if (chance.happens(0.3)) {
        count('registry away');
        throw new OciError('unreachable', `${registryName} does not answer`);
      }
      return { release: () => undefined };
    },
  };
}

/** Where commands run in the simulated ramdisk. */
export function commandParts(
  { chance }: PartView,
  process: SimProcess,
  programs: Programs,
): CommandParts {
  const source: BlobSource = {
    open: async (digest, from) => {
      // Now and then longer than a work lease: what has been permitted may be over by then.
      await process.answer(chance.around(chance.happens(0.3) ? 12_000 : 800), () => undefined);
      const blob = image.blobs.get(digest);
      if (blob === undefined) throw new OciError('notFound', `${digest} is not served`);
      async function* chunks() {
        yield blob?.subarray(from) ?? new Uint8Array();
      }
      return { start: from, chunks: chunks(), close: () => undefined };
    },
  };
  return {
    programs,
    architecture: 'amd64',
    blobsAt: () => source,
    roots: {
      make: async () => ({
        apply: async () => undefined,
        leftOut: { count: 0, names: [] },
        enter: async ({ operationId, commandLine, environment, folder }) => {
          const [file = '', ...args] = commandLine;
          return { operationId, file, args, environment, folder };
        },
        remove: async () => undefined,
      }),
    },
  };
}
