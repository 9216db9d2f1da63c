/**
 * Datagrams of this machine.
 *
 * N1 Addresses are literal: no name is ever looked up on the way of a datagram.
 * N2 After `close` nothing is sent and no handler is called.
 * N3 Failing to bind rejects; everything later goes to `onError`.
 */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import type { Udp, UdpBind, UdpHandlers, UdpPeer, UdpSocket } from '../udp.ts';

/** The UDP sockets of this machine. */
export function nodeUdp(): Udp {
  return { bind };
}

async function bind(options: UdpBind, handlers: UdpHandlers): Promise<UdpSocket> {
  const family = isIPv6(options.address) ? 'udp6' : 'udp4';
  const socket = createSocket({
    type: family,
    // Broadcast ports are shared: an address server may listen on the same machine (DHCP proxy).
    reuseAddr: options.broadcast === true,
    // Node asks the resolver even for literal addresses, a tick per datagram (N1).
    lookup: (address, _options, callback) => callback(null, address, isIPv6(address) ? 6 : 4),
  });
  try {
    const listening = once(socket, 'listening');
    socket.bind({ address: options.address, port: options.port });
    await listening;
    if (options.broadcast === true) socket.setBroadcast(true);
  } catch (error) {
    socket.close();
    throw error;
  }
  return open(socket, handlers);
}

function open(socket: Socket, handlers: UdpHandlers): UdpSocket {
  const { address, port } = socket.address();
  let closed = false;
  const report = (error: Error | null): void => {
    if (error !== null && !closed) handlers.onError(error);
  };
  socket.on('error', report);
  socket.on('message', (datagram, from) => {
    if (!closed) handlers.onDatagram(datagram, { address: from.address, port: from.port });
  });
  return {
    local: { address, port },
    send(datagram: Uint8Array, to: UdpPeer) {
      if (closed) return;
      try {
        socket.send(datagram, to.port, to.address, report);
      } catch (error) {
        // A port or address out of range; a datagram's sender decides those, so it is no bug.
        report(error instanceof Error ? error : new Error(String(error)));
      }
    },
    close() {
      if (closed) return;
      closed = true;
      socket.close();
    },
  };
}
