/** Which secret went to which operation is told, and never its value. */
import { create, toBinary } from '@bufbuild/protobuf';
import { agent, store as wire } from '@rackwright/api';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { openMemoryStore } from '@rackwright/store';
import { expect, test } from 'vitest';
import type { AuditEvent } from '../audit/index.ts';
import { sendOperation } from './effects.ts';

test('the credential of an operation is on record by name and version', async () => {
  const store = await openMemoryStore({ random: nodeRandom() });
  const kept = create(wire.CredentialRecordSchema, {
    credential: { name: 'credentials/bmc', version: 7n },
  });
  await store.put('credentials.bmc', toBinary(wire.CredentialRecordSchema, kept), 'absent');
  const events: AuditEvent[] = [];
  const sent: string[] = [];
  let isConnected = false;
  const session = { send: (message: { case?: string }) => void sent.push(message.case ?? '') };
  const deps = {
    store,
    clock: nodeClock(),
    crashPoint: () => undefined,
    openCredential: () => ({ username: 'root', password: 'sesame' }),
    registry: { sessionOf: () => (isConnected ? session : undefined) },
    audit: { note: (event: AuditEvent) => void events.push(event) },
  };
  const bmc = { address: '10.0.0.1', credential: 'credentials/bmc' };
  const operation = create(agent.OperationSchema, {
    id: 'u1/1/0/1',
    kind: { case: 'verifyAccess', value: { bmc } },
  });
  await sendOperation(deps as never, 'r1', operation);
  expect([events, sent]).toEqual([[], []]);
  isConnected = true;
  await sendOperation(deps as never, 'r1', operation);
  expect(sent).toEqual(['credentialValue', 'operation']);
  expect(events).toMatchObject([
    {
      kind: 'secretSent',
      resource: 'credentials/bmc',
      message: 'version 7 to the agent of racks/r1',
      operationId: 'u1/1/0/1',
    },
  ]);
  expect(JSON.stringify(events)).not.toContain('sesame');
});
