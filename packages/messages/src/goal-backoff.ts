import { GivenUpCause, type GoalBackoff } from './gen/rackwright/v1/host_pb.ts';

/** Whether the goal waits for a person. */
export function isGivenUp(backoff: Pick<GoalBackoff, 'givenUp'> | undefined): boolean {
  return backoff !== undefined && backoff.givenUp !== GivenUpCause.UNSPECIFIED;
}
