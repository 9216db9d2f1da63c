/** The boot profile of a host, among those of its rack's agent: a label names it. */
import type { Host } from '@rackwright/messages';

const bootLabel = 'boot';

/** Empty: the default of the rack's hosts. */
export function bootProfileOf(host: Pick<Host, 'labels'> | undefined): string {
  return host?.labels[bootLabel] ?? '';
}
