/** How images that racks fetch beforehand are shown. */

import { sizeText } from '@rackwright/disk-image/size';
import type { PrefetchedImage } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import type { TextColumn } from './table.ts';
import { ago } from './time.ts';

/** Columns of `image prefetched`. */
export function prefetchedColumns(clock: Clock): TextColumn<PrefetchedImage>[] {
  return [
    { title: 'RACK', value: ({ rack }) => rack },
    { title: 'IMAGE', value: ({ reference }) => reference, widthMin: 30 },
    { title: 'FOR', value: forText, dropOrder: 2 },
    { title: 'FETCHED', value: stateText, widthMin: 12 },
    { title: 'SAID', value: ({ asOfTime }) => ago(clock, asOfTime), dropOrder: 1 },
  ];
}

function forText({ architecture, netboot }: PrefetchedImage): string {
  return netboot ? `${architecture}, network` : architecture;
}

/** "whole", "312 MB of 1.2 GB", or why it does not go on. */
function stateText({ done, problem, fetchedBytes, allBytes, asOfTime }: PrefetchedImage): string {
  if (problem !== '') return problem;
  if (done) return allBytes === 0n ? 'whole' : `whole, ${sizeText(allBytes)}`;
  if (asOfTime === undefined) return 'nothing said yet';
  return allBytes === 0n ? 'begins' : `${sizeText(fetchedBytes)} of ${sizeText(allBytes)}`;
}
