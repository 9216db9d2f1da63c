/**
 * Sockets that a service supervisor has opened for this process: bound to an interface, or to a
 * port that this process may not bind itself (sd_listen_fds(3)).
 *
 * L1 Descriptors meant for another process are left alone.
 * L2 The first caller that asks for the port of inherited sockets gets them all, once; afterwards,
 *    and for any other port, a socket is bound as usual.
 */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { resolveLiteral } from './literal-address.ts';

/** The number of the first descriptor, by that convention. */
const firstDescriptor = 3;
/** A rack's agent serves a few interfaces with three ports each. */
const descriptorsMax = 96;

/** A socket that was handed over. */
export interface InheritedDescriptor {
  readonly fd: number;
  /** The supervisor's name, here that of its interface; empty when it gave none. */
  readonly name: string;
}

/** The descriptors that `environment` hands to process `pid`. */
export function inheritedDescriptors(
  environment: Readonly<Record<string, string | undefined>>,
  pid: number,
): readonly InheritedDescriptor[] {
  if (Number(environment['LISTEN_PID']) !== pid) return [];
  const count = Number(environment['LISTEN_FDS']);
  if (!Number.isInteger(count) || count < 0 || count > descriptorsMax) {
    throw new Error(`LISTEN_FDS has to be a number up to ${descriptorsMax}`);
  }
  const names = environment['LISTEN_FDNAMES']?.split(':') ?? [];
  return Array.from({ length: count }, (_, index) => {
    return { fd: firstDescriptor + index, name: names[index] ?? '' };
  });
}

/** Sockets that were handed to this process and that nobody has asked for yet. */
export interface InheritedSockets {
  /** The largest number of sockets of one port: that many interfaces are served. */
  readonly interfaces: number;
  /** The names that they have, each once. */
  readonly names: readonly string[];
  /** Those of this port, and of this name if one is given; the caller's from now on (L2). */
  take(port: number, name?: string): readonly Socket[];
  /** Closes sockets that nobody has asked for; returns their ports. */
  closeRest(): readonly number[];
}

/** Opens datagram sockets by their descriptors; rejects for a descriptor that is none. */
export async function openInherited(
  descriptors: readonly InheritedDescriptor[],
): Promise<InheritedSockets> {
  let open = await Promise.all(
    descriptors.map(async ({ fd, name }) => ({ name, socket: await openDescriptor(fd) })),
  );
  const perPort = Map.groupBy(open, ({ socket }) => socket.address().port);
  return {
    interfaces: Math.max(0, ...[...perPort.values()].map(({ length }) => length)),
    names: [...new Set(open.map(({ name }) => name))],
    take: (port, name) => {
      const taken = open.filter(
        (one) => one.socket.address().port === port && (name ?? one.name) === one.name,
      );
      open = open.filter((one) => !taken.includes(one));
      return taken.map(({ socket }) => socket);
    },
    closeRest: () => {
      const rest = open.splice(0).map(({ socket }) => socket);
      const ports = rest.map((socket) => socket.address().port);
      for (const socket of rest) socket.close();
      return ports;
    },
  };
}

async function openDescriptor(fd: number): Promise<Socket> {
  // The protocol family of the descriptor is in its address; "udp4" only says how to write it.
  const socket = createSocket({ type: 'udp4', lookup: resolveLiteral });
  try {
    const listening = once(socket, 'listening');
    socket.bind({ fd });
    await listening;
    return socket;
  } catch (cause) {
    socket.close();
    throw new Error(`the inherited descriptor ${fd} is no UDP socket over IPv4`, { cause });
  }
}
