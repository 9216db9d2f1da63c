/**
 * Converts the control plane's times in an operation to this machine's time. Pure.
 *
 * The two clocks may differ by minutes, while a short operation's deadline is seconds away. Only
 * the remaining time counts, and the control plane's time of sending yields it. The conversion
 * happens once, at receipt, so the journal holds times of the clock that is read later.
 */
import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { agent } from '@rackwright/messages';

/** `nowMs` is this machine's wall time at receipt. Without a send time the clocks must agree. */
export function inOwnTime(operation: agent.Operation, nowMs: number): agent.Operation {
  const { sendTime, deadline, kind, ...rest } = operation;
  if (sendTime === undefined) return operation;
  const aheadMs = nowMs - timestampMs(sendTime);
  const own = (time: Timestamp): Timestamp => timestampFromMs(timestampMs(time) + aheadMs);
  return create(agent.OperationSchema, {
    ...rest,
    kind: ownKind(kind, own),
    ...(deadline === undefined ? {} : { deadline: own(deadline) }),
  });
}

function ownKind(
  kind: agent.Operation['kind'],
  own: (time: Timestamp) => Timestamp,
): agent.Operation['kind'] {
  if (kind.case !== 'setPower') return kind;
  const { grantExpireTime, shutdownDeadline } = kind.value;
  return {
    case: 'setPower',
    value: {
      ...kind.value,
      ...(grantExpireTime === undefined ? {} : { grantExpireTime: own(grantExpireTime) }),
      ...(shutdownDeadline === undefined ? {} : { shutdownDeadline: own(shutdownDeadline) }),
    },
  };
}
