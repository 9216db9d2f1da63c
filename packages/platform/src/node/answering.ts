import { connect as connectPlain } from 'node:net';
import { connect } from 'node:tls';

/** Where a server of this process listens; a wildcard address is asked on loopback. */
export interface OwnPort {
  readonly address: string;
  readonly port: number;
  /** `tls`: it has to shake hands. `http`: it has to answer a request, whatever with. */
  readonly protocol: 'tls' | 'http';
}

/**
 * Undefined when the server answers, else what is wrong. That the port accepts connections would
 * prove nothing: the kernel accepts them for a program that hangs.
 */
export function answering(own: OwnPort, timeoutMs: number): Promise<string | undefined> {
  const host = loopbackOf(own.address);
  const { port, protocol } = own;
  return new Promise((resolve) => {
    const settle = (words: string | undefined): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(words === undefined ? undefined : `port ${port} of this program: ${words}`);
    };
    const timer = setTimeout(() => settle(`no answer within ${timeoutMs} ms`), timeoutMs);
    const socket =
      protocol === 'tls'
        ? // Nothing is said over it: whose certificate it is matters to others.
          connect({ host, port, rejectUnauthorized: false }, () => settle(undefined))
        : connectPlain({ host, port }, () => {
            socket.write(`HEAD / HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
          });
    socket.once('error', (cause) => settle(cause.message));
    if (protocol === 'http') socket.once('data', () => settle(undefined));
    socket.once('close', () => settle('the connection was closed'));
  });
}

function loopbackOf(address: string): string {
  if (address === '0.0.0.0') return '127.0.0.1';
  return address === '::' ? '::1' : address;
}
