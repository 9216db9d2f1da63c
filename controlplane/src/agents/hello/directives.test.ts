import { create } from '@bufbuild/protobuf';
import { agent, store } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { directiveFor, obstructsRemoval } from './directives.ts';

const { CONTINUE, CANCEL } = agent.Directive_Action;

test('only an operation that was sent to this journal continues, not a lost one by its id', () => {
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

test('before an acceptance only unbegun operations of hosts to be removed are cancelled', () => {
  const { JOURNALLED, BEGUN, ENDED } = agent.JournalledOperation_State;
  const obstructs = (state: agent.JournalledOperation_State, deleted: boolean) =>
    obstructsRemoval(
      create(agent.JournalledOperationSchema, { operationId: 'u1/3/0/3', hostUid: 'u1', state }),
      create(store.HostRecordSchema, { host: { status: deleted ? { deletion: {} } : {} } }),
    );
  expect([JOURNALLED, BEGUN, ENDED].map((state) => obstructs(state, true))).toEqual([
    true,
    false,
    false,
  ]);
  expect(obstructs(JOURNALLED, false)).toBe(false);
});
