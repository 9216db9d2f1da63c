/** What a seed decides for a world in which there are pools. */
import type { WorldView } from '../view.ts';
import { GateBook } from './gate-hook.ts';
import { ImageProofs } from './image-proofs.ts';
import { TagBook } from './registry.ts';
import { wallStartOf } from './windows.ts';

type OfPools = Pick<
  WorldView,
  'tags' | 'gates' | 'imageProofs' | 'netboot' | 'isMild' | 'wallStartMs'
>;

/** `pools`: there are any. By the seed alone: nothing else in the world is drawn otherwise. */
export function poolWorld(seed: number, pools: boolean): OfPools {
  return {
    tags: new TagBook(),
    gates: new GateBook(),
    imageProofs: new ImageProofs(),
    wallStartMs: wallStartOf(pools ? seed : 0),
    isMild: pools && Math.floor(seed / 3) % 3 !== 0,
    netboot: pools && Math.floor(seed / 9) % 3 === 1,
  };
}
