/**
 * The registry of a simulated rack: images of hosts by digest, tags that people move, and how each
 * image behaves on a machine.
 */
import type { ResolveImage } from '@rackwright/controlplane';
import type { SimProcess } from '@rackwright/sim';
import type { PartView } from '../part-view.ts';
import { registryName } from '../workflows/images.ts';

export const repository = `${registryName}/os`;
/** How it is named by whoever follows it. */
export const tagReference = `${repository}:stable`;

const letters = ['a', 'b', 'c', 'd', 'e', 'f'] as const;
export type ImageLetter = (typeof letters)[number];
/** Those that come up and prove themselves. */
export const goodImages: readonly ImageLetter[] = ['a', 'b', 'c', 'd', 'e'];
/** One that never does. */
export const badImage: ImageLetter = 'f';

/** How long an image takes at its first start, usually. */
const firstBootMs = 40_000;

/** "sha256:…" of an image. */
export function digestOfImage(letter: ImageLetter): string {
  return `sha256:${letter.repeat(64)}`;
}

/** As people name it by digest. */
export function imageReferenceOf(letter: ImageLetter): string {
  return `${repository}@${digestOfImage(letter)}`;
}

export interface ImageBehaviour {
  /** When it phones home after its first start; undefined: never. */
  readonly firstBootMs: number | undefined;
}

/** What an image does on a machine. */
export function behaviourOf(digest: string): ImageBehaviour {
  return { firstBootMs: digest === digestOfImage(badImage) ? undefined : firstBootMs };
}

/** What the tag means now; people move it. */
export class TagBook {
  #letter: ImageLetter = 'a';

  get letter(): ImageLetter {
    return this.#letter;
  }

  move(letter: ImageLetter): void {
    this.#letter = letter;
  }
}

/** Asks the registry as a control plane does: it takes time, and may not be had. */
export function simResolve(
  view: PartView & { readonly tags: TagBook },
  process: SimProcess,
): ResolveImage {
  const { chance, count, tags } = view;
  return async (_reference, known) => {
    await process.answer(chance.around(300), () => undefined);
    if (chance.happens(0.2)) {
      count('tag not resolved');
      return {
        kind: 'failed',
        type: 'registryUnreachable',
        message: `${registryName} does not answer`,
      };
    }
    const digest = digestOfImage(tags.letter);
    return digest === known ? { kind: 'unchanged' } : { kind: 'digest', digest, version: '' };
  };
}
