/** By which profile of its rack's agent a host boots: it names one by a label. */
import type { Host } from '@rackwright/messages';

const bootLabel = 'boot';

/** Empty: by what holds for all hosts of the rack. */
export function bootProfileOf(host: Pick<Host, 'labels'> | undefined): string {
  return host?.labels[bootLabel] ?? '';
}
