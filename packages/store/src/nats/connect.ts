/** The connection: how it is made, and the check of every server that it ever reaches. */
import { errorText } from '@rackwright/platform';
import {
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  type NatsConnection,
  type NodeConnectionOptions,
} from 'nats';
import { StoreError } from '../errors.ts';
import { ATTEMPT_TIMEOUT_DEFAULT_MS, type NatsStoreOptions } from './options.ts';
import { checkServerVersion } from './server-version.ts';

/** Pause between attempts to connect again; attempts never end. */
const RECONNECT_DELAY_MS = 250;

export function connectionOptions(options: NatsStoreOptions): NodeConnectionOptions {
  return {
    servers: [...options.servers],
    name: 'rackwright',
    timeout: options.attemptTimeoutMs ?? ATTEMPT_TIMEOUT_DEFAULT_MS,
    maxReconnectAttempts: -1,
    reconnectTimeWait: RECONNECT_DELAY_MS,
    // A server that vanished without a word is noticed within this times two.
    pingInterval: 2_000,
    maxPingOut: 2,
    ...(options.tls === undefined ? {} : { tls: options.tls }),
    ...authenticationOptions(options),
  };
}

/** Connects and checks the server. Throws `unavailable`, `serverTooOld`. */
export async function connectToServers(options: NatsStoreOptions): Promise<NatsConnection> {
  let connection: NatsConnection;
  try {
    connection = await connect(connectionOptions(options));
  } catch (error) {
    const servers = options.servers.join(', ');
    throw new StoreError(
      'unavailable',
      `no nats-server answers at ${servers}: ${errorText(error)}`,
      error,
    );
  }
  try {
    checkConnectedServer(connection);
    return connection;
  } catch (error) {
    await connection.close();
    throw error;
  }
}

/** Throws `serverTooOld` when the server behind the connection is one. */
export function checkConnectedServer(connection: NatsConnection): void {
  const { version = '', server_name: name = 'unnamed' } = connection.info ?? {};
  checkServerVersion(version, name);
}

function authenticationOptions(options: NatsStoreOptions): ConnectionOptions {
  const authentication = options.authentication;
  switch (authentication?.kind) {
    case undefined:
      return {};
    case 'password':
      return { user: authentication.user, pass: authentication.password };
    case 'token':
      return { token: authentication.token };
    case 'credentials':
      return { authenticator: credsAuthenticator(authentication.credentials) };
  }
}
