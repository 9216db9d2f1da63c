import { create } from '@bufbuild/protobuf';
import { agent, store } from '@rackwright/api';
import { expect, test } from 'vitest';
import { directiveFor } from './directives.ts';

const { CONTINUE, CANCEL } = agent.Directive_Action;

test('goes on only with what was sent from here, not with a lost stretch’s work of the same id', () => {
  const listed = create(agent.JournalledOperationSchema, {
    operationId: 'u1/2/1/1',
    hostUid: 'u1',
    state: agent.JournalledOperation_State.JOURNALLED,
  });
  const slot = { operation: { id: 'u1/2/1/1' } };
  const unsent = create(store.HostRecordSchema, { operation: slot });
  const sentTo = { id: 'j1', generation: 1n };
  const sent = create(store.HostRecordSchema, { operation: { ...slot, sentTo } });
  expect(directiveFor(listed, unsent).action).toBe(CANCEL);
  expect(directiveFor(listed, sent).action).toBe(CONTINUE);
});
