/** R10: the directive for each operation that an agent's journal lists. Pure. */
import { create } from '@bufbuild/protobuf';
import { agent, type store } from '@rackwright/messages';
import { isDescendantOf } from '../../host/index.ts';

const { CONTINUE, CANCEL, FORGET } = agent.Directive_Action;

/** `record` is the operation's host; undefined when it is unknown. */
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
  const operationRecord = record.operation;
  // An operation that was not sent to this journal (R9) belongs to a lost life or history, under
  // the same id.
  const sentHere =
    operationRecord?.sentTo !== undefined && isDescendantOf(journal, operationRecord.sentTo);
  if (sentHere && operationRecord.operation?.id === operation.operationId)
    return operationRecord.cancelId === '' || ended ? CONTINUE : CANCEL;
  // A settled operation is of no use; if it still runs it must stop, and its end is reported.
  if (!ended) return CANCEL;
  return operation.answered ? FORGET : CONTINUE;
}

/**
 * Whether an operation that has not begun delays the removal of the host. The removal goes on even
 * while a restored store is not accepted. To cancel the operation loses nothing in either store.
 */
export function obstructsRemoval(
  { state }: agent.JournalledOperation,
  record: store.HostRecord | undefined,
): boolean {
  const unbegun = state === agent.JournalledOperation_State.JOURNALLED;
  return unbegun && record?.host?.status?.deletion !== undefined;
}
