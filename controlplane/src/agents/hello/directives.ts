/** R10: what the control plane says of each operation that an agent's journal lists. Pure. */
import { create } from '@bufbuild/protobuf';
import { agent, type store } from '@rackwright/messages';
import { descends } from '../../host/index.ts';

const { CONTINUE, CANCEL, FORGET } = agent.Directive_Action;

/** `record` is the operation's host; undefined when it is not known (any more). */
export function directiveFor(
  operation: agent.JournalledOperation,
  record: store.HostRecord | undefined,
  journal: agent.Journal,
): agent.Directive {
  return create(agent.DirectiveSchema, {
    operationId: operation.operationId,
    action: actionFor(operation, record, journal),
  });
}

function actionFor(
  operation: agent.JournalledOperation,
  record: store.HostRecord | undefined,
  journal: agent.Journal,
): agent.Directive_Action {
  const ended = operation.state === agent.JournalledOperation_State.ENDED;
  if (record === undefined) return ended ? FORGET : CANCEL;
  const slot = record.operation;
  // What was not sent to this journal (R9) is of a life or stretch that is lost, under the same id.
  const sentHere = slot?.sentTo !== undefined && descends(journal, slot.sentTo);
  if (sentHere && slot.operation?.id === operation.operationId)
    return slot.cancelId === '' || ended ? CONTINUE : CANCEL;
  // What was settled is of no use to anybody; what still runs must stop, and its end is reported.
  if (!ended) return CANCEL;
  return operation.answered ? FORGET : CONTINUE;
}

/**
 * Whether an operation that has not begun is in the way of the host's removal, which goes on also
 * while a restored store is not accepted. Taking it back loses nothing in either store.
 */
export function obstructsRemoval(
  { state }: agent.JournalledOperation,
  record: store.HostRecord | undefined,
): boolean {
  const unbegun = state === agent.JournalledOperation_State.JOURNALLED;
  return unbegun && record?.host?.status?.deletion !== undefined;
}
