/**
 * Which TCP ports a process listens on, as the kernel says, and what a port answers to plain text.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { connect } from 'node:net';

const listening = '0A';

/** Ports of IPv4 and IPv6 sockets in state LISTEN that the process holds. */
export function listeningPorts(pid: number): number[] {
  const folder = `/proc/${pid}/fd`;
  const inodes = new Set(readdirSync(folder).flatMap((fd) => inodeOf(`${folder}/${fd}`)));
  const ports = ['tcp', 'tcp6'].flatMap((table) => {
    const [, ...lines] = readFileSync(`/proc/${pid}/net/${table}`, 'utf8').trim().split('\n');
    return lines.flatMap((line) => {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
      const port = Number.parseInt(local.split(':')[1] ?? '', 16);
      return state === listening && inodes.has(inode) ? [port] : [];
    });
  });
  return [...new Set(ports)];
}

function inodeOf(link: string): string[] {
  try {
    const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(link))?.[1];
    return inode === undefined ? [] : [inode];
  } catch {
    // Closed since it was listed.
    return [];
  }
}

export interface PlainAnswer {
  readonly bytes: Buffer;
  /** Whether the other side ended the connection by itself. */
  readonly closed: boolean;
}

/** Sends plain text and collects what comes back until the other side closes, or `waitMs`. */
export function plainAnswer(port: number, text: Buffer, waitMs: number): Promise<PlainAnswer> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    const socket = connect({ host: '127.0.0.1', port }, () => socket.write(text));
    const end = (closed: boolean): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ bytes: Buffer.concat(parts), closed });
    };
    const timer = setTimeout(() => end(false), waitMs);
    socket.on('data', (part) => parts.push(part));
    socket.once('error', () => end(true));
    socket.once('end', () => end(true));
    socket.once('close', () => end(true));
  });
}
