/** The record says which secret was sent for which operation, and never its value. */
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { agent, type CredentialSchema, store as wire } from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { openMemoryStore } from '@rackwright/store';
import { expect, test } from 'vitest';
import type { AuditEvent } from '../../audit/index.ts';
import { sendForget, sendOperation } from './effects.ts';

/** Messages to agents, while one is connected; `limits`: of the credential. */
async function sending(limits: MessageInitShape<typeof CredentialSchema> = {}) {
  const store = await openMemoryStore({ random: nodeRandom() });
  const credential = { name: 'credentials/bmc', version: 7n, ...limits };
  const kept = create(wire.CredentialRecordSchema, { credential });
  await store.put('credentials.bmc', toBinary(wire.CredentialRecordSchema, kept), 'absent');
  const events: AuditEvent[] = [];
  const sent: string[] = [];
  const agents = { connected: true };
  const session = {
    journal: create(agent.JournalSchema, { id: 'j1', generation: 1n }),
    send: (message: { case?: string }) => void sent.push(message.case ?? ''),
  };
  const deps = {
    store,
    clock: nodeClock(),
    crashPoint: () => undefined,
    openCredential: () => ({ username: 'root', password: 'sesame' }),
    registry: { sessionOf: () => (agents.connected ? session : undefined) },
    audit: { note: (event: AuditEvent) => void events.push(event) },
  };
  const send = (kind: Kind, rackId = 'r1', sentTo = session.journal) => {
    const operation = create(agent.OperationSchema, { id: 'u1/1/0/1', kind });
    return sendOperation(deps as never, { rackId, operation, sentTo });
  };
  const forget = () => sendForget(deps as never, 'r1', create(wire.HostRecordSchema, {}));
  /** Stores another version of it. */
  const rotate = async (version: bigint) => {
    const next = create(wire.CredentialRecordSchema, { credential: { ...credential, version } });
    const found = await store.get('credentials.bmc');
    const value = toBinary(wire.CredentialRecordSchema, next);
    await store.put('credentials.bmc', value, found.revision ?? 'absent');
  };
  return { agents, events, send, sent, forget, rotate };
}

type Kind = NonNullable<
  Exclude<MessageInitShape<typeof agent.OperationSchema>, agent.Operation>['kind']
>;

const bmc = { address: '10.0.0.1', credential: 'credentials/bmc' };
const verify: Kind = { case: 'verifyAccess', value: { bmc } };
const secrets = [{ variable: 'TOKEN', credential: 'credentials/bmc' }];
const script: Kind = { case: 'runStep', value: { step: 'run.script', secrets } };
const image = { reference: 'registry.example.org/x', credential: 'credentials/bmc' };
const command: Kind = { case: 'runStep', value: { step: 'run.command', image } };

test('the credential of an operation is on record by name and version', async () => {
  const { agents, events, send, sent } = await sending();
  agents.connected = false;
  await send(verify);
  expect([events, sent]).toEqual([[], []]);
  agents.connected = true;
  await send(verify);
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

test('no message goes to an agent that has come back as another one meanwhile', async () => {
  const { events, send, sent } = await sending();
  await send(verify, 'r1', create(agent.JournalSchema, { id: 'j1', generation: 0n }));
  expect([events, sent]).toEqual([[], []]);
});

test.each([
  ['a BMC', verify],
  ['a script', script],
  ['a command, for its registry', command],
])('a credential that names racks goes to no agent of another: for %s', async (_, kind) => {
  const { events, send, sent } = await sending({ racks: ['racks/r1'] });
  await expect(send(kind, 'r2')).rejects.toThrow(
    /hosts of racks\/r1 alone.*racks\/r2.*update bmc --keep-password --rack r1 --rack r2/,
  );
  expect([events, sent]).toEqual([[], []]);
  await send(kind);
  expect(sent).toEqual(['credentialValue', 'operation']);
});

test('a credential that names networks goes to BMCs there, and to nothing else', async () => {
  const { events, send, sent } = await sending({ bmcNetworks: ['10.0.1.0/24'] });
  await expect(send(verify)).rejects.toThrow('10.0.0.1 is not there');
  await expect(send(script)).rejects.toThrow('not to a step');
  await expect(send(command)).rejects.toThrow('not to a step, registry');
  expect([events, sent]).toEqual([[], []]);
  await send({ case: 'verifyAccess', value: { bmc: { ...bmc, address: '10.0.1.1' } } });
  expect(sent).toEqual(['credentialValue', 'operation']);
});

test('a session is given each version once, until its agent may have let go of it', async () => {
  const { events, send, sent, forget, rotate } = await sending();
  await send(verify);
  await send(script);
  expect(sent).toEqual(['credentialValue', 'operation', 'operation']);
  // Still recorded for each operation.
  expect(events).toHaveLength(2);
  await rotate(8n);
  await send(verify);
  expect(sent.slice(3)).toEqual(['credentialValue', 'operation']);
  forget();
  await send(verify);
  expect(sent.slice(5)).toEqual(['forget', 'credentialValue', 'operation']);
});
