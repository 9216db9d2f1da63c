/**
 * Datagrams of this machine.
 *
 * N1 Addresses are literal: no name is ever looked up on the way of a datagram.
 * N2 After `close` nothing is sent and no handler is called.
 * N3 Failing to bind or to connect rejects; every later error goes to `onError`, or is lost.
 * N4 A connection hears its peer only. The kernel filters the others, and tells them that nobody
 *    has the port. Datagrams that arrived before the connect, or at a socket of all addresses, are
 *    filtered here.
 */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { errorText } from '../error-text.ts';
import type {
  Udp,
  UdpBind,
  UdpConnect,
  UdpConnection,
  UdpConnectionHandlers,
  UdpHandlers,
  UdpParts,
  UdpPeer,
  UdpSocket,
} from '../udp.ts';
import type { InheritedSockets } from './inherited.ts';
import { familyOf, resolveLiteral } from './literal-address.ts';

/**
 * The UDP sockets of this machine. A port that was handed to this process is served by the sockets
 * of that port, for each address: each belongs to an interface of its own. A caller that names an
 * interface gets its socket, or an error.
 */
export function nodeUdp(inherited?: InheritedSockets): Udp {
  return {
    bind: async (options, handlers) => {
      const { port, interface: name, share } = options;
      if (share === 'join') return await bind(options, handlers);
      const [first, ...others] = inherited?.take(port, name) ?? [];
      if (first === undefined) {
        if (name === undefined) return await bind(options, handlers);
        throw new Error(`no socket of port ${port} on ${name} was handed to this process`);
      }
      const sockets = [first, ...others];
      if (options.broadcast === true) for (const socket of sockets) socket.setBroadcast(true);
      return joined(sockets.map((socket) => open(socket, handlers)));
    },
    connect,
  };
}

/** One socket for all interfaces: a datagram that it sends goes out of each. */
function joined(sockets: readonly UdpSocket[]): UdpSocket {
  const [first] = sockets;
  if (first === undefined || sockets.length === 1) return first as UdpSocket;
  const receiveBytes = Math.min(...sockets.map((one) => one.receiveBytes ?? Number.MAX_VALUE));
  return {
    local: first.local,
    receiveBytes,
    send: (datagram, to) => {
      for (const socket of sockets) socket.send(datagram, to);
    },
    close: () => {
      for (const socket of sockets) socket.close();
    },
  };
}

async function bind(options: UdpBind, handlers: UdpHandlers): Promise<UdpSocket> {
  let { port } = options;
  if (options.share === 'begin') {
    // A port that may be shared would be shared with other programs too: first it has to be ours.
    const probe = await bound(options, { reuseAddr: false });
    port = probe.address().port;
    probe.close();
  }
  // Broadcast ports are shared: an address server may listen on the same machine (DHCP proxy).
  const isShared = options.broadcast === true || options.share !== undefined;
  const socket = await bound({ ...options, port }, { reuseAddr: isShared });
  if (options.broadcast === true) socket.setBroadcast(true);
  const { receiveBytes } = options;
  if (receiveBytes !== undefined) socket.setRecvBufferSize(receiveBytes);
  return open(socket, handlers);
}

async function bound(
  { address, port }: UdpBind,
  { reuseAddr }: { readonly reuseAddr: boolean },
): Promise<Socket> {
  const type = `udp${familyOf(address)}` as const;
  const socket = createSocket({ type, reuseAddr, lookup: resolveLiteral }); // N1
  try {
    const listening = once(socket, 'listening');
    socket.bind({ address, port });
    await listening;
    return socket;
  } catch (error) {
    socket.close();
    throw error;
  }
}

function open(socket: Socket, handlers: UdpHandlers): UdpSocket {
  const { address, port } = socket.address();
  let closed = false;
  const report = (error: Error | null): void => {
    if (error !== null && !closed) handlers.onError(error);
  };
  socket.on('error', report);
  socket.on('message', (datagram, from) => {
    if (!closed) handlers.onDatagram(datagram, { address: from.address, port: from.port }, own);
  });
  const own: UdpSocket = {
    local: { address, port },
    // Linux reports twice the requested size, its own overhead included (socket(7)).
    receiveBytes: socket.getRecvBufferSize() / 2,
    send(datagram: Uint8Array, to: UdpPeer) {
      if (closed) return;
      try {
        socket.send(datagram, to.port, to.address, report);
      } catch (error) {
        // A port or address out of range; a datagram's sender decides those, so it is no bug.
        report(error instanceof Error ? error : new Error(errorText(error)));
      }
    },
    close() {
      if (closed) return;
      closed = true;
      socket.close();
    },
  };
  return own;
}

/**
 * Addresses that no socket can be connected from: the kernel would choose one of our addresses for
 * good.
 */
const allAddresses: readonly string[] = ['0.0.0.0', '::'];

async function connect(
  { address, port, peer }: UdpConnect,
  handlers: UdpConnectionHandlers,
): Promise<UdpConnection> {
  const socket = await bound({ address, port }, { reuseAddr: false });
  if (allAddresses.includes(address)) {
    return speakTo(socket, peer, handlers, (parts, sent) => {
      socket.send(parts, peer.port, peer.address, sent);
    });
  }
  try {
    const connected = once(socket, 'connect');
    socket.connect(peer.port, peer.address);
    await connected;
  } catch (error) {
    socket.close();
    throw error;
  }
  return speakTo(socket, peer, handlers, (parts, sent) => socket.send(parts, sent));
}

type SendCallback = (error: Error | null) => void;
type Send = (parts: UdpParts, sent: SendCallback | undefined) => void;

function speakTo(
  socket: Socket,
  peer: UdpPeer,
  { onDatagram, onRefused }: UdpConnectionHandlers,
  send: Send,
): UdpConnection {
  const { address, port } = socket.address();
  let closed = false;
  const heed = (error: Error | null): void => {
    if (!closed && isRefusal(error)) onRefused();
  };
  const own: UdpConnection = {
    local: { address, port },
    send(datagrams) {
      // A refusal of a sent datagram is an error of the next send, or else of the next receive. So
      // only the last of several is checked; each check costs as much as a copy.
      let left = datagrams.length;
      const onSent = left > 1 ? heed : undefined;
      for (const parts of datagrams) {
        left -= 1;
        if (!closed) send(parts, left === 0 ? onSent : undefined);
      }
    },
    close() {
      if (closed) return;
      closed = true;
      socket.close();
    },
  };
  socket.on('error', heed);
  socket.on('message', (datagram, from) => {
    if (closed || from.port !== peer.port || from.address !== peer.address) return; // N4
    onDatagram(datagram, own);
  });
  return own;
}

function isRefusal(error: Error | null): boolean {
  return error !== null && 'code' in error && error.code === 'ECONNREFUSED';
}
