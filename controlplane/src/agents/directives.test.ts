import { create } from '@bufbuild/protobuf';
import { agent, store } from '@rackwright/api';
import { expect, test } from 'vitest';
import { directiveFor } from './directives.ts';

const { CONTINUE, CANCEL } = agent.Directive_Action;

test('goes on only with what was sent to this journal, not with lost work of the same id', () => {
  const listed = create(agent.JournalledOperationSchema, {
    operationId: 'u1/2/1/1',
    hostUid: 'u1',
    state: agent.JournalledOperation_State.JOURNALLED,
  });
  const journal = create(agent.JournalSchema, { id: 'j1', generation: 2n, life: 7n });
  const slotSentTo = (sentTo: agent.Journal | undefined) =>
    create(store.HostRecordSchema, {
      operation: {
        operation: { id: 'u1/2/1/1' },
        ...(sentTo === undefined ? {} : { sentTo }),
      },
    });
  const actionFor = (sentTo: agent.Journal | undefined) =>
    directiveFor(listed, slotSentTo(sentTo), journal).action;
  const otherLife = create(agent.JournalSchema, { id: 'j1', generation: 2n, life: 8n });
  expect(actionFor(undefined)).toBe(CANCEL);
  expect(actionFor(otherLife)).toBe(CANCEL);
  expect(actionFor(journal)).toBe(CONTINUE);
});
