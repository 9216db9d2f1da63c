/** HTTP as firmware and iPXE speak it: one GET from the machine's own address, read whole. */
import { get } from 'node:http';

const idleTimeoutMs = 10_000;
/** A ramdisk is some tens of megabytes. */
const bodyBytesMax = 512 * 1024 * 1024;

/** The body. Throws for any status but 200, and for a body shorter or longer than announced. */
export function fetchByHttp(url: string, address: string): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const request = get(url, { localAddress: address, agent: false }, (response) => {
      if (response.statusCode !== 200) {
        response.resume();
        reject(new Error(`${url}: HTTP status ${response.statusCode}`));
        return;
      }
      const pieces: Uint8Array[] = [];
      let count = 0;
      response.on('data', (piece: Uint8Array) => {
        count += piece.length;
        pieces.push(piece);
        if (count > bodyBytesMax) response.destroy(new Error(`${url}: more than a ramdisk can be`));
      });
      response.once('error', reject);
      response.once('end', () => {
        const announced = Number(response.headers['content-length'] ?? count);
        if (announced === count) resolve(Buffer.concat(pieces));
        else reject(new Error(`${url}: ${count} bytes came, ${announced} were announced`));
      });
    });
    request.setTimeout(idleTimeoutMs, () => request.destroy(new Error(`${url}: silent`)));
    request.once('error', reject);
  });
}
