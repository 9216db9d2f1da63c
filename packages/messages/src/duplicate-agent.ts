import type { RackStatus } from './gen/rackwright/v1/rack_pb.ts';

/** A second agent with the identity of the rack's, which was refused. */
export interface DuplicateAgent {
  /** For people. */
  readonly text: string;
}

/** The rack's duplicate agent; undefined: none was refused. The wire has only the text. */
export function duplicateAgentOf(
  status: Pick<RackStatus, 'duplicateAgent'> | undefined,
): DuplicateAgent | undefined {
  const text = status?.duplicateAgent ?? '';
  return text === '' ? undefined : { text };
}
