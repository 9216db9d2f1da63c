/** An HTTP client for measurements: it counts the bytes of bodies and keeps none. */
import { connect } from 'node:net';

/** What is fetched, and how often on each of so many connections. */
export interface Load {
  readonly connections: number;
  readonly requests: number;
  readonly fileBytes: number;
}

/** Fetches `target` over each connection again and again; rejects when an answer is another. */
export async function fetchAll(port: number, target: string, load: Load): Promise<void> {
  const one = () => fetchOver(port, target, load);
  await Promise.all(Array.from({ length: load.connections }, one));
}

const headEnd = Buffer.from('\r\n\r\n');
const readBytes = 256 * 1024;

function fetchOver(port: number, target: string, load: Load): Promise<void> {
  return new Promise((resolve, reject) => {
    let [answered, bodyLeft] = [0, -1];
    let head: Buffer = Buffer.alloc(0);
    const request = `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`;
    const onRead = {
      buffer: Buffer.alloc(readBytes),
      callback: (bytes: number, buffer: Uint8Array): boolean => {
        let body = bytes;
        if (bodyLeft < 0) {
          head = Buffer.concat([head, buffer.subarray(0, bytes)]);
          const end = head.indexOf(headEnd);
          if (end < 0) return true;
          const text = head.toString('latin1', 0, end);
          if (!text.startsWith('HTTP/1.1 200 ') || !text.includes(String(load.fileBytes))) {
            socket.destroy(new Error(`an unexpected answer: ${text}`));
            return true;
          }
          bodyLeft = load.fileBytes;
          body = head.length - end - headEnd.length;
          head = Buffer.alloc(0);
        }
        bodyLeft -= body;
        if (bodyLeft > 0) return true;
        bodyLeft = -1;
        answered += 1;
        if (answered === load.requests) socket.end();
        else socket.write(request);
        return true;
      },
    };
    const socket = connect({ port, host: '127.0.0.1', onread: onRead }, () =>
      socket.write(request),
    );
    socket.on('error', reject);
    socket.on('close', () => {
      if (answered === load.requests) resolve();
      else reject(new Error(`closed after ${answered} answers`));
    });
  });
}
