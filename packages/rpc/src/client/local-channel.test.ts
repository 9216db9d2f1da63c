import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  ApiFailure,
  bind,
  type CredentialSchema,
  CredentialService,
  type Handlers,
  notFound,
  RackService,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { createClient } from './client.ts';
import { localChannel } from './local-channel.ts';

type GetCredential = Handlers<typeof CredentialService>['getCredential'];

function clientOf(getCredential: GetCredential) {
  const missing = () => {
    throw new Error('not asked for');
  };
  const handlers: Handlers<typeof CredentialService> = {
    getCredential,
    createCredential: missing,
    listCredentials: missing,
    updateCredential: missing,
    deleteCredential: missing,
  };
  return createClient(CredentialService, localChannel([bind(CredentialService, handlers)]));
}

test('the channel answers a call of the same process as a server would', async () => {
  const credential: MessageInitShape<typeof CredentialSchema> = { username: 'root' };
  const client = clientOf(({ name }) => ({ ...credential, name }));
  expect(await client.getCredential({ name: 'credentials/c1' })).toMatchObject({
    name: 'credentials/c1',
    username: 'root',
  });
});

test('the channel keeps the details of a refusal', async () => {
  const client = clientOf(() => {
    throw notFound('credentials/c1');
  });
  const failure = await client
    .getCredential({ name: 'credentials/c1' })
    .catch((thrown: unknown) => thrown);
  expect(failure).toBeInstanceOf(ApiFailure);
  expect((failure as ApiFailure).error.kind).toBe('notFound');
  expect((failure as ApiFailure).error.message).toContain('credentials/c1');
});

test('an error that is no refusal becomes an internal error', async () => {
  const client = clientOf(() => {
    throw new TypeError('broken');
  });
  const failure = await client
    .getCredential({ name: 'credentials/c1' })
    .catch((thrown: unknown) => thrown);
  expect((failure as ApiFailure).error.kind).toBe('internal');
});

test('the channel serves a stream of answers, and what ends it', async () => {
  const missing = () => {
    throw new Error('not asked for');
  };
  const watchRacks = async function* () {
    yield { position: 'a' };
    yield { position: 'b' };
    throw notFound('racks/r1');
  };
  const handlers = new Proxy(
    { watchRacks },
    { get: (own, key) => Reflect.get(own, key) ?? missing },
  );
  const channel = localChannel([bind(RackService, handlers as never)]);
  const client = createClient(RackService, channel);
  const positions: string[] = [];
  const failure = await (async () => {
    for await (const { position } of client.watchRacks({})) positions.push(position);
  })().catch((thrown: unknown) => thrown);
  expect(positions).toEqual(['a', 'b']);
  expect((failure as ApiFailure).error.kind).toBe('notFound');
});
